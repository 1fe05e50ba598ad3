//! Answers of the service: results, jobs, tokens, quotas, and requests that cannot be run.

use data_encoding::BASE64;
use scitt::SignedStatement;
use serde_json::{Value, json};
use serving::problem::ErrorDocumentation;

use crate::site::{NO_LOG, Site, client, request, request_about_agent};

#[tokio::test]
async fn work_that_passes_or_fails_has_a_receipt_and_the_same_request_the_same_one() {
    let site = Site::start(NO_LOG, |_| ()).await;
    for (work, verdict) in [("pass", "pass"), ("fail", "fail")] {
        let answer = site.verified(&request(work, "one")).await;
        assert_eq!(answer["verdict"], verdict);
        assert_eq!(answer["receipt"]["verdict"], verdict);
        assert_eq!(answer["receipt"]["task"]["task_id"], "one");
        let statement = BASE64.decode(answer["statement"].as_str().unwrap().as_bytes()).unwrap();
        let statement = SignedStatement::parse(statement).unwrap();
        assert_eq!(answer["entry"], statement.digest().to_string());
        let record = registration::vrf::VrfRecord::verify(&statement, None).unwrap();
        assert_eq!(record.chain, registration::vrf::Chain::Unchained);
        let id = answer["receipt"]["receipt_id"].as_str().unwrap();
        assert_eq!(answer["subject"], format!("urn:uuid:{id}"), "it is about no agent");
        assert!(answer.get("scitt_receipt").is_none(), "the log is down");
        assert_eq!(answer, site.verified(&request(work, "one")).await);
    }
    assert_eq!(site.runner.runs(), 2);
}

#[tokio::test]
async fn a_result_outlives_the_process() {
    let mut site = Site::start(NO_LOG, |_| ()).await;
    let before = site.verified(&request("pass", "one")).await;
    site.stop().await;
    site.go_on().await;
    assert_eq!(before, site.verified(&request("pass", "one")).await);
    assert_eq!(site.runner.runs(), 1);
}

#[tokio::test]
async fn checks_that_take_long_are_a_job_and_a_full_queue_takes_no_more() {
    let short = |config: &mut verification::Config| {
        (config.wait, config.queue) = (std::time::Duration::from_millis(50), 1);
    };
    let site = Site::start(NO_LOG, short).await;
    let answer = site.post(None, &request("wait", "one")).await;
    assert_eq!(answer.status(), 202);
    let location = answer.headers()["location"].to_str().unwrap().to_owned();
    let job: Value = answer.json().await.unwrap();
    assert_eq!(
        (&job["state"], &location),
        (&json!("pending"), &format!("/jobs/{}", job["job"].as_str().unwrap()))
    );

    let full = site.post(None, &request("pass", "two")).await;
    assert_eq!(full.status(), 503);
    assert!(full.headers().contains_key("retry-after"));
    assert_eq!(full.json::<Value>().await.unwrap()["code"], "queue-full");
    assert_eq!(site.post(None, &request("wait", "one")).await.status(), 202, "it has its place already");

    site.runner.release();
    let done = site.answer_when(&request("wait", "one"), |job| job["state"] == "done").await;
    assert_eq!(done["verdict"], "pass");
    assert_eq!(done, site.get(None, &location).await.json::<Value>().await.unwrap());
    assert_eq!(site.runner.runs(), 1);
}

#[tokio::test]
async fn a_job_that_a_stop_interrupted_is_run_at_the_next_start() {
    let short = |config: &mut verification::Config| config.wait = std::time::Duration::from_millis(50);
    let mut site = Site::start(NO_LOG, short).await;
    let job: Value = site.post(None, &request("wait", "one")).await.json().await.unwrap();
    site.stop().await;
    site.runner.release();
    site.go_on().await;
    let done = site.answer_when(&request("wait", "one"), |job| job["state"] == "done").await;
    assert_eq!((&done["verdict"], &done["job"]), (&json!("pass"), &job["job"]));
}

