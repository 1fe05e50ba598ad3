//! Receipt chains: what the log has of them, after restarts, without the log, without the state, and with two signers.

use bytes::Bytes;
use data_encoding::BASE64;
use log_for_tests::LocalLog;
use registration::vrf::{VrfRecord, VrfStatement};
use scitt::SignedStatement;
use serde_json::Value;
use verification::ClientConfig;
use verifier::TrustStore;

use crate::site::{AGENT, Site, client, request, request_about_agent};

/// Another agent than [`AGENT`].
const OTHER_AGENT: &str = "did:web:other.example";
const TOKEN: Option<&str> = Some("token-of-a");

/// The only client, whose agent this is.
fn client_of(agent: &str) -> Vec<ClientConfig> {
    vec![ClientConfig { subject: Some(agent.into()), ..client("a", "token-of-a", 60) }]
}

fn stopped_log() -> LocalLog {
    LocalLog::stopped(&testkit::policy_toml())
}

async fn running_log() -> LocalLog {
    let mut log = stopped_log();
    log.go_on().await;
    log
}

fn decoded(answer: &Value, member: &str) -> Bytes {
    BASE64.decode(answer[member].as_str().unwrap().as_bytes()).unwrap().into()
}

fn is_delivered(job: &Value) -> bool {
    job.get("scitt_receipt").is_some()
}

/// Asserts that the log has exactly this number of receipts about [`AGENT`], in one chain.
async fn expect_whole(log: &LocalLog, issuer: &str, receipts: usize) {
    let listed = format!("v1/issuers/{issuer}/chain?sub={AGENT}");
    let chain: Value = log.client().json(&listed).await.unwrap();
    let positions: Vec<u64> =
        chain["receipts"].as_array().unwrap().iter().map(|one| one["position"].as_u64().unwrap()).collect();
    assert_eq!(positions, (0..receipts as u64).collect::<Vec<_>>(), "{chain}");
    assert_eq!(
        chain["gaps"].as_array().unwrap().len() + chain["forks"].as_array().unwrap().len(),
        0,
        "{chain}"
    );
}

#[tokio::test]
async fn each_receipt_follows_the_one_before_and_verifies_offline() {
    let log = running_log().await;
    let trust = TrustStore { self_certified: true, ..log.trust() };
    let mut site = Site::start(&log.url(), |config| config.receipt_wait = config.wait).await;
    for position in 0..4 {
        if position == 2 {
            site.stop().await;
            site.go_on().await;
        }
        let answer = site.verified(&request_about_agent("pass", &position.to_string())).await;
        assert_eq!(answer["position"], position);
        assert_eq!(answer["subject"], AGENT);
        let statement = SignedStatement::parse(decoded(&answer, "statement")).unwrap();
        VrfRecord::verify(&statement, None).unwrap();
        let verdict = verifier::verify_receipt(&statement, &decoded(&answer, "scitt_receipt"), &trust, now());
        assert!(verdict.is_verified(), "{}", verdict.why());
    }
    expect_whole(&log, &site.issuer, 4).await;
}

#[tokio::test]
async fn without_the_log_receipts_of_a_known_chain_are_signed_and_delivered_later() {
    let mut log = running_log().await;
    let site = Site::start(&log.url(), |_| ()).await;
    site.answer_when(&request_about_agent("pass", "0"), is_delivered).await;
    log.stop().await;
    for name in ["1", "2", "3"] {
        let answer = site.verified(&request_about_agent("pass", name)).await;
        assert!(!is_delivered(&answer), "{answer}");
    }
    log.go_on().await;
    for name in ["1", "2", "3"] {
        site.answer_when(&request_about_agent("pass", name), is_delivered).await;
    }
    expect_whole(&log, &site.issuer, 4).await;
}

#[tokio::test]
async fn without_its_state_a_service_continues_the_chain_that_the_log_has() {
    let log = running_log().await;
    let mut site = Site::start(&log.url(), |config| config.receipt_wait = config.wait).await;
    for name in ["0", "1"] {
        site.verified(&request_about_agent("pass", name)).await;
    }
    site.stop().await;
    site.lose_state();
    site.go_on().await;
    let third = site.verified(&request_about_agent("pass", "2")).await;
    assert_eq!(third["position"], 2);
    expect_whole(&log, &site.issuer, 3).await;
}

