//! VRF chains over HTTP: forks, second beginnings, gaps, redacted receipts, and what is kept of those who fork.

use crate::common::{Place, Site, refusal, refused_by};
use data_encoding::BASE64URL_NOPAD;
use merkle::LeafIndex;
use registration::vrf::{VrfRecord, VrfRedacted};
use scitt::SignedStatement;
use store::{Custody, FailingStore, Memory};
use testkit::{receipt, verifier};

fn first(n: u64) -> SignedStatement {
    receipt(n).sign(&verifier()).unwrap()
}

fn after(n: u64, previous: &SignedStatement, position: u64) -> SignedStatement {
    receipt(n).after(previous.digest(), position).sign(&verifier()).unwrap()
}

/// A log whose policy has these VRF options.
fn place_with(options: &str) -> Place {
    let place = Place::new();
    let issuers = "issuers = [\"did:key:*\"]";
    place.write_policy(
        &testkit::policy_toml().replace(issuers, &format!("{issuers}\n[type.vrf]\n{options}\n")),
    );
    place
}

#[tokio::test]
async fn a_fork_is_refused_naming_the_registered_successor_and_a_retry_of_that_is_not() {
    let site = Place::new().start().await;
    let one = first(1);
    let (two, fork) = (after(2, &one, 1), after(3, &one, 1));
    site.registered(&one).await;
    site.registered(&two).await;
    let answer = site.register(&fork).await;
    refused_by(&answer, "chain_fork", "vrf-chain-fork");
    assert!(answer.problem().detail.unwrap().contains("leaf 2"), "{answer:?}");
    assert_eq!(site.registered(&two).await.inclusion_proofs()[0].leaf_index.get(), 2, "the same bytes again");
    assert_eq!(site.get(&format!("/entries/{}", fork.digest())).await.status, 404);
}

#[tokio::test]
async fn a_second_beginning_is_refused() {
    let site = Place::new().start().await;
    site.registered(&first(1)).await;
    refused_by(&site.register(&first(2)).await, "chain_fork", "vrf-chain-second-genesis");
    let elsewhere = receipt(2).sign(&testkit::ed25519([7; 32])).unwrap();
    site.registered(&elsewhere).await;
}

#[tokio::test]
async fn a_receipt_may_come_before_its_predecessor_and_says_so() {
    let site = Place::new().start().await;
    let one = first(1);
    let two = after(2, &one, 1);
    let three = after(3, &two, 2);
    site.registered(&three).await;
    assert_eq!(site.facts(three.digest()).await["chain_verified"], false);
    site.registered(&one).await;
    assert_eq!(site.facts(one.digest()).await["chain_verified"], serde_json::Value::Null);
    site.registered(&two).await;
    assert_eq!(site.facts(two.digest()).await["chain_verified"], true);
    let fork = after(4, &two, 2);
    refused_by(&site.register(&fork).await, "chain_fork", "vrf-chain-fork");
    let skipping = after(5, &three, 9);
    refused_by(&site.register(&skipping).await, "policy", "vrf-chain-mismatch");
}

#[tokio::test]
async fn a_strict_log_takes_no_gaps_and_nothing_outside_a_chain() {
    let site = place_with("chain = \"strict\"").start().await;
    let one = first(1);
    let two = after(2, &one, 1);
    refused_by(&site.register(&two).await, "policy", "vrf-chain-unknown-predecessor");
    refused_by(&site.register(&testkit::vrf(9)).await, "policy", "vrf-chain-required");
    site.registered(&one).await;
    site.registered(&two).await;
    assert_eq!(site.facts(two.digest()).await["chain_verified"], true);
}

#[tokio::test]
async fn of_many_successors_submitted_at_once_exactly_one_wins() {
    let site = Place::new().start().await;
    for round in 0..4_u64 {
        let agent = format!("did:web:agent-{round}.example");
        let sign = |n: u64| testkit::receipt_about(100 * round + n, &agent);
        let one = sign(0).sign(&verifier()).unwrap();
        site.registered(&one).await;
        let forks: Vec<SignedStatement> =
            (1..7).map(|n| sign(n).after(one.digest(), 1).sign(&verifier()).unwrap()).collect();
        let answers = futures::future::join_all(forks.iter().map(|fork| site.register(fork))).await;
        let won: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        for answer in answers.iter().filter(|answer| answer.status != 201) {
            refused_by(answer, "chain_fork", "vrf-chain-fork");
        }
    }
}

