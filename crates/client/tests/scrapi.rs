//! What a service may answer, in the words of draft 11 and of its predecessors, over real HTTP.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use client::{Begin, Client, ClientError, Options, Posted};
use merkle::EntryDigest;
use scitt::{Algorithm, CoseKey, KeySet, Problem, Signer, SigningKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Answers with what it was given, in that order, whatever is asked.
struct Script {
    answers: Mutex<VecDeque<Response<Body>>>,
}

async fn service(answers: Vec<Response<Body>>) -> Client {
    let script = Arc::new(Script { answers: Mutex::new(answers.into()) });
    let app = Router::new().fallback(next).with_state(script);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    Client::new(
        &format!("http://{address}"),
        Options { patience: Duration::from_secs(5), ..Options::default() },
    )
    .unwrap()
}

async fn next(State(script): State<Arc<Script>>) -> Response<Body> {
    script.answers.lock().unwrap().pop_front().unwrap_or_else(|| answer(500, &[], ""))
}

fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let response = Response::builder().status(status);
    headers
        .iter()
        .fold(response, |response, (name, value)| response.header(*name, *value))
        .body(body.into())
        .unwrap()
}

fn problem(status: u16, title: &str, detail: &str) -> Response<Body> {
    let body = Problem::new(title, detail).code("a-code").encode();
    answer(
        status,
        &[("content-type", "application/concise-problem-details+cbor"), ("retry-after", "0")],
        body,
    )
}

const MESSAGE: Bytes = Bytes::from_static(b"a statement");
const LATER: &[(&str, &str)] = &[("location", "/entries/a"), ("retry-after", "0")];

#[tokio::test]
async fn a_receipt_that_comes_at_once_is_taken() {
    let client = service(vec![answer(201, &[("location", "/entries/a")], "receipt")]).await;
    let (location, receipt) = client.submit(&MESSAGE).await.unwrap();
    assert_eq!((location.path(), &receipt[..]), ("/entries/a", &b"receipt"[..]));
}

#[tokio::test]
async fn a_registration_that_takes_longer_is_polled_until_its_receipt_is_there() {
    let client = service(vec![
        answer(202, LATER, ""),
        answer(204, LATER, ""),
        answer(204, LATER, ""),
        answer(200, LATER, "receipt"),
    ])
    .await;
    assert_eq!(client.submit(&MESSAGE).await.unwrap().1, "receipt");
}

#[tokio::test]
async fn statements_are_posted_before_the_first_receipt_is_waited_for() {
    let location = |entry: &'static str| [("location", entry), ("retry-after", "0")];
    let client = service(vec![
        answer(202, &location("/entries/a"), ""),
        answer(201, &location("/entries/b"), "receipt of b"),
        answer(204, &location("/entries/a"), ""),
        answer(200, &[], "receipt of a"),
    ])
    .await;
    let Posted::Accepted(running) = client.post(&MESSAGE).await.unwrap() else { panic!("202 is no receipt") };
    let registered = client.post(&MESSAGE).await.unwrap();
    assert!(matches!(registered, Posted::Registered { receipt, .. } if receipt == "receipt of b"));
    let (location, receipt) = client.wait_for_receipt(running).await.unwrap();
    assert_eq!((location.path(), &receipt[..]), ("/entries/a", &b"receipt of a"[..]));
}

#[tokio::test]
async fn older_drafts_say_see_other_and_found_and_may_end_at_another_location() {
    let moved = [("location", "/entries/final")];
    let client =
        service(vec![answer(303, LATER, ""), answer(302, LATER, ""), answer(200, &moved, "receipt")]).await;
    let (location, receipt) = client.submit(&MESSAGE).await.unwrap();
    assert_eq!((location.path(), &receipt[..]), ("/entries/final", &b"receipt"[..]));
}