#[tokio::test]
async fn nothing_is_signed_for_an_unknown_chain_while_the_log_does_not_answer() {
    let mut log = stopped_log();
    let site = Site::start(&log.url(), |config| config.wait = std::time::Duration::from_millis(200)).await;
    assert_eq!(site.post(None, &request_about_agent("pass", "0")).await.status(), 202);
    log.go_on().await;
    site.answer_when(&request_about_agent("pass", "0"), is_delivered).await;
    expect_whole(&log, &site.issuer, 1).await;
}

#[tokio::test]
async fn a_request_that_names_no_agent_has_another_receipt_once_its_client_has_another_agent() {
    let log = running_log().await;
    let mut site = Site::start(&log.url(), |config| config.receipt_wait = config.wait).await;
    let mut answers: Vec<Value> = Vec::new();
    for agent in [AGENT, OTHER_AGENT, AGENT] {
        site.stop().await;
        site.configure(|config| config.clients = client_of(agent));
        site.go_on().await;
        let answer: Value = site.post(TOKEN, &request("pass", "0")).await.json().await.unwrap();
        assert_eq!(answer["subject"], agent, "{answer}");
        answers.push(answer);
    }
    assert_eq!((&answers[0], site.runner.runs()), (&answers[2], 2));
}

#[tokio::test]
async fn a_pending_request_keeps_the_agent_that_its_client_had() {
    let mut log = stopped_log();
    let pending = |config: &mut verification::Config| {
        (config.clients, config.wait) = (client_of(AGENT), std::time::Duration::from_millis(200));
    };
    let mut site = Site::start(&log.url(), pending).await;
    let accepted: Value = site.post(TOKEN, &request("pass", "0")).await.json().await.unwrap();
    site.stop().await;
    site.configure(|config| config.clients = client_of(OTHER_AGENT));
    site.go_on().await;
    log.go_on().await;
    let path = format!("/jobs/{}", accepted["job"].as_str().unwrap());
    let ended = loop {
        let job: Value = site.get(TOKEN, &path).await.json().await.unwrap();
        if job["state"] != "pending" {
            break job;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(ended["subject"], AGENT, "{ended}");
}

#[tokio::test]
async fn receipts_that_wait_for_the_log_do_not_fill_the_queue() {
    let log = stopped_log();
    let short = |config: &mut verification::Config| {
        (config.wait, config.queue) = (std::time::Duration::from_millis(200), 1);
    };
    let site = Site::start(&log.url(), short).await;
    for name in ["0", "1"] {
        site.answer_when(&request_about_agent("pass", name), |answer| answer["state"] == "pending").await;
    }
    site.answer_when(&request("pass", "about no agent"), |answer| answer["state"] == "done").await;
}

#[tokio::test]
async fn a_chain_that_another_process_extended_is_halted_and_not_signed_again() {
    let log = running_log().await;
    let site = Site::start(&log.url(), |config| config.receipt_wait = config.wait).await;
    let first = site.verified(&request_about_agent("pass", "0")).await;
    let previous = SignedStatement::parse(decoded(&first, "statement")).unwrap().digest();
    let mut receipt = testkit::receipt_json(7);
    receipt["subject"] = AGENT.into();
    let other = VrfStatement::new(receipt, AGENT).after(previous, 1).sign(&site.key()).unwrap();
    log.client().submit(other.bytes()).await.unwrap();

    let second = site.verified(&request_about_agent("pass", "1")).await;
    assert!(second["refused"].as_str().is_some() && !is_delivered(&second), "{second}");
    let third = site.post(None, &request_about_agent("pass", "2")).await;
    assert_eq!(third.status(), 409);
    let problem: Value = third.json().await.unwrap();
    assert_eq!(problem["code"], "chain-halted");
    assert!(problem["detail"].as_str().unwrap().contains("another process signs with this key"), "{problem}");
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
