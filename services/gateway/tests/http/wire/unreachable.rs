//! Upstreams that do not answer (X-2).

use std::time::Duration;

use testkit::McpServer;

use crate::front::{CALL, DONE, PassThrough, Scribe, Settings};

#[tokio::test]
async fn an_unreachable_server_is_an_error_in_band() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let world =
        PassThrough::before_url(&url, McpServer::ordinary(), Scribe::default(), Settings::default()).await;
    for body in [CALL, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#] {
        let response = world.post(body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        assert!(text.contains("-31001") && text.contains("\"id\":1") && text.contains("no effect"), "{text}");
        assert!(!text.contains(url.trim_matches('/')), "where the upstream is, is not the client's business");
    }
    assert_eq!(world.http.get(world.url()).send().await.unwrap().status(), 502);
    let notified = world.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(notified.send().await.unwrap().status(), 502);
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_is_sent_once() {
    // Hangs up without a word.
    let world = PassThrough::before(|_, wire| wire.hang_up()).await;
    for _ in 0..3 {
        let text = world.post(CALL).send().await.unwrap().text().await.unwrap();
        assert!(text.contains("-31001") && text.contains("unknown"), "{text}");
    }
    assert_eq!(world.requests().len(), 3);
    world.notes.holds("unanswered the upstream's answer is lost").await;
}

#[tokio::test]
async fn an_overdue_answer_is_an_error() {
    let settings = Settings { answer_time: Duration::from_millis(200), ..Settings::default() };
    let world = PassThrough::set(settings, |seen, wire| {
        if seen.text().contains("half") {
            wire.answer(200, &[("content-type", "application/json"), ("x-fill", "1")], b"");
        }
        wire.is_hung_up_on();
    })
    .await;
    let response = world.post(CALL).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.text().await.unwrap().contains("-31001"));
    world.notes.holds("in time").await;
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn a_broken_stream_is_reported_to_the_handlers() {
    let world = PassThrough::before(|_, wire| {
        wire.stream_with("");
        wire.bytes("data: {\"method\":\"x\"}\n\n");
        wire.hang_up();
    })
    .await;
    let _ = world.post(CALL).send().await.unwrap().text().await;
    world.notes.holds("over Broken(Lost(").await;
}

#[tokio::test]
async fn a_redirect_is_an_error() {
    let elsewhere = McpServer::ordinary();
    let with_secrets = elsewhere.url().replace("http://", "http://secret:secret@");
    let location = format!("{with_secrets}?key=secret#secret");
    let world = PassThrough::before(move |_, wire| wire.answer(307, &[("location", &location)], b"")).await;
    // A client that follows redirects, as those of the SDKs do.
    let follows = reqwest::Client::builder().no_proxy().build().unwrap();
    for body in [CALL, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#] {
        let request = follows.post(world.url()).header("content-type", "application/json").body(body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("location"));
        let text = response.text().await.unwrap();
        assert!(text.contains("-31001") && text.contains("\"id\":1") && text.contains("unknown"), "{text}");
    }
    assert_eq!(follows.get(world.url()).send().await.unwrap().status(), 502);
    assert_eq!(follows.delete(world.url()).send().await.unwrap().status(), 502);
    assert!(elsewhere.seen().is_empty());
    world.notes.holds(&format!("to {}", elsewhere.url())).await;
    assert!(world.notes.all().iter().all(|note| !note.contains("secret")), "{:?}", world.notes.all());
}

/// A server whose answer has these fields `Content-Encoding`.
async fn coded(codings: &'static [&'static str], body: &'static [u8]) -> PassThrough {
    PassThrough::before(move |_, wire| {
        let codings = codings.iter().map(|coding| ("content-encoding", *coding));
        let headers: Vec<_> = [("content-type", "application/json")].into_iter().chain(codings).collect();
        wire.answer(200, &headers, body);
    })
    .await
}

#[tokio::test]
async fn an_unrequested_compressed_answer_is_502() {
    const CODINGS: [&[&str]; 5] =
        [&["gzip"], &["identity, gzip"], &["identity", "gzip"], &["", "br"], &["GZIP, identity"]];
    for codings in CODINGS {
        let world = coded(codings, b"\x1f\x8b").await;
        assert_eq!(world.post(CALL).send().await.unwrap().status(), 502, "{codings:?}");
        world.notes.holds("over Broken").await;
    }
}

#[tokio::test]
async fn an_answer_whose_coding_changes_nothing_passes() {
    const CODINGS: [&[&str]; 4] = [&["identity"], &[""], &["Identity, identity"], &["identity", ","]];
    for codings in CODINGS {
        let world = coded(codings, DONE.as_bytes()).await;
        let answer = world.post(CALL).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), &*answer.text().await.unwrap()), (200, DONE), "{codings:?}");
        world.notes.holds(&format!("message {DONE}")).await;
    }
}