#[tokio::test]
async fn a_whole_chain_submitted_at_once_arrives_whole() {
    let site = Place::new().start().await;
    let mut chain = vec![first(0)];
    for n in 1..12 {
        chain.push(after(n, chain.last().unwrap(), n));
    }
    let answers = futures::future::join_all(chain.iter().rev().map(|one| site.register(one))).await;
    assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
    for pair in chain.windows(2) {
        let index = async |one: &SignedStatement| {
            site.get(&format!("/v1/entries/{}", one.digest())).await.json()["index"].as_u64().unwrap()
        };
        let came_later = index(&pair[1]).await > index(&pair[0]).await;
        let response = site.facts(pair[1].digest()).await["chain_verified"].clone();
        assert_eq!(response, came_later, "an entry says whether its predecessor stood below it");
    }
}

#[tokio::test]
async fn a_redacted_receipt_is_taken_where_the_policy_says_so_and_keeps_its_place() {
    let redacted = |n: u64| receipt(n).redacted();
    let site = Place::new().start().await;
    let one = redacted(1).sign(&verifier()).unwrap();
    refused_by(&site.register(&one).await, "policy", "vrf-redacted");

    let site = place_with("allow_redacted = true").start().await;
    site.registered(&one).await;
    let response = site.facts(one.digest()).await;
    assert_eq!((&response["redacted"], &response["verdict"]), (&true.into(), &serde_json::Value::Null));
    let two = redacted(2).after(one.digest(), 1).sign(&verifier()).unwrap();
    site.registered(&two).await;
    let fork = after(3, &one, 1);
    refused_by(&site.register(&fork).await, "chain_fork", "vrf-chain-fork");
    let again = receipt(1).unchained().sign(&verifier()).unwrap();
    refused_by(&site.register(&again).await, "policy", "vrf-receipt-id-unique");
}

/// The statement a report shows, which proves itself: read and verified by nothing but its own issuer's key.
fn shown(report: &serde_json::Value) -> SignedStatement {
    let bytes = report["refused"]["statement"].as_str().expect("the statement");
    let statement = SignedStatement::parse(BASE64URL_NOPAD.decode(bytes.as_bytes()).unwrap()).unwrap();
    match statement.header().hash_envelope() {
        Some(_) => drop(VrfRedacted::verify(&statement, None).expect("signed by its issuer")),
        None => drop(VrfRecord::verify(&statement, None).expect("signed by its issuer")),
    }
    assert_eq!(report["refused"]["entry_id"], statement.digest().to_string());
    statement
}

