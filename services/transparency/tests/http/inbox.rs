//! Statements that are accepted before they are in the log: every one gets an outcome, and the inbox has an end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::{Place, Site, refusal};
use registration::operator::Action;
use reqwest::Method;
use scitt::{SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};
use store::{FailingStore, Inbox, InboxBounds, Lifecycle, Memory, StoreMethod};

/// The label of `exp`, and of `nbf`.
const EXP: i64 = 4;
const NBF: i64 = 5;

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn builder(sub: &str, iss: &str) -> StatementBuilder {
    StatementBuilder::new("{}")
        .content_type("application/json")
        .kid(testkit::KID.as_bytes())
        .iss(iss)
        .sub(sub)
}

fn timed(sub: &str, claim: i64, seconds: i64) -> SignedStatement {
    builder(sub, testkit::ISSUER).claim(claim, seconds.into()).sign(&testkit::es256()).unwrap()
}

fn of(iss: &str, signer: &dyn Signer, n: u64) -> SignedStatement {
    builder(&format!("thing-{n}"), iss).sign(signer).unwrap()
}

fn statement(n: u64) -> SignedStatement {
    of(testkit::ISSUER, &testkit::es256(), n)
}

/// A process that never leads, as the test holds the lease of its store.
async fn follower(place: &Place, store: &Memory) -> (Site, Box<dyn store::Lease>) {
    place.start_on(store.clone(), |_| {}).await.service.stop().await;
    let lease = loop {
        match store.lease("the test").await.unwrap() {
            Some(lease) => break lease,
            None => tokio::task::yield_now().await,
        }
    };
    let site = place.start_on(store.clone(), |config| config.limits.receipt_wait = Duration::from_millis(1));
    (site.await, lease)
}

async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..1500 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} does not come");
}

async fn expect_registered(site: &Site, statement: &SignedStatement) {
    let location = site.location(statement);
    eventually("the receipt", async || (site.get(&location).await.status == 200).then_some(())).await;
}

async fn inbox(site: &Site) -> Value {
    site.command(Method::GET, "/inbox", "").await.json()
}

async fn refuse(site: &Site, entry: &str, reason: &str) -> (u16, Value) {
    let body = json!({ "entry_id": entry, "reason": reason }).to_string();
    let answer = site.command(Method::POST, "/inbox/refuse", body).await;
    (answer.status, answer.json())
}

#[tokio::test]
async fn r36_a_closed_window_is_refused_at_the_door_by_leader_and_follower_in_the_same_words() {
    let (place, store) = (Place::new(), Memory::new());
    let leader = place.start_on(store.clone(), |_| {}).await;
    let follower = place.start_on(store.clone(), |_| {}).await;
    let hour = 3600;
    for (sub, claim, time, rule) in
        [("late", EXP, now() - hour, "exp"), ("early", NBF, now() + 3 * 365 * 24 * hour, "nbf")]
    {
        let statement = timed(sub, claim, time);
        for site in [&leader, &follower] {
            let answer = site.register(&statement).await;
            assert_eq!(answer.refusal(), refusal(400, "Rejected", "policy"));
            let detail = answer.problem().detail.unwrap();
            assert!(detail.contains("the log's time is"), "{rule}: {detail}");
            assert_eq!(site.get(&site.location(&statement)).await.status, 404);
        }
    }
    assert_eq!(store.inbox_use().await.unwrap().rows, 0);
    let open = timed("in time", EXP, now() + hour);
    let answer = follower.register(&open).await;
    assert!(matches!(answer.status, 201 | 202), "{answer:?}");
    expect_registered(&follower, &open).await;
}

#[tokio::test]
async fn a_registered_statement_that_has_expired_since_is_still_answered_with_its_receipt() {
    let place = Place::new();
    let site = place.start_on(Memory::new(), |_| {}).await;
    let end = now() + 3;
    let statement = timed("short", EXP, end);
    site.registered(&statement).await;
    eventually("the end of its time", async || (now() > end).then_some(())).await;
    site.registered(&statement).await;
}

#[tokio::test]
async fn r57_a_full_inbox_answers_503_and_an_issuer_fills_only_its_share() {
    let (place, store) = (Place::new(), Memory::new());
    place.start_on(store.clone(), |_| {}).await.service.stop().await;
    let lease = store.lease("the test").await.unwrap().unwrap();
    let site = place
        .start_on(store.clone(), |config| {
            config.limits.receipt_wait = Duration::from_millis(1);
            config.limits.inbox = InboxBounds { rows: 3, issuer_rows: 2, ..InboxBounds::NONE };
        })
        .await;
    let honest = |n| of(testkit::ISSUER_384, &testkit::es384(), n);
    let (first, second) = (statement(1), statement(2));
    for statement in [&first, &second] {
        assert_eq!(site.register(statement).await.status, 202);
    }
    let (third, fourth, fifth) = (statement(3), honest(4), honest(5));
    for (statement, words) in [(&third, "of this issuer"), (&fifth, "Too many statements are")] {
        let answer = site.register(statement).await;
        assert_eq!(answer.refusal(), refusal(503, "Service Unavailable", "inbox-full"));
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert!(answer.problem().detail.unwrap().contains(words), "{answer:?}");
        assert_eq!(site.get(&site.location(statement)).await.status, 404, "nothing was kept");
        assert_eq!(site.register(&fourth).await.status, 202, "beside an issuer who fills its share");
    }
    let depth = eventually("the depth", async || {
        let metrics = site.get(&format!("{}/metrics", site.admin)).await.text();
        metrics.contains("tabellion_inbox_rows 3\n").then_some(metrics)
    });
    let metrics = depth.await;
    let bytes = store.inbox_use().await.unwrap().bytes;
    assert!(metrics.contains(&format!("tabellion_inbox_bytes {bytes}\n")), "{metrics}");
    assert!(metrics.contains("tabellion_inbox_oldest_seconds "), "{metrics}");
    drop(lease);
    for statement in [&first, &second, &fourth] {
        expect_registered(&site, statement).await;
    }
    assert!(matches!(site.register(&fifth).await.status, 201 | 202));
}

