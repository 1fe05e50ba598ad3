//! Searching the log: by what entries say, by their names, by what they share; and an index that can be thrown away.

use std::time::{Duration, Instant};

use crate::common::{Answer, Place, Site, refusal};
use futures::future::join_all;
use merkle::EntryDigest;
use registration::conversation::Form;
use reqwest::Method;
use scitt::{SignedStatement, Signer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{AGENT, aer_json, aer_statement, gateway, receipt, receipt_json, verifier};

const SESSION: &str = "sess:8b3d0e7f2a1c9b4e";

fn first(n: u64) -> SignedStatement {
    receipt(n).sign(&verifier()).unwrap()
}

fn after(n: u64, previous: &SignedStatement, position: u64) -> SignedStatement {
    receipt(n).after(previous.digest(), position).sign(&verifier()).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// The leaves of an answer.
fn leaves(answer: &Answer) -> Vec<u64> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let json = answer.json();
    json["entries"].as_array().unwrap().iter().map(|entry| entry["index"].as_u64().unwrap()).collect()
}

async fn search(site: &Site, query: &str) -> Vec<u64> {
    let answer = site.get(&format!("/v1/entries?{query}")).await;
    assert!(answer.json()["indexed_to"].as_u64().is_some(), "{answer:?}");
    leaves(&answer)
}

fn did() -> String {
    verifier().public_key().did_key()
}

/// 1: a VRF receipt. 2: an execution receipt. 3: a conversation. 4 and 5: statements of no profile.
async fn mixed() -> (Site, [SignedStatement; 5]) {
    let site = Place::new().start().await;
    let statements = [
        testkit::vrf(1),
        testkit::aer(1),
        testkit::conversation(1, Form::Json),
        testkit::opaque("thing", &json!({ "n": 1 })),
        testkit::opaque("thing", &json!({ "n": 2 })),
    ];
    for statement in &statements {
        site.registered(statement).await;
    }
    (site, statements)
}

#[tokio::test]
async fn what_was_just_registered_is_found_by_whatever_it_says() {
    let (site, [_, _, _, opaque, _]) = mixed().await;
    let receipt_id = receipt_json(1)["receipt_id"].as_str().unwrap().to_owned();
    let digest = sha256(opaque.payload().unwrap());
    for (query, expected) in [
        (format!("receipt_id={receipt_id}"), vec![1]),
        ("aer_id=aer:0000aaaa00000001".into(), vec![2]),
        (format!("session={SESSION}"), vec![2]),
        ("session=session-1".into(), vec![3]),
        ("agent=aha:acme/engineering/coder-7".into(), vec![2]),
        (format!("issuer={}", did()), vec![1]),
        (format!("subject={AGENT}"), vec![1]),
        ("subject=thing".into(), vec![4, 5]),
        ("content_type=application/json".into(), vec![4, 5]),
        ("content_type=application%2Faer%2Bjson".into(), vec![2]),
        ("verdict=pass".into(), vec![1]),
        ("verdict=permit".into(), vec![2]),
        ("tool=Bash".into(), vec![3]),
        ("tool=get_pull_request&verdict=permit".into(), vec![2]),
        ("call_id=call-1".into(), vec![3]),
        ("tier=0".into(), vec![1]),
        (format!("payload_digest={digest}"), vec![4]),
        (format!("digest={}", &digest[7..]), vec![4]),
        ("digest=sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into(), vec![1]),
        ("subject=thing&verdict=pass".into(), vec![]),
        ("subject=Thing".into(), vec![]),
        ("subject=".into(), vec![]),
    ] {
        assert_eq!(search(&site, &query).await, expected, "{query}");
    }
    let one = site.get(&format!("/v1/entries?receipt_id={receipt_id}")).await.json();
    assert_eq!(one["indexed_to"], 6);
    assert_eq!(one["entries"][0]["facts"]["receipt_id"], receipt_id);
}

#[tokio::test]
async fn pages_of_a_search_lead_on_with_all_that_was_asked_for() {
    let site = Place::new().start().await;
    let subject = "a b&c=d/ü+%";
    for n in 0..5 {
        site.registered(&testkit::opaque(subject, &json!({ "n": n }))).await;
        site.registered(&testkit::opaque("another", &json!({ "n": n }))).await;
    }
    let encoded: String = subject.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let mut path = format!("/v1/entries?subject={encoded}&limit=2&from_time=2001-01-01T00:00:00Z");
    let mut pages = Vec::new();
    loop {
        let answer = site.get(&path).await;
        pages.push(leaves(&answer));
        let Some(link) = answer.header("link") else { break };
        assert!(link.ends_with("; rel=\"next\""));
        path = link.split_once('>').unwrap().0.trim_start_matches('<').to_owned();
    }
    assert_eq!(pages, [vec![1, 3], vec![5, 7], vec![9]]);
}

#[tokio::test]
async fn the_newest_entries_come_first_on_request_and_every_row_has_its_time() {
    let site = Place::new().start().await;
    for n in 0..5 {
        site.registered(&testkit::opaque("build/1", &json!({ "n": n }))).await;
        site.registered(&testkit::opaque("other", &json!({ "n": n }))).await;
    }
    for (query, expected) in [
        ("subject=build/1&limit=2", vec![vec![9, 7], vec![5, 3], vec![1]]),
        ("subject=build/1&limit=2&after=1&before=9", vec![vec![7, 5], vec![3]]),
        ("limit=4", vec![vec![10, 9, 8, 7], vec![6, 5, 4, 3], vec![2, 1, 0]]),
        ("limit=4&after=3&before=7", vec![vec![6, 5, 4]]),
    ] {
        let mut path = format!("/v1/entries?order=newest&{query}");
        let mut pages = Vec::new();
        loop {
            let answer = site.get(&path).await;
            pages.push(leaves(&answer));
            for entry in answer.json()["entries"].as_array().unwrap() {
                let one = site.get(&format!("/v1/entries/{}", entry["entry_id"].as_str().unwrap())).await;
                assert_eq!(entry["at"], one.json()["at"], "{entry}");
                assert!(entry["at"].is_string(), "{entry}");
            }
            let Some(link) = answer.header("link") else { break };
            path = link.split_once('>').unwrap().0.trim_start_matches('<').to_owned();
        }
        assert_eq!(pages, expected, "{query}");
    }
}

#[tokio::test]
async fn entries_are_found_by_the_beginning_of_a_text_that_not_too_many_others_share() {
    let site = Place::new().start().await;
    for n in 0..70 {
        site.registered(&testkit::opaque(&format!("build/{n:02}"), &json!({ "n": n }))).await;
    }
    site.registered(&testkit::opaque("build%", &json!({}))).await;
    assert_eq!(search(&site, "subject_prefix=build/0&limit=3").await, [1, 2, 3]);
    assert_eq!(search(&site, "subject_prefix=build/0&order=newest&limit=3").await, [10, 9, 8]);
    assert_eq!(search(&site, "subject_prefix=build/6&subject=build/61").await, [62]);
    assert_eq!(search(&site, "subject_prefix=build%25").await, [71], "no wildcard");
    assert_eq!(search(&site, "subject_prefix=nothing").await, [0; 0]);
    for (query, code) in [("subject_prefix=build/", "prefix-too-common"), ("issuer_prefix=", "search")] {
        let answer = site.get(&format!("/v1/entries?{query}")).await;
        assert_eq!((answer.status, answer.problem().get_code()), (400, Some(code)), "{query}");
    }
}

#[tokio::test]
async fn entries_are_found_by_the_time_at_which_they_were_committed() {
    let (site, statements) = mixed().await;
    let at = async |statement: &SignedStatement| {
        let entry = site.get(&format!("/v1/entries/{}", statement.digest())).await.json();
        entry["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second()
    };
    let (begin, end) = (at(&statements[0]).await, at(&statements[4]).await + 1);
    let list = async |query: String| leaves(&site.get(&format!("/v1/entries?{query}")).await);
    let found = list(format!("from_time={begin}&to_time={end}")).await;
    assert_eq!(found.last(), Some(&5));
    assert!(found.contains(&1));
    assert_eq!(list(format!("from_time={end}")).await, [0; 0]);
    assert_eq!(list("to_time=2001-01-01T00:00:00Z".into()).await, [0; 0]);
    assert_eq!(list(format!("subject=thing&from_time={begin}")).await, [4, 5]);
    assert_eq!(list(format!("subject=thing&from_time={end}")).await, [0; 0]);
    assert_eq!(list(format!("subject=thing&to_time={end}&after=4")).await, [5]);
}

#[tokio::test]
async fn a_search_for_what_nobody_could_say_is_refused() {
    let site = Place::new().start().await;
    let digest = "0".repeat(63);
    for (query, code) in [
        ("colour=red", "page"),
        ("subject=a&subject=b", "page"),
        ("limit=0&subject=a", "page"),
        ("digest=sha256:0", "search"),
        (&format!("payload_digest={digest}G"), "search"),
        ("from_time=yesterday", "search"),
        ("to_time=-1", "search"),
    ] {
        let answer = site.get(&format!("/v1/entries?{query}")).await;
        assert_eq!((answer.status, answer.problem().get_code()), (400, Some(code)), "{query}");
    }
}

#[tokio::test]
async fn the_name_that_a_statement_has_of_its_own_leads_to_its_entry() {
    let (site, [vrf, aer, ..]) = mixed().await;
    let receipt_id = receipt_json(1)["receipt_id"].as_str().unwrap().to_owned();
    for (name, statement) in [(receipt_id.as_str(), &vrf), ("aer:0000aaaa00000001", &aer)] {
        let answer = site.get(&format!("/entries/{name}")).await;
        assert_eq!((answer.status, answer.header("location")), (307, Some(&*site.location(statement))));
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
    }
    for unknown in ["99999999-9999-4999-8999-999999999999", "aer:ffffffffffffffff"] {
        let answer = site.get(&format!("/entries/{unknown}")).await;
        assert_eq!(answer.refusal(), refusal(404, "Not Found", "entry-unknown"));
    }
    for wrong in [receipt_id.replace('-', ""), receipt_id.replace("11", "1g"), "aer:FFFFFFFFFFFFFFFF".into()]
    {
        let answer = site.get(&format!("/entries/{wrong}")).await;
        assert_eq!(answer.refusal(), refusal(400, "Invalid locator", "locator-invalid"), "{wrong}");
    }
}

#[tokio::test]
async fn a_name_that_a_stranger_uses_too_leads_to_the_first_entry_and_by_issuer_to_each() {
    let site = Place::new().start().await;
    let one = testkit::vrf(1);
    let other = receipt(1).unchained().sign(&testkit::ed25519([7; 32])).unwrap();
    for statement in [&one, &other] {
        site.registered(statement).await;
    }
    let path = format!("/entries/{}", receipt_json(1)["receipt_id"].as_str().unwrap());
    let answer = site.get(&path).await;
    assert_eq!((answer.status, answer.header("location")), (307, Some(&*site.location(&one))));
    let alternate = format!("<{}>; rel=\"alternate\"", site.location(&other));
    assert_eq!(answer.header("link"), Some(&*alternate));
    for statement in [&one, &other] {
        let answer =
            site.get(&format!("{path}?issuer={}", statement.header().claims().unwrap().iss().unwrap())).await;
        assert_eq!((answer.status, answer.header("location")), (307, Some(&*site.location(statement))));
        assert_eq!(answer.header("link"), None);
    }
    let nobody = site.get(&format!("{path}?issuer=did:key:nobody")).await;
    assert_eq!(nobody.refusal(), refusal(404, "Not Found", "entry-unknown"));
    assert_eq!(site.get(&format!("{path}?agent=x")).await.status, 400);
}

#[tokio::test]
async fn an_index_that_was_dropped_is_read_again_while_searches_go_on_and_answers_the_same() {
    let (site, _) = mixed().await;
    for n in 10..200 {
        site.registered(&testkit::opaque("many", &json!({ "n": n }))).await;
    }
    let queries =
        ["subject=many&limit=1000", "subject=thing", "verdict=pass", "tool=Bash", "content_type=text/plain"];
    let mut before = Vec::new();
    for query in queries {
        before.push(search(&site, query).await);
    }
    let dropped = site.command(Method::POST, "/reindex", "").await;
    assert_eq!(dropped.status, 202);
    let mut sizes = Vec::new();
    for _ in 0..500 {
        let answer = site.get("/v1/entries?subject=many&limit=1000").await;
        if answer.status == 503 {
            assert_eq!(
                answer.problem().get_code(),
                Some("index-behind"),
                "nothing is indexed, and nothing is said"
            );
            continue;
        }
        let (found, size) = (leaves(&answer), answer.json()["indexed_to"].as_u64().unwrap());
        let expected: Vec<u64> = before[0].iter().copied().filter(|leaf| *leaf < size).collect();
        assert_eq!(found, expected, "what is indexed is found, and the answer says how much that is: {size}");
        assert_eq!(answer.header("link").is_some(), size < 196, "what is not all leads on");
        sizes.push(size);
        if size == 196 {
            break;
        }
    }
    assert_eq!(sizes.last(), Some(&196), "it was read to the end: {sizes:?}");
    for (query, before) in queries.iter().zip(before) {
        assert_eq!(search(&site, query).await, before, "{query}");
    }
    let metrics = site.get(&format!("{}/metrics", site.admin)).await.text();
    assert!(metrics.contains("tabellion_index_lag_leaves 0"), "{metrics}");
}

#[tokio::test]
async fn names_that_begin_alike_are_told_apart_however_long_they_are() {
    let site = Place::new().start().await;
    let names = ["1", "2"].map(|end| format!("{}{end}", "a".repeat(2000)));
    for name in &names {
        site.registered(&testkit::opaque(name, &json!({ "n": 1 }))).await;
    }
    assert_eq!(search(&site, &format!("subject={}", names[0])).await, [1]);
    assert_eq!(search(&site, &format!("subject={}", names[1])).await, [2]);
    assert_eq!(search(&site, &format!("subject={}", "a".repeat(512))).await, [0; 0]);
}

#[tokio::test]
async fn the_index_goes_on_where_it_was_after_a_restart() {
    let place = Place::new();
    let site = place.start().await;
    site.registered(&testkit::opaque("thing", &json!({ "n": 1 }))).await;
    assert_eq!(search(&site, "subject=thing").await, [1]);
    site.service.stop().await;
    let site = place.start().await;
    assert_eq!(search(&site, "subject=thing").await, [1]);
    site.registered(&testkit::opaque("thing", &json!({ "n": 2 }))).await;
    assert_eq!(search(&site, "subject=thing").await, [1, 2]);
}

#[tokio::test]
async fn records_of_different_kinds_that_speak_of_the_same_thing_are_linked() {
    let site = Place::new().start().await;
    let conversation = testkit::conversation(1, Form::Cbor);
    let mut call = aer_json(1);
    call["action"]["input_hash"] = json!(sha256(br#"{"command":"cargo test","timeout":60}"#));
    let execution = aer_statement(call).sign(&gateway()).unwrap();
    let mut verified = receipt_json(1);
    verified["hashes"]["output"] = json!(sha256(b"1 passed"));
    let verification =
        registration::vrf::VrfStatement::new(verified, AGENT).unchained().sign(&verifier()).unwrap();
    let stranger = testkit::opaque("thing", &json!({ "n": 1 }));
    for statement in [&conversation, &execution, &verification, &stranger] {
        site.registered(statement).await;
    }
    let links = async |statement: &SignedStatement| {
        let answer = site.get(&format!("/v1/entries/{}/links", statement.digest())).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let json = answer.json();
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for link in json["links"].as_array().unwrap() {
            let entries = link["entries"].as_array().unwrap();
            let ids = entries.iter().map(|entry| entry["entry_id"].as_str().unwrap().to_owned());
            found.push((link["by"].as_str().unwrap().to_owned(), ids.collect()));
        }
        found.sort();
        found
    };
    let by_digest = |others: &[&SignedStatement]| -> Vec<(String, Vec<String>)> {
        let mut expected: Vec<_> =
            others.iter().map(|other| ("digest".to_owned(), vec![other.digest().to_string()])).collect();
        expected.sort();
        expected
    };
    assert_eq!(links(&execution).await, by_digest(&[&conversation]));
    assert_eq!(links(&verification).await, by_digest(&[&conversation]));
    assert_eq!(links(&conversation).await, by_digest(&[&execution, &verification]));
    assert_eq!(links(&stranger).await, []);
    let unknown = site.get(&format!("/v1/entries/{}/links", "0".repeat(64))).await;
    assert_eq!(unknown.refusal(), refusal(404, "Not Found", "entry-unknown"));
}

#[tokio::test]
async fn an_outcome_and_its_decision_are_linked_both_ways() {
    let site = Place::new().start().await;
    let decision = testkit::audit_record(&testkit::decision_json("stream", 0));
    let outcome = testkit::audit_record(&testkit::outcome_json("stream", 1, &decision.digest()));
    for statement in [&decision, &outcome] {
        site.registered(statement).await;
    }
    let linked = async |statement: &SignedStatement, by: &str| {
        let json = site.get(&format!("/v1/entries/{}/links", statement.digest())).await.json();
        let link = json["links"].as_array().unwrap().iter().find(|link| link["by"] == by).cloned();
        link.map(|link| link["entries"][0]["entry_id"].as_str().unwrap().to_owned())
    };
    assert_eq!(linked(&decision, "answered_by").await, Some(outcome.digest().to_string()));
    assert_eq!(linked(&outcome, "answers").await, Some(decision.digest().to_string()));
    assert_eq!(linked(&decision, "answers").await, None);
}

#[tokio::test]
async fn an_issuer_is_known_by_what_it_registered() {
    let (site, _) = mixed().await;
    let issuer = async |iss: &str| {
        let encoded: String = iss.bytes().map(|byte| format!("%{byte:02X}")).collect();
        site.get(&format!("/v1/issuers/{encoded}")).await
    };
    let known = issuer(testkit::ISSUER).await.json();
    assert_eq!((&known["issuer"], &known["entries"]), (&json!(testkit::ISSUER), &json!(2)));
    assert_eq!((&known["first_seen"]["index"], &known["last_seen"]["index"]), (&json!(4), &json!(5)));
    assert_eq!(known["content_types"], json!({ "application/json": 2 }));
    let kid = data_encoding::HEXLOWER.encode(testkit::KID.as_bytes());
    assert_eq!(known["keys"], json!({ kid: 2 }));
    assert_eq!((&known["tree_size"], &known["counting"]), (&json!(6), &json!(false)));
    known["first_seen"]["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    site.registered(&testkit::opaque("thing", &json!({ "n": 3 }))).await;
    let later = issuer(testkit::ISSUER).await.json();
    assert_eq!((&later["entries"], &later["tree_size"]), (&json!(3), &json!(7)));
    let unknown = issuer("https://nobody.example/?a=b").await;
    assert_eq!(unknown.refusal(), refusal(404, "Not Found", "name-unknown"));
}

async fn chain(site: &Site) -> Value {
    let answer = site.get(&format!("/v1/issuers/{}/chain?sub={AGENT}", did())).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn ids(list: &Value) -> Vec<&str> {
    let id = |item: &'_ Value| item["entry_id"].as_str().map(str::to_owned);
    assert!(list.as_array().unwrap().iter().all(|item| id(item).is_some()));
    list.as_array().unwrap().iter().map(|item| item["entry_id"].as_str().unwrap()).collect()
}

fn id(statement: &SignedStatement) -> String {
    let digest: EntryDigest = statement.digest();
    digest.to_string()
}

#[tokio::test]
async fn a_chain_is_shown_in_its_order_with_its_gaps_forks_and_heads() {
    let site = Place::new().start().await;
    let one = first(1);
    let two = after(2, &one, 1);
    let three = after(3, &two, 2);
    let fork = after(4, &one, 1);
    for statement in [&three, &one, &testkit::vrf(9)] {
        site.registered(statement).await;
    }
    let shown = chain(&site).await;
    assert_eq!(ids(&shown["receipts"]), [id(&one), id(&three)]);
    assert_eq!(ids(&shown["gaps"]), [id(&two)]);
    assert_eq!(
        (&shown["gaps"][0]["position"], &shown["gaps"][0]["named_by"]),
        (&json!(1), &json!(id(&three)))
    );
    assert_eq!(shown["heads"], json!([id(&one), id(&three)]));
    assert_eq!((&shown["unchained"], &shown["complete"]), (&json!(1), &json!(true)));
    site.registered(&two).await;
    assert_eq!(site.register(&fork).await.status, 400);
    let shown = chain(&site).await;
    assert_eq!(ids(&shown["receipts"]), [id(&one), id(&two), id(&three)]);
    assert_eq!((&shown["gaps"], &shown["heads"]), (&json!([]), &json!([id(&three)])));
    let known = &shown["forks"][0];
    assert_eq!((&known["registered"], &known["refused"]), (&json!(id(&two)), &json!(id(&fork))));
    assert_eq!(known["rule"], "vrf-chain-fork");
    let missing = site.get(&format!("/v1/issuers/{}/chain?sub=nobody", did())).await;
    assert_eq!(missing.refusal(), refusal(404, "Not Found", "name-unknown"));
    let without = site.get(&format!("/v1/issuers/{}/chain", did())).await;
    assert_eq!((without.status, without.problem().get_code()), (400, Some("page")));
}

#[tokio::test]
async fn an_agent_is_summed_up_without_telling_of_the_few() {
    let site = Place::new().start().await;
    let failed = |n: u64, task: &str| {
        let mut json = receipt_json(n);
        json["verdict"] = json!("fail");
        json["results"] = json!({ "total": 1, "passed": 0, "failed": 1, "errors": 0 });
        json["task"] = json!({ "task_type": task });
        registration::vrf::VrfStatement::new(json, AGENT).unchained().sign(&verifier()).unwrap()
    };
    for n in 0..9 {
        site.registered(&testkit::vrf(n)).await;
    }
    for n in 20..26 {
        site.registered(&failed(n, "code")).await;
    }
    for n in 30..33 {
        site.registered(&failed(n, "text")).await;
    }
    for n in 40..43 {
        let redacted = receipt(n).unchained().redacted().sign(&verifier()).unwrap();
        let _ = site.register(&redacted).await;
    }
    let answer = site.get(&format!("/v1/agents/{AGENT}/summary")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let summary = answer.json();
    assert_eq!((&summary["subject"], &summary["receipts"]), (&json!(AGENT), &json!(18)));
    assert_eq!(summary["pass_rate"], 0.5);
    assert_eq!(
        summary["by_verdict"],
        json!({
            "groups": { "pass": { "receipts": 9, "pass_rate": 1.0 }, "fail": { "receipts": 9, "pass_rate": 0.0 } },
            "suppressed": 0
        })
    );
    assert_eq!(summary["by_task_type"], json!({ "groups": {}, "suppressed": 2 }), "one would tell the other");
    assert_eq!(summary["by_tier"]["groups"]["0"]["receipts"], 18);
    assert_eq!(summary["by_issuer"]["groups"][did()]["receipts"], 18);
    assert_eq!((&summary["smallest_group"], &summary["counting"]), (&json!(5), &json!(false)));
    assert_eq!(summary["redacted"].as_u64().unwrap() % 5, 0);
    assert!(summary["tree_size"].as_u64().unwrap() >= 19);
    let own = site.get(&format!("/v1/agents/{AGENT}/summary?issuer={}", did())).await.json();
    assert_eq!((&own["issuer"], &own["receipts"]), (&json!(did()), &json!(18)));
    assert_eq!(own["by_verdict"]["groups"]["pass"], json!({ "receipts": 10 }), "rounded");
    let stranger = site.get(&format!("/v1/agents/{AGENT}/summary?issuer=did:key:nobody")).await;
    assert_eq!(stranger.refusal(), refusal(404, "Not Found", "name-unknown"));
    let unknown = site.get(&format!("/v1/agents/{AGENT}/summary?verifier=x")).await;
    assert_eq!(unknown.status, 400, "{unknown:?}");
    let few = site.get("/v1/agents/nobody/summary").await;
    assert_eq!(few.refusal(), refusal(404, "Not Found", "name-unknown"));
}

/// Reads what the address answers until nothing is left to be counted.
async fn counted(site: &Site, address: &str) -> Value {
    let begun = Instant::now();
    loop {
        let answer = site.get(address).await.json();
        if answer["counting"] == json!(false) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the count never ends: {answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_issuer_of_many_entries_is_answered_before_all_are_counted() {
    let site = Place::new().start().await;
    let statements: Vec<_> = (0..600).map(|n| testkit::opaque("thing", &json!({ "n": n }))).collect();
    join_all(statements.iter().map(|statement| site.register(statement))).await;
    let address = "/v1/issuers/https%3A%2F%2Fissuer.example";
    let first = site.get(address).await.json();
    assert_eq!((&first["entries"], &first["counting"]), (&json!(250), &json!(true)), "one page of them");
    assert_eq!(first["last_seen"]["index"], 600, "after the policy");
    assert_eq!(counted(&site, address).await["entries"], 600);
}