#[tokio::test]
async fn a_job_that_ended_the_process_twice_is_not_run_by_the_next_start() {
    let short = |config: &mut verification::Config| config.wait = std::time::Duration::from_millis(50);
    let mut site = Site::start(NO_LOG, short).await;
    let job: Value = site.post(None, &request("wait", "one")).await.json().await.unwrap();
    let id = job["job"].as_str().unwrap();
    site.stop().await;
    site.runner.release();
    let store = site.store().await;
    for _ in 0..2 {
        assert!(store.begin_checks(id).await.unwrap().is_some());
    }
    store.close().await;
    drop(store);
    let runs = site.runner.runs();
    site.go_on().await;
    let failed: Value = site.get(None, &format!("/jobs/{id}")).await.json().await.unwrap();
    assert_eq!((&failed["state"], &failed["code"]), (&json!("failed"), &json!("interrupted")));
    assert_eq!(site.runner.runs(), runs);
    let done = site.answer_when(&request("wait", "one"), |job| job["state"] == "done").await;
    assert_eq!(done["verdict"], "pass", "a repetition runs it");
}

#[tokio::test]
async fn a_failed_job_that_is_repeated_several_times_at_once_runs_once() {
    let short = |config: &mut verification::Config| config.wait = std::time::Duration::from_secs(2);
    let site = Site::start(NO_LOG, short).await;
    let request = request("broken first", "one");
    assert_eq!(site.post(None, &request).await.status(), 503);
    let (one, other) = tokio::join!(site.post(None, &request), site.post(None, &request));
    assert_eq!((one.status().as_u16(), other.status().as_u16()), (202, 202));
    site.runner.release();
    let done = site.answer_when(&request, |job| job["state"] == "done").await;
    assert_eq!((&done["verdict"], site.runner.runs()), (&json!("pass"), 2));
}