#[tokio::test]
async fn a_busy_service_is_asked_again_and_not_before_it_said() {
    let busy = || answer(503, &[("retry-after", "1")], "");
    let client = service(vec![busy(), answer(201, LATER, "receipt")]).await;
    let started = Instant::now();
    assert_eq!(client.submit(&MESSAGE).await.unwrap().1, "receipt");
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_log_that_waits_for_its_operator_is_not_asked_again() {
    let body = Problem::new("Service Unavailable", "the operator must act").code("log-halted").encode();
    let headers = [("content-type", "application/concise-problem-details+cbor"), ("retry-after", "0")];
    let client = service(vec![answer(503, &headers, body), answer(201, LATER, "receipt")]).await;
    match client.submit(&MESSAGE).await.unwrap_err() {
        ClientError::TryAgain { problem, .. } => assert_eq!(problem.get_code(), Some("log-halted")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_refusal_is_final_and_keeps_the_services_own_words() {
    let client = service(vec![problem(400, "Rejected", "not admitted"), answer(201, LATER, "receipt")]).await;
    match client.submit(&MESSAGE).await.unwrap_err() {
        ClientError::Refused { status, problem } => {
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert_eq!(
                (problem.to_string().as_str(), problem.get_code()),
                ("Rejected: not admitted", Some("a-code"))
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_registration_that_failed_later_is_not_found_with_its_reason() {
    let client =
        service(vec![answer(202, LATER, ""), problem(404, "Registration Failed", "policy changed")]).await;
    match client.submit(&MESSAGE).await.unwrap_err() {
        ClientError::NotFound(problem) => assert_eq!(problem.title.as_deref(), Some("Registration Failed")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn patience_ends_and_says_where_the_receipt_will_be() {
    let client = service(vec![answer(202, &[("location", "/entries/a"), ("retry-after", "60")], "")]).await;
    match client.submit(&MESSAGE).await.unwrap_err() {
        ClientError::StillRunning(location) => assert_eq!(location.path(), "/entries/a"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_key_is_taken_alone_or_in_an_array_of_one() {
    let key = SigningKey::generate(Algorithm::Es256).unwrap().public_key().clone();
    let one = CoseKey { kid: Some(b"k".to_vec()), ..CoseKey::bare(key.clone()) };
    let set = KeySet::new(vec![one.clone()]).encode();
    let client = service(vec![answer(200, &[], one.encode()), answer(200, &[], set)]).await;
    assert_eq!(client.key(b"k").await.unwrap(), key);
    assert_eq!(client.key(b"k").await.unwrap(), key);
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let endless = vec![0u8; 33 << 20];
    let client = service(vec![answer(201, LATER, endless)]).await;
    assert!(matches!(client.submit(&MESSAGE).await.unwrap_err(), ClientError::Nonsense(_)));
}

#[tokio::test]
async fn a_receipt_larger_than_receipts_are_is_not_read_whether_it_comes_at_once_or_later() {
    let large = || vec![0u8; scitt::limits::RECEIPT_BYTES + 1];
    let client = service(vec![answer(201, LATER, large())]).await;
    assert!(matches!(client.submit(&MESSAGE).await.unwrap_err(), ClientError::Nonsense(_)));
    let client = service(vec![answer(202, LATER, ""), answer(200, LATER, large())]).await;
    assert!(matches!(client.submit(&MESSAGE).await.unwrap_err(), ClientError::Nonsense(_)));
    let client = service(vec![answer(200, &[], large())]).await;
    assert!(matches!(client.receipt_named("a").await.unwrap_err(), ClientError::Nonsense(_)));
}

#[tokio::test]
async fn the_receipt_of_a_batch_is_asked_for_by_its_tree_if_the_service_tells_it() {
    let entry = EntryDigest::of(b"an entry");
    let described = |json: &'static str| answer(200, &[("content-type", "application/json")], json);
    let receipt = || answer(200, &[("content-type", "application/scitt-receipt+cose")], "receipt");
    let missing = || problem(404, "Not Found", "no such thing");
    let page = || answer(200, &[("content-type", "text/html")], "<html></html>");
    let batch = r#"{"index":3,"tree_size_committed":7}"#;
    for (answers, expected) in [
        (vec![described(batch), receipt()], Some("receipt")),
        (vec![described(batch), missing()], None),
        (vec![described(r#"{"index":3}"#)], None),
        (vec![missing()], None),
        (vec![page()], None),
    ] {
        let receipt = service(answers).await.batch_receipt(&entry).await.unwrap();
        assert_eq!(receipt.as_deref(), expected.map(str::as_bytes));
    }
}

#[tokio::test]
async fn a_location_on_another_host_or_port_is_never_asked_and_the_error_names_it() {
    // Whoever listens here would answer; it must not be asked.
    let other = service(vec![answer(200, &[], "stolen"), answer(200, &[], "stolen")]).await;
    let elsewhere = other.base().join("metadata").unwrap().to_string();
    for status in [202, 204, 302, 303] {
        let moved = [("location", elsewhere.as_str()), ("retry-after", "0")];
        let client = service(vec![answer(status, &moved, "")]).await;
        match client.receipt_named("a").await.unwrap_err() {
            ClientError::Nonsense(why) => assert!(why.contains(&elsewhere), "{why}"),
            error => panic!("{status}: {error:?}"),
        }
        let client = service(vec![answer(202, &moved, "")]).await;
        assert!(matches!(client.submit(&MESSAGE).await.unwrap_err(), ClientError::Nonsense(_)), "{status}");
    }
    assert_eq!(other.bytes("untouched").await.unwrap(), "stolen", "nobody else has asked");
    assert_eq!(other.bytes("untouched").await.unwrap(), "stolen", "nobody else has asked");
}

#[tokio::test]
async fn a_service_behind_a_proxy_that_names_its_public_address_is_polled_where_it_was_reached() {
    let public = [("location", "https://public.example/log/entries/a"), ("retry-after", "0")];
    let client =
        service(vec![answer(202, &public, ""), answer(204, &public, ""), answer(200, &[], "receipt")]).await;
    let (location, receipt) = client.submit(&MESSAGE).await.unwrap();
    assert_eq!((location.path(), &receipt[..]), ("/entries/a", &b"receipt"[..]));
    assert_eq!(location.origin(), client.base().origin());
}

fn batch_of(results: &str) -> Response<Body> {
    answer(200, &[("content-type", "application/json")], format!("{{\"results\":[{results}]}}"))
}

/// Registers this many statements in one batch, believing no log.
async fn register_batch(client: &Client, count: u64) -> Result<Vec<ClientError>, ClientError> {
    let statements: Vec<_> = (0..count).map(testkit::vrf).collect();
    let messages: Vec<_> = statements.iter().map(|statement| (statement, statement.bytes())).collect();
    let trust = verifier::TrustStore::default();
    let results = client.register_batch(&messages, &trust, testkit::NOW).await?;
    Ok(results.into_iter().map(|result| result.unwrap_err()).collect())
}

#[tokio::test]
async fn every_part_of_a_batch_ends_as_it_would_have_ended_alone() {
    let refused =
        r#"{"status":400,"problem":{"title":"Rejected","detail":"no","code":"policy","rule":"exp"}}"#;
    let receipt = r#"{"status":201,"location":"/entries/a","receipt":"aGVsbG8"}"#;
    let later = r#"{"status":202,"location":"/entries/a","retry_after":0}"#;
    let bare = r#"{"status":415}"#;
    let client = service(vec![
        batch_of(&[refused, receipt, later, bare].join(",")),
        problem(400, "Rejected", "not alone either"),
    ])
    .await;
    let errors = register_batch(&client, 4).await.unwrap();
    assert!(
        matches!(&errors[0], ClientError::Refused { status, problem } if *status == 400 && problem.get_rule() == Some("exp")),
        "{:?}",
        errors[0]
    );
    assert!(
        matches!(&errors[1], ClientError::Unverified(_)),
        "no receipt is believed unverified: {:?}",
        errors[1]
    );
    assert!(
        matches!(&errors[2], ClientError::Refused { problem, .. } if problem.get_code() == Some("a-code"))
    );
    assert!(matches!(&errors[3], ClientError::Refused { status, .. } if *status == 415));
}

#[tokio::test]
async fn a_batch_with_other_results_than_parts_is_no_answer() {
    for results in
        ["", r#"{"status":400}"#, r#"{"status":400},{"status":400},{"status":400}"#, r#"{"code":1},{}"#]
    {
        let client = service(vec![batch_of(results)]).await;
        let error = register_batch(&client, 2).await.unwrap_err();
        assert!(matches!(error, ClientError::Nonsense(_)), "{results}: {error:?}");
    }
    let client = service(vec![batch_of(r#"{"status":9999}"#)]).await;
    assert!(matches!(register_batch(&client, 1).await.unwrap()[0], ClientError::Nonsense(_)));
}

#[tokio::test]
async fn a_service_without_batches_says_so_for_all_of_them() {
    let client = service(vec![problem(404, "Not Found", "no such thing")]).await;
    assert!(matches!(register_batch(&client, 2).await.unwrap_err(), ClientError::NotFound(_)));
}

#[tokio::test]
async fn whoever_keeps_a_queue_is_told_what_is_open_and_asks_again_by_itself() {
    let receipt = r#"{"status":201,"location":"/entries/a","receipt":"aGVsbG8"}"#;
    let later = r#"{"status":202,"location":"/entries/a","retry_after":0}"#;
    let busy = r#"{"status":503,"problem":{"title":"Busy","detail":"no"}}"#;
    let refused = r#"{"status":400,"problem":{"title":"Rejected","detail":"no"}}"#;
    let nonsense = r#"{"status":201,"location":"/entries/a"}"#;
    let client = service(vec![batch_of(&[receipt, later, busy, refused, nonsense].join(","))]).await;
    let results = client.submit_batch(&[MESSAGE, MESSAGE, MESSAGE, MESSAGE, MESSAGE]).await.unwrap();
    assert_eq!(results[0].as_ref().unwrap(), &b"hello"[..]);
    assert!(matches!(&results[1], Err(ClientError::StillRunning(at)) if at.path() == "/entries/a"));
    assert!(matches!(&results[2], Err(ClientError::TryAgain { status, .. }) if *status == 503));
    assert!(matches!(&results[3], Err(ClientError::Refused { status, .. }) if *status == 400));
    assert!(matches!(&results[4], Err(ClientError::Nonsense(_))));
}

/// A client of the same service with this patience.
fn with_patience(client: &Client, patience: Duration) -> Client {
    Client::new(client.base().as_str(), Options { patience, ..Options::default() }).unwrap()
}

#[tokio::test]
async fn a_redirect_is_refused_with_both_addresses() {
    for target in ["https://log.example/checkpoint", "file:///etc/passwd"] {
        let client = service(vec![answer(301, &[("location", target)], "")]).await;
        let from = client.base().join("checkpoint").unwrap();
        match client.bytes("checkpoint").await.unwrap_err() {
            ClientError::Refused { status, problem } => {
                assert_eq!(status, 301);
                let words = problem.to_string();
                assert!(words.contains(from.as_str()) && words.contains(target), "{words}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_redirect_of_a_registration_is_refused_unless_it_means_later() {
    for status in [301, 307, 308] {
        let moved = || answer(status, &[("location", "https://log.example/entries")], "");
        let client = service(vec![moved(), moved()]).await;
        for error in
            [client.submit(&MESSAGE).await.unwrap_err(), client.submit_batch(&[MESSAGE]).await.unwrap_err()]
        {
            assert!(
                matches!(&error, ClientError::Refused { status: code, .. } if *code == status),
                "{error:?}"
            );
            assert!(error.to_string().contains("https://log.example/entries"), "{error}");
        }
    }
    let login = || answer(302, &[("location", "https://sso.example/login")], "<p>Please log in</p>");
    let client = service(vec![login(), login()]).await;
    let url = client.base().join("v1/entries/batch").unwrap();
    let error = client.submit_batch(&[MESSAGE]).await.unwrap_err();
    assert!(matches!(&error, ClientError::Nonsense(why) if why.contains(url.as_str())), "{error:?}");
    assert!(
        matches!(client.evaluate(&MESSAGE).await.unwrap_err(), ClientError::Nonsense(why) if why.contains("evaluate"))
    );
}

#[tokio::test]
async fn a_service_that_is_busy_for_long_has_not_accepted_anything() {
    let busy = || answer(503, &[("retry-after", "99999999")], "");
    let client = service(vec![busy()]).await;
    assert!(
        matches!(client.receipt_named("a").await.unwrap_err(), ClientError::TryAgain { status, .. } if status == 503)
    );
    let client = service(vec![answer(204, LATER, ""), busy()]).await;
    assert!(matches!(client.receipt_named("a").await.unwrap_err(), ClientError::StillRunning(_)));
    let client = service(vec![answer(202, LATER, ""), busy()]).await;
    assert!(matches!(client.submit(&MESSAGE).await.unwrap_err(), ClientError::StillRunning(_)));
}

#[tokio::test]
async fn what_is_not_the_requested_resource_is_not_taken_for_it() {
    let kind = ("content-type", "application/problem+json");
    let words = r#"{"title":"Not really","detail":"no"}"#;
    let others = || {
        [
            answer(202, &[], "{}"),
            answer(204, &[], ""),
            answer(200, &[("content-encoding", "gzip")], "{}"),
            answer(200, &[kind], words),
        ]
    };
    for other in others() {
        let client = service(vec![other]).await;
        let error = client.json::<serde_json::Value>("v1/policy").await.unwrap_err();
        let url = client.base().join("v1/policy").unwrap();
        assert!(matches!(&error, ClientError::Nonsense(why) if why.contains(url.as_str())), "{error:?}");
    }
    for other in others().into_iter().skip(2) {
        let error = service(vec![other]).await.receipt_named("a").await.unwrap_err();
        assert!(matches!(error, ClientError::Nonsense(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_page_of_a_proxy_is_no_stream_of_entries() {
    let page = || answer(200, &[("content-type", "text/html")], "<p>Please log in</p>");
    let client = service(vec![page(), page()]).await;
    let error = client.events(Begin::Start, "").unwrap().next().await.unwrap_err();
    assert!(matches!(&error, ClientError::Nonsense(why) if why.contains("text/html")), "{error:?}");
}

#[tokio::test]
async fn streams_that_end_without_a_byte_use_the_patience_up() {
    let empty = || answer(200, &[("content-type", "text/event-stream; charset=utf-8")], "");
    let client = service(vec![empty(), empty(), empty(), empty()]).await;
    let client = with_patience(&client, Duration::from_millis(300));
    let error = client.events(Begin::Start, "").unwrap().next().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error:?}");
}

#[tokio::test]
async fn a_service_that_never_answers_is_given_up_after_one_exchange() {
    // The kernel completes the connection; nothing accepts it.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = Options { exchange: Duration::from_millis(100), ..Options::default() };
    let client = Client::new(&format!("http://{}", silent.local_addr().unwrap()), options).unwrap();
    assert!(matches!(client.bytes("checkpoint").await.unwrap_err(), ClientError::Unreachable(_)));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_told_from_a_service_that_is_not_there() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        assert!(stream.read(&mut head).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await.unwrap();
    });
    let client = Client::new(&format!("http://{address}"), Options::default()).unwrap();
    match client.bytes("checkpoint").await.unwrap_err() {
        ClientError::Unreachable(why) => {
            assert!(why.contains("broke off") && why.contains("/checkpoint"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}
