//! Section 1.4: streams of events.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::world::{CALL, DONE, Reading, Scribe, Wishes, World};

/// Both ways through the gateway: a call, which is looked at, and something that just passes.
const BOTH: [&str; 2] = [CALL, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}"#];

#[tokio::test]
async fn the_first_progress_arrives_while_the_tool_runs() {
    let seen = Arc::new(Notify::new());
    let goes_on = seen.clone();
    let world = World::with(Wishes::default(), move |_, mut line| {
        let goes_on = goes_on.clone();
        async move {
            line.begin("").await;
            line.send("data: {\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n").await;
            goes_on.notified().await;
            line.send(&format!("data: {DONE}\n\n")).await;
            line.end().await;
        }
    })
    .await;
    for body in BOTH {
        let mut reading = Reading::of(world.post(body)).await;
        reading.until("\"progress\":1}}\n\n").await;
        seen.notify_one();
        reading.until(DONE).await;
    }
}

#[tokio::test]
async fn everything_around_the_messages_stays_byte_for_byte() {
    const STREAM: &[&str] = &[
        "\u{feff}: hello\n\nid: 0_1\nretry: 500\ndata: \n\n",
        "id: 0_2\nevent: mess",
        "age\r\ndata: {\"method\":\"notifications/message\",\r\ndata: \"params\":{\"u\":\"\u{2028}\u{1F600}\"}}\r\n\r\n",
        ":ping\n",
        "\nevent: other\ndata: not json\n\nunknown: field\ndata:{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\rid:0_3\r\r",
    ];
    let world = World::with(Wishes::default(), |_, mut line| async move {
        line.begin("cache-control: no-store\r\nx-y: z\r\n").await;
        for part in STREAM {
            line.send(part).await;
        }
        line.end().await;
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
    let listened =
        world.http.get(world.url()).header("accept", "text/event-stream").header("mcp-session-id", "s-1");
    assert_eq!(Reading::of(listened).await.ended().await, STREAM.concat());
}

#[tokio::test]
async fn the_server_asks_the_client_while_the_call_is_open() {
    let answered = Arc::new(Notify::new());
    let world = World::with(Wishes::default(), move |request, mut line| {
        let answered = answered.clone();
        async move {
            if request.text().contains("\"result\"") {
                answered.notify_one();
                return line.answer("202 Accepted", "", b"").await;
            }
            line.begin("").await;
            line.send("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"elicitation/create\",\"params\":{}}\n\n").await;
            answered.notified().await;
            line.send(&format!("data: {DONE}\n\n")).await;
            line.end().await;
        }
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
    let world = World::with(Wishes::default(), move |_, mut line| {
        let goes_on = goes_on.clone();
        async move {
            line.begin("").await;
            line.send("id: 5\ndata: {\"method\":\"notifications/tools/list_changed\"}\n\n").await;
            goes_on.notified().await;
            line.send("id: 6\ndata: {\"id\":\"s\",\"method\":\"roots/list\"}\n\n").await;
            line.hung_up().await;
        }
    })
    .await;
    let request = world.http.get(world.url()).header("accept", "text/event-stream");
    let mut reading = Reading::of(request.header("mcp-session-id", "s-1").header("last-event-id", "4")).await;
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
async fn a_response_on_a_get_stream_is_seen_by_whoever_decides() {
    let world = World::with(
        Wishes {
            scribe: Scribe { late: Some("{\"z\":1}".into()), ..Scribe::default() },
            ..Wishes::default()
        },
        |_, mut line| async move {
            line.begin("").await;
            line.send(&format!("id: 5\ndata: {DONE}\n\n")).await;
            line.send("data: {\"id\":7,\"method\":\"ping\"}\n\ndata: {\"id\":1,\"id\":1,\"result\":{}}\n\n")
                .await;
            line.end().await;
        },
    )
    .await;
    let text = Reading::of(world.http.get(world.url()).header("mcp-session-id", "s-1")).await.ended().await;
    // One that two readers could read differently does not pass.
    assert_eq!(text, "id: 5\ndata: {\"z\":1}\n\ndata: {\"id\":7,\"method\":\"ping\"}\n\n");
    assert_eq!(world.notes.all(), [format!("late {DONE}")]);
}

#[tokio::test]
async fn the_answer_to_a_call_does_not_slip_out_beside_another_answer() {
    let scribe = Scribe { late: Some("{\"z\":1}".into()), ..Scribe::default() };
    let world = World::with(Wishes { scribe, ..Wishes::default() }, |request, mut line| async move {
        // The answer to another request, of the id 1, in the answer to this one.
        if request.text().contains("stream") {
            line.begin("").await;
            line.send(&format!("data: {DONE}\n\ndata: {{\"id\":7,\"result\":{{}}}}\n\n")).await;
            line.end().await;
        } else {
            line.json(DONE).await;
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
    assert_eq!(Reading::of(ask("whole")).await.ended().await, "{\"z\":1}");
    assert_eq!(world.notes.all(), [format!("late {DONE}"), format!("late {DONE}")]);
}