#[tokio::test]
async fn the_operator_lists_what_is_accepted_and_refuses_one_of_it() {
    let (place, store) = (Place::new(), Memory::new());
    let (site, lease) = follower(&place, &store).await;
    let (one, two) = (statement(1), statement(2));
    for statement in [&one, &two] {
        assert_eq!(site.register(statement).await.status, 202);
    }
    let listed = inbox(&site).await;
    assert_eq!(listed["leads"], false);
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    for (item, statement) in items.iter().zip([&one, &two]) {
        assert_eq!(item["entry_id"], statement.digest().to_string());
        assert_eq!((&item["issuer"], &item["state"]), (&testkit::ISSUER.into(), &"waiting".into()));
        assert!(item["bytes"].as_u64().unwrap() > statement.bytes().len() as u64);
        assert!(item["age_seconds"].as_u64().unwrap() < 60 && item["accepted"].is_string(), "{item}");
    }
    let (id, nobody) = (one.digest().to_string(), "0".repeat(64));
    let entry = format!("/v1/entries/{id}");
    let readings = [
        format!("{entry}/statement"),
        format!("{entry}/evidence"),
        format!("/v1/proof/inclusion?entry_id={id}"),
        entry,
    ];
    for path in &readings {
        let answer = site.get(path).await;
        assert_eq!(answer.refusal(), refusal(404, "Not Found", "entry-pending"), "{path}");
        assert!(answer.header("retry-after").is_some(), "{path}");
    }
    let (status, refused) = refuse(&site, &id, "sent by mistake").await;
    assert_eq!((status, &refused["entry_id"]), (200, &id.clone().into()), "{refused}");
    let answer = site.get(&site.location(&one)).await;
    assert_eq!(answer.refusal(), refusal(404, "Registration Failed", "registration-failed"));
    assert_eq!(answer.problem().detail.as_deref(), Some("refused by the operator: sent by mistake"));
    for path in &readings {
        let answer = site.get(path).await;
        assert_eq!(answer.refusal(), refusal(404, "Registration Failed", "registration-failed"), "{path}");
    }
    for (entry, reason, status, code) in [
        (id.as_str(), "again", 409, "inbox-decided"),
        (&nobody, "why", 404, "not-in-inbox"),
        ("neither", "why", 400, "inbox"),
        (&id, "", 400, "inbox"),
        (&id, "a\nb", 400, "inbox"),
    ] {
        let (response, problem) = refuse(&site, entry, reason).await;
        assert_eq!((response, &problem["code"]), (status, &code.into()), "{problem}");
    }
    drop(lease);
    expect_registered(&site, &two).await;
    assert_eq!(refuse(&site, &two.digest().to_string(), "too late").await.0, 409);
    assert_eq!(site.get(&site.location(&one)).await.status, 404, "a refusal is final");
    let listed = inbox(&site).await;
    assert_eq!((&listed["leads"], &listed["items"]), (&true.into(), &json!([])));
}

#[tokio::test]
async fn what_was_accepted_has_failed_once_the_operator_has_ended_the_log() {
    let (place, store) = (Place::new(), Memory::new());
    let never_drains = FailingStore::new(store.clone());
    never_drains.fail_every(StoreMethod::PendingKeys);
    let leader = place.start_on(never_drains, |_| {}).await;
    let follower =
        place.start_on(store.clone(), |config| config.limits.receipt_wait = Duration::from_millis(1)).await;
    let one = statement(1);
    assert_eq!(follower.register(&one).await.status, 202);
    assert_eq!(follower.get(&follower.location(&one)).await.status, 204);
    let freeze = Action::Freeze { reason: "replaced by log 2".to_owned() };
    leader.registered(&testkit::operator_action(&freeze)).await;
    for site in [&leader, &follower] {
        let answer = site.get(&site.location(&one)).await;
        assert_eq!(answer.refusal(), refusal(404, "Registration Failed", "registration-failed"));
        let detail = answer.problem().detail.unwrap();
        assert_eq!(detail, "the operator ended the log before the statement was registered");
    }
}

#[tokio::test]
async fn what_was_accepted_waits_while_its_log_moves() {
    let (place, store) = (Place::new(), Memory::new());
    let (site, _lease) = follower(&place, &store).await;
    let one = statement(1);
    assert_eq!(site.register(&one).await.status, 202);
    store.freeze("operator", 7).await.unwrap();
    assert_eq!(site.get(&site.location(&one)).await.status, 204);
}