async fn reports(site: &Site, query: &str) -> Vec<serde_json::Value> {
    let answer = site.get(&format!("/v1/equivocations{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["equivocations"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_refused_fork_is_kept_with_what_proves_it() {
    let place = Place::new();
    let site = place.start().await;
    let one = first(1);
    let (two, fork, beginning) = (after(2, &one, 1), after(3, &one, 1), first(4));
    site.registered(&one).await;
    site.registered(&two).await;
    assert!(reports(&site, "").await.is_empty());
    for _ in 0..3 {
        refused_by(&site.register(&fork).await, "chain_fork", "vrf-chain-fork");
    }
    refused_by(&site.register(&beginning).await, "chain_fork", "vrf-chain-second-genesis");
    let metrics = site.send(reqwest::Method::GET, &format!("{}/metrics", site.admin), &[], "").await.text();
    assert!(metrics.contains("tabellion_equivocations_total 4"), "{metrics}");
    let used_again = receipt(1).unchained().sign(&verifier()).unwrap();
    refused_by(&site.register(&used_again).await, "policy", "vrf-receipt-id-unique");

    site.service.stop().await;
    let site = place.start().await;
    let kept = reports(&site, "").await;
    assert_eq!(kept.len(), 2, "each once, and no other refusal: {kept:?}");
    assert_eq!((shown(&kept[0]), shown(&kept[1])), (fork, beginning));
    assert_eq!(
        (&kept[0]["rule"], &kept[1]["rule"]),
        (&"vrf-chain-fork".into(), &"vrf-chain-second-genesis".into())
    );
    assert_eq!(kept[0]["registered"]["entry_id"], two.digest().to_string());
    assert_eq!(kept[0]["registered"]["index"], 2);
    assert_eq!(kept[1]["registered"]["entry_id"], one.digest().to_string());
    assert!(kept[0]["at"].as_str().unwrap().ends_with('Z'), "{kept:?}");
}

#[tokio::test]
async fn a_redacted_fork_is_kept_too() {
    let site = place_with("allow_redacted = true").start().await;
    let one = first(1);
    let fork = receipt(2).redacted().sign(&verifier()).unwrap();
    site.registered(&one).await;
    refused_by(&site.register(&fork).await, "chain_fork", "vrf-chain-second-genesis");
    assert_eq!(shown(&reports(&site, "").await[0]), fork);
}

#[tokio::test]
async fn a_fork_that_was_accepted_before_its_like_was_placed_fails_later_and_is_kept() {
    let store = FailingStore::new(Memory::new());
    let wait = std::time::Duration::from_millis(50);
    let site = Place::new().start_on(store.clone(), |config| config.limits.receipt_wait = wait).await;
    store.hold_commits();
    let both = [first(1), first(2)];
    for one in &both {
        assert_eq!(site.register(one).await.status, 202);
    }
    store.release_commits();
    let mut failed = None;
    for one in &both {
        let answer = loop {
            match site.get(&site.location(one)).await {
                running if running.status == 204 => tokio::time::sleep(wait).await,
                answer => break answer,
            }
        };
        if answer.status != 200 {
            assert_eq!(answer.refusal(), refusal(404, "Registration Failed", "registration-failed"));
            assert!(answer.problem().detail.unwrap().contains("vrf-chain-second-genesis"));
            assert!(failed.replace(one).is_none(), "one of two is placed");
        }
    }
    let kept = reports(&site, "").await;
    assert_eq!(kept.iter().map(shown).collect::<Vec<_>>(), [failed.expect("one of two fails").clone()]);
}

#[tokio::test]
async fn a_report_outlives_the_entry_that_it_contradicts_but_not_its_bytes() {
    let memory = Memory::new();
    let site = Place::new().start_on(memory.clone(), |_| {}).await;
    site.registered(&first(1)).await;
    refused_by(&site.register(&first(2)).await, "chain_fork", "vrf-chain-second-genesis");
    memory.erase(&[LeafIndex::new(1)]).await.unwrap();
    let kept = reports(&site, "").await;
    assert_eq!(kept[0]["refused"]["entry_id"], first(2).digest().to_string());
    assert!(kept[0]["refused"].get("statement").is_none(), "{kept:?}");
    refused_by(&site.register(&first(3)).await, "chain_fork", "vrf-chain-second-genesis");
    let kept = reports(&site, "").await;
    assert_eq!(kept.len(), 2);
    assert!(kept[1]["refused"].get("statement").is_none(), "nothing comes after an erasure: {kept:?}");
}

#[tokio::test]
async fn of_one_place_only_so_many_forks_are_kept() {
    let site = Place::new().start().await;
    site.registered(&first(0)).await;
    for n in 1..=store::REPORTS_PER_GUARD as u64 + 3 {
        refused_by(&site.register(&first(n)).await, "chain_fork", "vrf-chain-second-genesis");
    }
    assert_eq!(reports(&site, "?limit=64").await.len(), store::REPORTS_PER_GUARD);
}

#[tokio::test]
async fn reports_are_read_page_by_page() {
    let site = Place::new().start().await;
    for n in 0..5_u64 {
        let agent = format!("did:web:agent-{n}.example");
        let sign = |id: u64| testkit::receipt_about(id, &agent);
        site.registered(&sign(2 * n).sign(&verifier()).unwrap()).await;
        let second = sign(2 * n + 1).sign(&verifier()).unwrap();
        refused_by(&site.register(&second).await, "chain_fork", "vrf-chain-second-genesis");
    }
    let (mut numbers, mut next) = (Vec::new(), Some("/v1/equivocations?limit=2".to_owned()));
    while let Some(page) = next {
        let answer = site.get(&page).await;
        numbers.extend(
            answer.json()["equivocations"].as_array().unwrap().iter().map(|it| it["number"].as_u64()),
        );
        let link = answer.header("link").map(str::to_owned);
        next = link.map(|link| link.split(['<', '>']).nth(1).unwrap().to_owned());
    }
    assert_eq!(numbers.len(), 5);
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert!(reports(&site, &format!("?after={}", u64::MAX)).await.is_empty());
    for query in ["?limit=0", "?limit=65", "?limit=x", "?after=-1", "?before=3"] {
        let answer = site.get(&format!("/v1/equivocations{query}")).await;
        assert_eq!(answer.refusal().0, 400, "{query}: {answer:?}");
    }
}
