//! Upstreams that do not answer (X-2).

use std::time::Duration;

use crate::world::{CALL, Upstream, Wishes, World};

#[tokio::test]
async fn an_unreachable_server_is_an_error_in_band() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let upstream = Upstream::start(|_, _| async {}).await;
    let world = World::before(Wishes::default(), upstream, &url).await;
    for body in [CALL, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#] {
        let told = world.post(body).send().await.unwrap();
        assert_eq!(told.status(), 200);
        let text = told.text().await.unwrap();
        assert!(text.contains("-31001") && text.contains("\"id\":1") && text.contains("no effect"), "{text}");
        assert!(!text.contains(url.trim_matches('/')), "where the upstream is, is not the client's business");
    }
    assert_eq!(world.http.get(world.url()).send().await.unwrap().status(), 502);
    let notified = world.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(notified.send().await.unwrap().status(), 502);
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_is_not_sent_again() {
    // Hangs up without a word.
    let world = World::with(Wishes::default(), |_, line| async move { drop(line) }).await;
    for _ in 0..3 {
        let text = world.post(CALL).send().await.unwrap().text().await.unwrap();
        assert!(text.contains("-31001") && text.contains("unknown"), "{text}");
    }
    assert_eq!(world.requests().len(), 3);
    world.notes.holds("unanswered the upstream's answer is lost").await;
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up() {
    let wishes = Wishes { answer_time: Duration::from_millis(200), ..Wishes::default() };
    let world = World::with(wishes, |request, mut line| async move {
        if request.text().contains("half") {
            let _ = line.answer("200 OK", "content-type: application/json\r\nx-fill: 1\r\n", b"").await;
        }
        line.hung_up().await;
    })
    .await;
    let told = world.post(CALL).send().await.unwrap();
    assert_eq!(told.status(), 200);
    assert!(told.text().await.unwrap().contains("-31001"));
    world.notes.holds("in time").await;
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_is_told_to_whoever_decides() {
    let world = World::with(Wishes::default(), |_, mut line| async move {
        line.begin("").await;
        line.send("data: {\"method\":\"x\"}\n\n").await;
    })
    .await;
    let _ = world.post(CALL).send().await.unwrap().text().await;
    world.notes.holds("over Broken(Lost(").await;
}

#[tokio::test]
async fn a_redirect_takes_no_call_elsewhere() {
    let elsewhere = Upstream::start(|_, mut line| async move { line.json("{}").await }).await;
    let location = format!("location: http://{}/\r\n", elsewhere.address);
    let world = World::with(Wishes::default(), move |_, mut line| {
        let location = location.clone();
        async move { line.answer("307 Temporary Redirect", &location, b"").await }
    })
    .await;
    let plain =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let told =
        plain.post(world.url()).header("content-type", "application/json").body(CALL).send().await.unwrap();
    assert_eq!(told.status(), 307);
    assert!(elsewhere.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_compressed_unasked_is_not_passed_unseen() {
    let world = World::with(Wishes::default(), |_, mut line| async move {
        line.answer("200 OK", "content-type: application/json\r\ncontent-encoding: gzip\r\n", b"\x1f\x8b")
            .await;
    })
    .await;
    assert_eq!(world.post(CALL).send().await.unwrap().status(), 502);
    world.notes.holds("over Broken").await;
}
