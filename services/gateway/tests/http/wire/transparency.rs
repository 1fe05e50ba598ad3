//! Section 1.4: what a proxy must never break, where it concerns messages.

use crate::client::Reading;
use crate::front::{CALL, DONE, PassThrough};

/// Answers everything with this.
async fn answering(answer: &'static str) -> PassThrough {
    PassThrough::before(move |_, wire| wire.json(answer)).await
}

#[tokio::test]
async fn large_messages_pass_whole() {
    let large = "\u{2028}\u{1F600}x".repeat(60_000);
    assert!(large.len() > 300_000);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"text":"{large}"}}]}}}}"#);
    let sent = answer.clone();
    let world = PassThrough::before(move |seen, wire| {
        if seen.text().contains("stream") {
            wire.stream_with("");
            wire.bytes(&format!("data: {sent}\n\n"));
        } else {
            wire.json(&sent);
        }
    })
    .await;
    for how in ["whole", "stream"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{how}","arguments":{{"a":"{large}"}}}}}}"#
        );
        let response = Reading::of(world.post(body.clone())).await.ended().await;
        assert!(response.contains(&answer) && response.len() < answer.len() + 10);
        assert_eq!(world.requests().last().unwrap().text(), body);
    }
}

#[tokio::test]
async fn statuses_and_their_headers_keep_their_meaning() {
    let world = PassThrough::before(|seen, wire| {
        let status = seen.header("x-wanted").unwrap().parse().unwrap();
        let challenge = ("www-authenticate", "Bearer scope=\"a\"");
        let later = ("retry-after", "7");
        let body: &[u8] = if status == 202 { b"" } else { b"words" };
        wire.answer(status, &[challenge, later, ("allow", "POST"), ("content-type", "text/plain")], body);
    })
    .await;
    for wanted in ["202", "400", "401", "403", "404", "405", "406", "409", "500", "307"] {
        for body in [CALL, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
            let response = world.post(body).header("x-wanted", wanted).send().await.unwrap();
            assert_eq!(response.status().as_str(), wanted);
            assert_eq!(response.headers()["www-authenticate"], "Bearer scope=\"a\"");
            assert_eq!(
                (&response.headers()["allow"], &response.headers()["retry-after"]),
                (&"POST".parse().unwrap(), &"7".parse().unwrap())
            );
            let text = response.text().await.unwrap();
            assert_eq!(text, if wanted == "202" { "" } else { "words" });
        }
        let got = world.http.get(world.url()).header("x-wanted", wanted).send().await.unwrap();
        assert_eq!(got.status().as_str(), wanted);
        let deleted = world.http.delete(world.url()).header("x-wanted", wanted).send().await.unwrap();
        assert_eq!(deleted.status().as_str(), wanted);
    }
}

