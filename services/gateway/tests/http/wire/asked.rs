//! Questions of the gateway's own, on a stream that it opened itself.

use testkit::{McpRequest, Responder};

use crate::client::Reading;
use crate::front::{CALL, DONE, PassThrough, Scribe, Settings};

const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"gw-1","method":"elicitation/create","params":{}}"#;

/// A call about which the gateway asked its client, who has answered, and the stream of the call.
async fn answered_question(
    script: impl Fn(&McpRequest, &mut Responder) + Send + Sync + 'static,
) -> (PassThrough, Reading) {
    let scribe = Scribe { asks: Some(QUESTION.into()), ..Scribe::default() };
    let world = PassThrough::with(scribe, Settings::default(), script).await;
    let mut reading = Reading::of(world.post(CALL)).await;
    assert_eq!(reading.header("content-type"), Some("text/event-stream"));
    assert_eq!(reading.header("x-accel-buffering"), Some("no"));
    reading.until(QUESTION).await;
    assert!(world.requests().is_empty(), "the server was asked before the client answered");
    let answer = r#"{"jsonrpc":"2.0","id":"gw-1","result":{"action":"accept"}}"#;
    assert_eq!(world.post(answer).send().await.unwrap().status(), 202);
    (world, reading)
}

#[tokio::test]
async fn the_answer_to_a_question_stays_here_and_a_json_answer_becomes_an_event() {
    let (world, reading) = answered_question(|_, wire| wire.json(DONE)).await;
    let text = reading.ended().await;
    assert_eq!(text, format!("event: message\ndata: {QUESTION}\n\nevent: message\ndata: {DONE}\n\n"));
    assert_eq!(world.requests().len(), 1, "the answer to the gateway's question went to the server");
    world.notes.holds("over Complete").await;
}

#[tokio::test]
async fn a_servers_stream_continues_the_stream_of_the_question() {
    let (_world, reading) = answered_question(|_, wire| {
        wire.stream_with("");
        wire.bytes(&format!(": x\n\nid: 3\ndata: {DONE}\n\n"));
    })
    .await;
    let text = reading.ended().await;
    assert_eq!(text, format!("event: message\ndata: {QUESTION}\n\n: x\n\nid: 3\ndata: {DONE}\n\n"));
}

#[tokio::test]
async fn an_answer_with_another_id_goes_to_the_server() {
    let scribe = Scribe { asks: Some(QUESTION.into()), ..Scribe::default() };
    let world = PassThrough::with(scribe, Settings::default(), |_, wire| {
        wire.answer(202, &[], b"");
    })
    .await;
    let theirs = r#"{"jsonrpc":"2.0","id":"mine-1","result":{}}"#;
    assert_eq!(world.post(theirs).send().await.unwrap().status(), 202);
    assert_eq!(world.requests()[0].text(), theirs);
}