#[tokio::test]
async fn requests_that_cannot_be_run_name_the_place_and_failures_may_be_tried_again() {
    let site = Site::start(NO_LOG, |config| config.body_bytes = 2000).await;
    for (body, status, code) in [
        (json!({ "tier": 9, "artifact": { "content": "x" } }), 422, "request"),
        (request("no engine", "one"), 422, "engine-unavailable"),
        (request("broken", "one"), 503, "runner-failed"),
        (request(&"x".repeat(2000), "one"), 413, "too-large"),
    ] {
        let answer = site.post(None, &body).await;
        assert_eq!(answer.status(), status, "{body}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        let problem: Value = answer.json().await.unwrap();
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{problem}");
    }
    let runs = site.runner.runs();
    assert_eq!(site.post(None, &request("broken", "one")).await.status(), 503);
    assert_eq!(site.runner.runs(), runs + 1, "a failure is not a result");

    let problem = site.post(None, &json!({ "tier": 9, "artifact": { "content": "x" } })).await;
    assert_eq!(problem.json::<Value>().await.unwrap()["pointer"], "/tier");
    let form = reqwest::Client::new().post(site.url("/verify")).body("tier=1").send().await.unwrap();
    assert_eq!(form.status(), 415);
    assert_eq!(site.get(None, "/jobs/none").await.status(), 404);
    assert_eq!(site.get(None, "/elsewhere").await.json::<Value>().await.unwrap()["code"], "not-found");
}

#[tokio::test]
async fn clients_have_tokens_quotas_and_jobs_of_their_own() {
    let tokens = |config: &mut verification::Config| {
        config.clients = vec![client("a", "token-of-a", 2), client("b", "token-of-b", 60)];
    };
    let site = Site::start(NO_LOG, tokens).await;
    for wrong in [None, Some("another")] {
        let answer = site.post(wrong, &request("pass", "one")).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["www-authenticate"]),
            (401, &"Bearer".parse().unwrap())
        );
    }
    let a = Some("token-of-a");
    let first: Value = site.post(a, &request("pass", "one")).await.json().await.unwrap();
    let job = format!("/jobs/{}", first["job"].as_str().unwrap());
    assert_eq!(site.get(a, &job).await.status(), 200);
    assert_eq!(site.get(Some("token-of-b"), &job).await.status(), 404, "it is another client's");
    site.post(a, &request("pass", "two")).await;
    let third = site.post(a, &request("pass", "three")).await;
    assert_eq!(third.status(), 429);
    assert!(third.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn a_client_with_an_agent_of_its_own_sends_no_work_of_another() {
    let one_agent = |config: &mut verification::Config| {
        config.clients = vec![client("a", "token-of-a", 60), client("b", "token-of-b", 60)];
        config.clients[1].subject = Some("urn:x:agent-of-b".into());
        config.wait = std::time::Duration::from_millis(50);
    };
    let site = Site::start(NO_LOG, one_agent).await;
    let about_another = request_about_agent("pass", "one");
    let refused = site.post(Some("token-of-b"), &about_another).await;
    assert_eq!(refused.status(), 403);
    let problem: Value = refused.json().await.unwrap();
    assert_eq!((&problem["code"], &problem["pointer"]), (&json!("subject"), &json!("/subject")));
    assert_eq!(site.runner.runs(), 0);

    let mut about_its_own = request("pass", "two");
    about_its_own["subject"] = "urn:x:agent-of-b".into();
    for (token, accepted) in [
        ("token-of-b", about_its_own),
        ("token-of-b", request("pass", "three")),
        ("token-of-a", about_another),
    ] {
        let answer = site.post(Some(token), &accepted).await;
        assert_eq!(answer.status(), 202, "the chain is not known until the log answers");
    }
}

#[tokio::test]
async fn a_client_that_floods_the_queue_leaves_places_and_workers_for_others() {
    let several = |config: &mut verification::Config| {
        config.clients = vec![client("a", "token-of-a", 60), client("b", "token-of-b", 60)];
        (config.wait, config.queue, config.workers) = (std::time::Duration::from_millis(50), 4, 2);
    };
    let site = Site::start(NO_LOG, several).await;
    let (a, b) = (Some("token-of-a"), Some("token-of-b"));
    for name in ["one", "two"] {
        assert_eq!(site.post(a, &request("wait", name)).await.status(), 202);
    }
    let third = site.post(a, &request("wait", "three")).await;
    assert_eq!(third.status(), 429);
    assert!(third.headers().contains_key("retry-after"));
    assert_eq!(third.json::<Value>().await.unwrap()["code"], "queue-share");

    assert!([200, 202].contains(&site.post(b, &request("pass", "one")).await.status().as_u16()));
    while site.post(b, &request("pass", "one")).await.status() != 200 {}
    site.runner.release();
    while site.post(a, &request("wait", "three")).await.status() != 200 {}
}

#[tokio::test]
async fn engines_are_listed_with_their_digests() {
    let site = Site::start(NO_LOG, |_| ()).await;
    let engines: Value = site.get(None, "/v1/engines").await.json().await.unwrap();
    assert_eq!((&engines["issuer"], &engines["tiers"]), (&json!(site.issuer), &json!([0, 1, 2])));
    assert_eq!(engines["engines"][0]["runs"], "JavaScript functions");
    assert!(engines["engines"][0]["digests"]["fake"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(engines["missing"], json!(["no solver is installed"]));
}

#[tokio::test]
async fn an_operator_names_the_documentation_that_problems_link_to() {
    let own = ErrorDocumentation::parse("https://docs.example/errors").unwrap();
    let site = Site::start(NO_LOG, |config| config.error_documentation = own).await;
    let problem: Value = site.get(None, "/elsewhere").await.json().await.unwrap();
    assert_eq!(problem["type"], "https://docs.example/errors/not-found");
}

#[tokio::test]
async fn every_error_is_described_also_malformed_requests_and_panics() {
    let site = Site::start(NO_LOG, |_| ()).await;
    site.runner.become_defective();
    for (path, status, code) in [
        ("/jobs/%FF", 400, "request-malformed"),
        ("/elsewhere", 404, "not-found"),
        ("/verify", 405, "method"),
        ("/v1/engines", 500, "internal"),
    ] {
        let answer = site.get(None, path).await;
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json", "{path}");
        assert_eq!(answer.headers().contains_key("allow"), status == 405, "{path}");
        let number = answer.headers()["x-request-id"].clone();
        let problem: Value = answer.json().await.unwrap();
        let address = format!("https://tabellion.dev/errors/{code}");
        assert_eq!((&problem["code"], &problem["type"]), (&json!(code), &json!(address)), "{path}");
        let title = http::StatusCode::from_u16(status).unwrap().canonical_reason();
        assert_eq!((&problem["status"], &problem["title"]), (&json!(status), &json!(title)), "{path}");
        let number = number.to_str().unwrap();
        assert_eq!(problem["instance"], format!("urn:uuid:{number}"), "{path}");
    }
}