#[tokio::test]
async fn capabilities_and_sessions_are_the_clients_and_the_servers() {
    let world = PassThrough::before(|_, wire| {
        let body = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s"}}}"#;
        let headers = [("content-type", "application/json"), ("Mcp-Session-Id", "from-server")];
        wire.answer(200, &headers, body.as_bytes());
    })
    .await;
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"roots":{"listChanged":true},"x":1.0},"clientInfo":{"name":"c"}}}"#;
    let response = world.post(body).send().await.unwrap();
    assert_eq!(response.headers()["mcp-session-id"], "from-server");
    let text = response.text().await.unwrap();
    assert!(text.contains(r#""capabilities":{"tools":{},"experimental":{"vap":{}}}"#), "{text}");
    assert_eq!(world.requests()[0].text(), body);
    assert_eq!(world.requests()[0].header("mcp-session-id"), Some("s-1"));
    assert_eq!(world.notes.all(), [r#"opened Some("from-server")"#]);
}

#[tokio::test]
async fn headers_pass_but_for_those_between_neighbours_and_credentials() {
    let world = PassThrough::before(|_, wire| {
        let headers =
            [("content-type", "application/json"), ("x-from-server", "1"), ("keep-alive", "timeout=5")];
        wire.answer(200, &headers, DONE.as_bytes());
    })
    .await;
    let response = world
        .post(CALL)
        .header("mcp-protocol-version", "2025-06-18")
        .header("traceparent", "00-abc")
        .header("x-custom", "1")
        .header("mcp-param-region", "=?base64?w6k=?=")
        .header("authorization", "Bearer of-the-client")
        .header("proxy-authorization", "Basic x")
        .header("te", "trailers")
        .header("accept-encoding", "gzip, br")
        .header("connection", "x-hop, mcp-session-id")
        .header("x-hop", "1")
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["x-from-server"], "1");
    assert!(!response.headers().contains_key("keep-alive"));
    let seen = &world.requests()[0];
    for (name, value) in [
        ("mcp-protocol-version", "2025-06-18"),
        ("traceparent", "00-abc"),
        ("x-custom", "1"),
        ("mcp-param-region", "=?base64?w6k=?="),
        ("mcp-session-id", "s-1"),
        ("accept", "application/json, text/event-stream"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    for name in ["authorization", "proxy-authorization", "te", "accept-encoding", "x-hop"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("host"), Some(world.server.address().as_str()));
    assert!(seen.head.starts_with("POST /server HTTP/1.1"));
}

#[tokio::test]
async fn delete_frees_the_servers_session_and_its_refusal_passes() {
    let world = PassThrough::before(|seen, wire| {
        let status = if seen.header("mcp-session-id") == Some("mine") { 204 } else { 405 };
        wire.answer(status, &[], b"");
    })
    .await;
    let delete = |session| world.http.delete(world.url()).header("mcp-session-id", session).send();
    assert_eq!(delete("other").await.unwrap().status(), 405);
    assert_eq!(delete("mine").await.unwrap().status(), 204);
    assert_eq!(world.notes.all(), [r#"ended Some("mine")"#]);
    assert_eq!(world.requests()[1].method(), "DELETE");
}

#[tokio::test]
async fn cancellations_and_other_notifications_pass() {
    let world = PassThrough::before(|_, wire| wire.answer(202, &[], b"")).await;
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7","reason":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","id":"server-1","result":{"roots":[]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"declined"}}"#,
    ] {
        assert_eq!(world.post(body).send().await.unwrap().status(), 202);
        assert_eq!(world.requests().last().unwrap().text(), body);
    }
}

#[tokio::test]
async fn http2_is_spoken_too() {
    let world = answering(DONE).await;
    let two = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let answer =
        two.post(world.url()).header("content-type", "application/json").body(CALL).send().await.unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_2);
    assert_eq!(answer.text().await.unwrap(), DONE);
}

#[tokio::test]
async fn an_answer_with_two_content_types_is_withheld() {
    const KINDS: [&[&str]; 3] = [
        &["application/json, text/event-stream"],
        &["application/json", "text/event-stream"],
        &["text/event-stream", "application/json"],
    ];
    let done = DONE.replace("[]", "[\"forged\"]");
    // One is read by whoever expects events, the other by whoever expects JSON.
    for forged in [format!("data: {done}\n\n"), done.replacen(':', ":\n\n", 1) + "\n\n"] {
        for kinds in KINDS {
            let body = forged.clone();
            let world = PassThrough::before(move |_, wire| {
                let headers: Vec<_> = kinds.iter().map(|kind| ("content-type", *kind)).collect();
                wire.answer(200, &headers, body.as_bytes());
            })
            .await;
            let response = world.post(CALL).send().await.unwrap();
            assert!(!response.text().await.unwrap().contains("forged"), "{kinds:?}: {forged}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_names_two_sessions_names_none() {
    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    for (second, named) in [("s-1", Some("s-1")), ("s-2", None)] {
        let world = PassThrough::before(move |_, wire| {
            let headers =
                [("content-type", "application/json"), ("mcp-session-id", "s-1"), ("mcp-session-id", second)];
            wire.answer(200, &headers, DONE.as_bytes());
        })
        .await;
        let response = Reading::of(world.post(INITIALIZE)).await;
        assert_eq!(response.header("mcp-session-id"), named);
        assert_eq!(response.ended().await.contains("-31001"), named.is_none());
    }
}
