//! The registration policy over HTTP: in force, with its history, and asked without registering anything.

use std::time::Duration;

use crate::common::{Answer, COSE, Place, Site, forms, refusal, statement};
use data_encoding::BASE64URL_NOPAD;
use registration::Policy;
use registration::operator::Action;
use registration::policy_statement as statement;
use registration::vrf::VrfStatement;
use reqwest::Method;
use scitt::{SignedStatement, StatementBuilder};
use serde_json::{Value, json};
use store::{Lifecycle, Memory};

fn revision(n: u64) -> String {
    testkit::policy_toml().replace("revision = 0", &format!("revision = {n}"))
}

/// The policy of the test kit, with a condition on JSON.
fn with_condition(when: &str) -> String {
    let json = "content_type = \"application/json\"\ndetached = true\nhash_envelope = true\n";
    let policy = testkit::policy_toml();
    assert!(policy.contains(json));
    let rule = format!("[[type.rule]]\nname = \"added\"\nwhen = '''{when}'''\nthen = \"refuse\"\n");
    policy.replace(json, &format!("{json}{rule}"))
}

/// Signs a policy as the successor of another.
fn signed(policy: &str, current: &str) -> SignedStatement {
    let (policy, current) = (Policy::from_toml(policy).unwrap(), Policy::from_toml(current).unwrap());
    statement::sign(&policy, &current, &testkit::operator()).unwrap()
}

async fn evaluate(site: &Site, statement: &SignedStatement) -> Answer {
    site.send(
        Method::POST,
        "/v1/policy/evaluate",
        &[("content-type", COSE), ("accept", "application/json")],
        statement.bytes().clone(),
    )
    .await
}

