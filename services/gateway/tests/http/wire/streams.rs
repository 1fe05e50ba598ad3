//! Section 1.4: streams of events.

use std::sync::Arc;

use futures::executor::block_on;
use tokio::sync::Notify;

use crate::client::Reading;
use crate::front::{CALL, DONE, PassThrough, Scribe, Settings};

/// Both ways through the gateway: a call, which is looked at, and something that just passes.
const BOTH: [&str; 2] = [CALL, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}"#];

#[tokio::test]
async fn everything_around_the_messages_stays_byte_for_byte() {
    const STREAM: &[&str] = &[
        "\u{feff}: hello\n\nid: 0_1\nretry: 500\ndata: \n\n",
        "id: 0_2\nevent: mess",
        "age\r\ndata: {\"method\":\"notifications/message\",\r\ndata: \"params\":{\"u\":\"\u{2028}\u{1F600}\"}}\r\n\r\n",
        ":ping\n",
        "\nevent: other\ndata: not json\n\nunknown: field\ndata:{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\rid:0_3\r\r",
    ];
    let world = PassThrough::before(|_, wire| {
        wire.stream_with("cache-control: no-store\r\nx-y: z\r\n");
        for part in STREAM {
            wire.bytes(part);
        }
    })
    .await;
    for body in BOTH {
        let reading = Reading::of(world.post(body)).await;
        assert_eq!(reading.header("x-accel-buffering"), Some("no"));
        assert_eq!(reading.header("content-type"), Some("text/event-stream"));
        assert_eq!(reading.header("cache-control"), Some("no-store"));
        assert_eq!(reading.header("content-encoding"), None);
        assert_eq!(reading.header("x-y"), Some("z"));
        assert_eq!(reading.ended().await, STREAM.concat());
    }
    let listened = world.listen();
    assert_eq!(Reading::of(listened).await.ended().await, STREAM.concat());
}

#[tokio::test]
async fn the_server_asks_the_client_while_the_call_is_open() {
    let answered = Notify::new();
    let world = PassThrough::before(move |seen, wire| {
        if seen.text().contains("\"result\"") {
            answered.notify_one();
            return wire.answer(202, &[], b"");
        }
        wire.stream_with("");
        wire.event(r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}"#);
        block_on(answered.notified());
        wire.bytes(&format!("data: {DONE}\n\n"));
    })
    .await;
    for body in BOTH {
        let mut reading = Reading::of(world.post(body)).await;
        reading.until("elicitation/create").await;
        let response = r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"n":1.0}}}"#;
        assert_eq!(world.post(response).send().await.unwrap().status(), 202);
        assert_eq!(world.requests().last().unwrap().text(), response);
        reading.until(DONE).await;
    }
}

#[tokio::test]
async fn a_get_stream_delivers_as_it_comes_and_resumes_by_the_clients_last_event() {
    let more = Arc::new(Notify::new());
    let goes_on = more.clone();
    let world = PassThrough::before(move |_, wire| {
        wire.stream_with("");
        wire.bytes("id: 5\ndata: {\"method\":\"notifications/tools/list_changed\"}\n\n");
        block_on(goes_on.notified());
        wire.bytes("id: 6\ndata: {\"id\":\"s\",\"method\":\"roots/list\"}\n\n");
        wire.is_hung_up_on();
    })
    .await;
    let mut reading = Reading::of(world.listen().header("last-event-id", "4")).await;
    reading.until("list_changed\"}\n\n").await;
    more.notify_one();
    reading.until("roots/list\"}\n\n").await;
    let seen = &world.requests()[0];
    assert_eq!(
        (seen.method(), seen.header("last-event-id"), seen.header("accept")),
        ("GET", Some("4"), Some("text/event-stream"))
    );
    assert_eq!(seen.header("content-length"), None);
}

#[tokio::test]
async fn a_response_on_a_get_stream_is_shown_to_the_handlers() {
    let world = PassThrough::with(
        Scribe { late: Some("{\"z\":1}".into()), ..Scribe::default() },
        Settings::default(),
        |_, wire| {
            wire.stream_with("");
            wire.bytes(&format!("id: 5\ndata: {DONE}\n\n"));
            wire.bytes("data: {\"id\":7,\"method\":\"ping\"}\n\ndata: {\"id\":1,\"id\":1,\"result\":{}}\n\n");
        },
    )
    .await;
    let text = Reading::of(world.listen()).await.ended().await;
    // One that two readers could read differently does not pass.
    assert_eq!(text, "id: 5\ndata: {\"z\":1}\n\ndata: {\"id\":7,\"method\":\"ping\"}\n\n");
    assert_eq!(world.notes.all(), [format!("late {DONE}")]);
}

#[tokio::test]
async fn an_answer_beside_another_answer_is_shown_to_the_handlers() {
    let scribe = Scribe { late: Some("{\"z\":1}".into()), ..Scribe::default() };
    let world = PassThrough::with(scribe, Settings::default(), |seen, wire| {
        // The answer to another request, of the id 1, in the answer to this one.
        if seen.text().contains("stream") {
            wire.stream_with("");
            wire.bytes(&format!("data: {DONE}\n\ndata: {{\"id\":7,\"result\":{{}}}}\n\n"));
        } else {
            wire.json(DONE);
        }
    })
    .await;
    let ask = |name| {
        world.post(format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{{"name":"{name}"}}}}"#
        ))
    };
    let streamed = Reading::of(ask("stream")).await.ended().await;
    assert_eq!(streamed, "data: {\"z\":1}\n\ndata: {\"id\":7,\"result\":{}}\n\n");
    let whole = Reading::of(ask("whole")).await.ended().await;
    assert!(
        whole.contains("\"id\":7") && whole.contains("-31001"),
        "it is all that the server says: {whole}"
    );
    assert_eq!(world.notes.all(), [format!("late {DONE}"), format!("late {DONE}")]);
}