async fn evaluated(site: &Site, statement: &SignedStatement) -> Value {
    let answer = evaluate(site, statement).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")), "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn the_policy_is_shown_with_every_policy_before_it() {
    let site = Place::new().start().await;
    site.registered(&statement(1)).await;
    let second = signed(&revision(1), &revision(0));
    site.registered(&second).await;
    site.registered(&statement(2)).await;
    let third = signed(&revision(2), &revision(1));
    site.registered(&third).await;
    let policy = site.get("/v1/policy").await.json();
    assert_eq!(
        (&policy["revision"], &policy["index"], &policy["in_force_from"]),
        (&json!(2), &json!(4), &json!(5))
    );
    assert_eq!(policy["entry_id"], third.digest().to_string());
    let history = policy["history"].as_array().unwrap();
    let response: Vec<_> =
        history.iter().map(|past| (past["revision"].as_u64(), past["index"].as_u64())).collect();
    assert_eq!(response, [(Some(2), Some(4)), (Some(1), Some(2)), (Some(0), Some(0))]);
    assert_eq!(history[1]["entry_id"], second.digest().to_string());
    assert_eq!(history[1]["in_force_from"], 3);
    assert_eq!(history[1]["digest"], Policy::from_toml(&revision(1)).unwrap().digest().to_string());
    for past in history {
        past["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    }
    assert_eq!(site.get("/v1/policy").await.json(), policy, "what was read once stays so");
}

#[tokio::test]
async fn each_policy_can_be_had_by_its_revision_with_its_statement() {
    let site = Place::new().start().await;
    let second = signed(&revision(1), &revision(0));
    site.registered(&second).await;
    let first = site.get("/v1/policy/0").await.json();
    assert_eq!((&first["index"], &first["policy"]["revision"]), (&json!(0), &json!(0)));
    let bytes = BASE64URL_NOPAD.decode(first["statement"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!(SignedStatement::parse(bytes).unwrap().digest().to_string(), first["entry_id"]);
    let cose = site.send(Method::GET, "/v1/policy/1", &[("accept", COSE)], "").await;
    assert_eq!((cose.status, cose.header("content-type")), (200, Some(COSE)));
    assert_eq!(cose.body, second.bytes().to_vec());
    assert_eq!(site.get("/v1/policy/2").await.status, 404);
    assert_eq!(site.get("/v1/policy/none").await.status, 400);
}

#[tokio::test]
async fn the_configuration_documents_name_the_policy_entry() {
    let site = Place::new().start().await;
    let second = signed(&revision(1), &revision(0));
    site.registered(&second).await;
    for path in ["/.well-known/scitt-configuration", "/.well-known/transparency-configuration"] {
        let answer = site.get(path).await;
        let id = second.digest().to_string();
        assert!(answer.text().contains(&id), "{answer:?}");
        assert!(answer.text().contains(&format!("/v1/entries/{id}/statement")), "{answer:?}");
    }
}

#[tokio::test]
async fn a_statement_that_would_be_admitted_is_told_so_and_not_registered() {
    let site = Place::new().start().await;
    let one = statement(1);
    let response = evaluated(&site, &one).await;
    assert_eq!(response["would_admit"], true);
    assert_eq!(response["entry_id"], one.digest().to_string());
    assert_eq!(response["rule"], "application/json");
    assert_eq!((&response["policy"]["index"], &response["policy"]["revision"]), (&json!(0), &json!(0)));
    assert_eq!(response["facts"]["sub"], "thing-1");
    assert_eq!((&response["taken"], &response["valid"]), (&json!([]), &json!({})));
    assert!(response.get("violation").is_none() && response.get("registered_at").is_none(), "{response}");
    assert_eq!(site.get(&format!("/v1/entries/{}", one.digest())).await.status, 404);
    let entries = site.get("/v1/entries").await.json();
    assert_eq!(entries["entries"].as_array().unwrap().len(), 1, "entry 0 alone");
}

#[tokio::test]
async fn on_a_frozen_log_a_dry_run_is_refused_as_the_registration_is() {
    let (place, memory) = (Place::new(), Memory::new());
    let site = place.start_on(memory.clone(), |_| {}).await;
    let (known, new) = (statement(1), statement(2));
    site.registered(&known).await;
    assert_eq!(evaluated(&site, &new).await["would_admit"], true);
    memory.freeze("operator", 7).await.unwrap();
    let mut status = site.service.sequencer().status();
    let halted = status.wait_for(|status| status.obstacle().is_some());
    tokio::time::timeout(Duration::from_secs(60), halted).await.expect("it stops").unwrap();
    let refused = evaluate(&site, &new).await;
    assert_eq!(refused.refusal(), refusal(403, "Log Frozen", "log-frozen"));
    let response = evaluated(&site, &known).await;
    assert_eq!((&response["would_admit"], &response["registered_at"]), (&json!(true), &json!(1)));
    let image =
        StatementBuilder::new("{}").content_type("image/png").kid(testkit::KID).iss(testkit::ISSUER).sub("s");
    let response = evaluated(&site, &image.sign(&testkit::es256()).unwrap()).await;
    assert_eq!(response["violation"]["rule"], "content-type-not-admitted", "the policy refuses it first");
}

#[tokio::test]
async fn a_refusal_is_an_answer_with_its_rule_and_place() {
    let place = Place::new();
    place.write_policy(&with_condition("input.sub == \"thing-7\""));
    let site = place.start().await;
    let response = evaluated(&site, &statement(7)).await;
    assert_eq!(response["would_admit"], false);
    assert_eq!(
        (&response["violation"]["rule"], &response["violation"]["place"]),
        (&json!("added"), &json!("statement"))
    );
    let image =
        StatementBuilder::new("{}").content_type("image/png").kid(testkit::KID).iss(testkit::ISSUER).sub("s");
    let response = evaluated(&site, &image.sign(&testkit::es256()).unwrap()).await;
    assert_eq!(response["violation"]["rule"], "content-type-not-admitted");
    assert_eq!(response["violation"]["place"], "protected/3");
    let stranger =
        StatementBuilder::new("{}").content_type("text/plain").kid("k").iss("https://who.example").sub("s");
    let response = evaluated(&site, &stranger.sign(&testkit::es256()).unwrap()).await;
    assert_eq!(response["would_admit"], false);
    assert!(response["violation"]["detail"].as_str().unwrap().contains("who.example"), "{response}");
}

#[tokio::test]
async fn the_rule_of_a_condition_refuses_when_it_is_registered_too() {
    let place = Place::new();
    place.write_policy(&with_condition("input.sub == \"thing-7\""));
    let site = place.start().await;
    let answer = site.register(&statement(7)).await;
    assert_eq!(answer.refusal(), refusal(400, "Rejected", "policy"));
    assert!(answer.problem().detail.unwrap().to_string().contains("input.sub"), "{answer:?}");
    site.registered(&statement(8)).await;
}

#[tokio::test]
async fn a_condition_that_runs_out_of_time_is_503_and_no_refusal() {
    let place = Place::new();
    let numbers: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    place.write_policy(&with_condition(&format!(
        "n := [{}]; some a in n; some b in n; some c in n; some d in n; a + b + c + d < 0",
        numbers.join(",")
    )));
    let site = place.start().await;
    let answer = site.register(&statement(1)).await;
    assert_eq!(answer.refusal(), refusal(503, "Service Unavailable", "undecided"));
    assert!(answer.header("retry-after").is_some());
    let dry = evaluate(&site, &statement(1)).await;
    assert_eq!((dry.status, dry.header("retry-after").is_some()), (503, true), "{dry:?}");
}

#[tokio::test]
async fn a_claim_that_an_entry_made_already_is_found_in_a_dry_run() {
    let site = Place::new().start().await;
    let first = testkit::vrf(1);
    site.registered(&first).await;
    let again = VrfStatement::new(testkit::receipt_json(1), "did:web:another.example")
        .sign(&testkit::verifier())
        .unwrap();
    let response = evaluated(&site, &again).await;
    assert_eq!(response["would_admit"], false, "{response}");
    assert_eq!(response["taken"][0]["by"], 1);
    assert_eq!(response["violation"]["rule"], response["taken"][0]["rule"]);
}

#[tokio::test]
async fn the_next_policy_can_be_asked_about_too() {
    let site = Place::new().start().await;
    let response = evaluated(&site, &signed(&revision(1), &revision(0))).await;
    assert_eq!((&response["would_admit"], &response["rule"]), (&json!(true), &json!("policy")));
    let response = evaluated(&site, &signed(&revision(2), &revision(0))).await;
    assert_eq!(
        (&response["would_admit"], &response["violation"]["rule"]),
        (&json!(false), &json!("policy-revision"))
    );
    assert_eq!(site.get("/v1/policy").await.json()["revision"], 0, "nothing was registered");
}

#[tokio::test]
async fn a_statement_that_is_registered_is_told_where() {
    let site = Place::new().start().await;
    let one = testkit::vrf(1);
    site.registered(&one).await;
    let response = evaluated(&site, &one).await;
    assert_eq!(
        (&response["would_admit"], &response["registered_at"], &response["taken"]),
        (&json!(true), &json!(1), &json!([]))
    );
}

#[tokio::test]
async fn an_erasure_that_meets_a_hold_is_told_so() {
    let site = Place::new().start().await;
    let one = statement(1);
    site.registered(&one).await;
    let erasure = registration::erasure::NewErasure {
        sequence: 0,
        entries: vec![one.digest()],
        reason: "somebody asked".into(),
        rule: "gdpr-17".into(),
        at: None,
        authorized_by: None,
    };
    let policy = Policy::from_toml(&revision(0)).unwrap();
    let (log, operators) = ((testkit::LOG_ISS, testkit::ORIGIN), &policy.contents().operators);
    let erasure = registration::erasure::sign(&erasure, log, operators, &testkit::operator()).unwrap();
    assert_eq!(evaluated(&site, &erasure).await["would_admit"], true);
    let hold = testkit::operator_action(&Action::numbered(one.digest(), "2026-17", 0));
    let hold = json!({ "statement": BASE64URL_NOPAD.encode(hold.bytes()) }).to_string();
    let answer = site.command(Method::POST, "/holds", hold).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let response = evaluated(&site, &erasure).await;
    assert_eq!(
        (&response["would_admit"], &response["violation"]["rule"]),
        (&json!(false), &json!("entry-held"))
    );
    assert_eq!(site.register(&erasure).await.refusal(), refusal(409, "On Hold", "entry-held"));
}

#[tokio::test]
async fn a_statement_whose_time_has_not_come_is_told_when_it_will() {
    let site = Place::new().start().await;
    let later = StatementBuilder::new("{}")
        .content_type("application/json")
        .kid(testkit::KID)
        .iss(testkit::ISSUER)
        .sub("s");
    let later = later.claim(5, 4_102_444_800_i64.into()).sign(&testkit::es256()).unwrap();
    let response = evaluated(&site, &later).await;
    assert_eq!((&response["would_admit"], &response["violation"]["rule"]), (&json!(false), &json!("nbf")));
    assert_eq!(response["valid"]["not_before"], "2099-12-31T23:55:00Z");
}

#[tokio::test]
async fn a_detached_payload_comes_in_a_form_as_it_does_to_register() {
    let site = Place::new().start().await;
    let detached = StatementBuilder::new("{\"a\":1}").detached().content_type("application/json");
    let detached = detached.kid(testkit::KID).iss(testkit::ISSUER).sub("s").sign(&testkit::es256()).unwrap();
    let body = forms::form(detached.bytes(), b"{\"a\":1}");
    let answer = site.post_multipart("/v1/policy/evaluate", &forms::form_type(), body).await;
    assert_eq!((answer.status, &answer.json()["would_admit"]), (200, &json!(true)));
    let alone = evaluated(&site, &detached).await;
    assert_eq!((&alone["would_admit"], alone["violation"]["rule"].is_string()), (&json!(false), true));
}

#[tokio::test]
async fn what_is_no_statement_is_no_question() {
    let site = Place::new().start().await;
    let send = async |content_type: &str, body: &'static [u8]| {
        site.send(Method::POST, "/v1/policy/evaluate", &[("content-type", content_type)], body).await.status
    };
    assert_eq!(send(COSE, b"nonsense").await, 400);
    assert_eq!(send("text/plain", b"nonsense").await, 415);
    assert_eq!(send(COSE, &[0xd2; 2 << 20]).await, 413);
}

#[tokio::test]
async fn asking_costs_what_registering_costs_but_no_issuers_quota() {
    let site = Place::new()
        .start_with(|config| {
            config.limits.writes = transparency::Rate::per_second(1, 3);
            config.limits.issuer = Some(transparency::Rate::per_second(1, 1));
        })
        .await;
    assert_eq!(evaluate(&site, &statement(1)).await.status, 200);
    assert_eq!(evaluate(&site, &statement(2)).await.status, 200);
    site.registered(&statement(3)).await;
    assert_eq!(evaluate(&site, &statement(4)).await.status, 429);
}
