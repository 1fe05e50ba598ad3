//! Section 1.4: what a proxy must never break, where it concerns messages.

use crate::world::{CALL, DONE, Reading, Wishes, World, modern_text};

/// Answers everything with this.
async fn answering(answer: &'static str) -> World {
    World::with(Wishes::default(), move |_, mut line| async move { line.json(answer).await }).await
}

#[tokio::test]
async fn ids_keep_value_and_type_both_ways() {
    let world = World::with(Wishes::default(), |request, mut line| async move {
        let id = request.text().split("\"id\":").nth(1).unwrap().split(",\"m").next().unwrap().to_owned();
        line.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).await;
    })
    .await;
    for id in ["1", "\"1\"", "0", "9007199254740991", "-7", "\"\u{fc}\u{1F600}\"", r#""\u0031""#, "1e2"] {
        for method in ["prompts/list", "tools/call"] {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"x"}}}}"#);
            let answer = world.post(body.clone()).send().await.unwrap().text().await.unwrap();
            assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
            assert_eq!(world.requests().last().unwrap().text(), body);
        }
    }
}

#[tokio::test]
async fn what_the_gateway_does_not_know_passes_byte_for_byte() {
    const ANSWER: &str = "{ \"jsonrpc\":\"2.0\",\"id\":1 ,\"result\":{\"x-vendor\":{\"a\":[1.0,1e2,-0]},\"nextCursor\":\"\\u0061\",\"content\":[{\"type\":\"hologram\",\"icons\":[]}],\"structuredContent\":{\"n\":123456789012345678901},\"ttlMs\":0,\"cacheScope\":\"private\",\"tools\":[{\"execution\":{\"taskSupport\":\"optional\"},\"inputSchema\":{\"x-mcp-header\":\"q\"}}]} }\n";
    let world = answering(ANSWER).await;
    for body in [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"vendor/\\u0075nknown\",\"params\":[1,2,{\"_meta\":{}}],\"x\":null}",
        " {\"jsonrpc\":\"2.0\",\"id\":1,\n\t\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"task\":{\"ttl\":1e3},\"inputResponses\":{},\"requestState\":\"s\",\"arguments\":{\"n\":0.10,\"big\":9007199254740993,\"e\":1E+2,\"u\":\"\u{2028}\u{2029}\u{1F600}\u{202E}abc\",\"esc\":\"\\ud83d\\ude00\\/\"},\"_meta\":{\"progressToken\":0,\"traceparent\":\"00-1\",\"com.example/x\":{\"y\":1.50}}}} ",
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"n":1e400,"lone":"\ud800","_meta":{}}}"#,
    ] {
        let answer = world.post(body).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(answer, ANSWER);
        assert_eq!(world.requests().last().unwrap().text(), body);
    }
}

#[tokio::test]
async fn large_messages_pass_whole() {
    let large = "\u{2028}\u{1F600}x".repeat(60_000);
    assert!(large.len() > 300_000);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"text":"{large}"}}]}}}}"#);
    let sent = answer.clone();
    let world = World::with(Wishes::default(), move |request, mut line| {
        let answer = sent.clone();
        async move {
            if request.text().contains("stream") {
                line.begin("").await;
                line.send(&format!("data: {answer}\n\n")).await;
                line.end().await;
            } else {
                line.json(&answer).await;
            }
        }
    })
    .await;
    for how in ["whole", "stream"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{how}","arguments":{{"a":"{large}"}}}}}}"#
        );
        let told = Reading::of(world.post(body.clone())).await.ended().await;
        assert!(told.contains(&answer) && told.len() < answer.len() + 10);
        assert_eq!(world.requests().last().unwrap().text(), body);
    }
}

#[tokio::test]
async fn tool_errors_stay_results_and_errors_stay_errors() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"no"}]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m","data":{"elicitations":[1.0]}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":"text"}}"#,
    ] {
        let world = answering(answer).await;
        let told = world.post(CALL).send().await.unwrap();
        assert_eq!(told.status(), 200);
        assert_eq!(told.text().await.unwrap(), answer);
    }
}

#[tokio::test]
async fn statuses_and_their_headers_keep_their_meaning() {
    let world = World::with(Wishes::default(), |request, mut line| async move {
        let status = request.header("x-wanted").unwrap().to_owned();
        let headers = "www-authenticate: Bearer scope=\"a\"\r\nallow: POST\r\ncontent-type: text/plain\r\n";
        let body: &[u8] = if status.starts_with("202") { b"" } else { b"words" };
        line.answer(&status, headers, body).await;
    })
    .await;
    let wanted = [
        "202 Accepted",
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "405 Method Not Allowed",
        "406 Not Acceptable",
        "409 Conflict",
        "500 Oh",
        "307 Elsewhere",
    ];
    for wanted in wanted {
        for body in [CALL, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
            let told = world.post(body).header("x-wanted", wanted).send().await.unwrap();
            assert_eq!(told.status().as_str(), &wanted[..3]);
            assert_eq!(told.headers()["www-authenticate"], "Bearer scope=\"a\"");
            assert_eq!(told.headers()["allow"], "POST");
            let text = told.text().await.unwrap();
            assert_eq!(text, if wanted.starts_with("202") { "" } else { "words" });
        }
        let got = world.http.get(world.url()).header("x-wanted", wanted).send().await.unwrap();
        assert_eq!(got.status().as_str(), &wanted[..3]);
        let deleted = world.http.delete(world.url()).header("x-wanted", wanted).send().await.unwrap();
        assert_eq!(deleted.status().as_str(), &wanted[..3]);
    }
}

#[tokio::test]
async fn capabilities_and_sessions_are_the_clients_and_the_servers() {
    let world = World::with(Wishes::default(), |_, mut line| async move {
        let body = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s"}}}"#;
        line.answer("200 OK", "content-type: application/json\r\nMcp-Session-Id: from-server\r\n", body.as_bytes()).await;
    })
    .await;
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"roots":{"listChanged":true},"x":1.0},"clientInfo":{"name":"c"}}}"#;
    let told = world.post(body).send().await.unwrap();
    assert_eq!(told.headers()["mcp-session-id"], "from-server");
    let text = told.text().await.unwrap();
    assert!(text.contains(r#""capabilities":{"tools":{},"experimental":{"vap":{}}}"#), "{text}");
    assert_eq!(world.requests()[0].text(), body);
    assert_eq!(world.requests()[0].header("mcp-session-id"), Some("s-1"));
    assert_eq!(world.notes.all(), [r#"opened Some("from-server")"#]);
}

#[tokio::test]
async fn a_legacy_servers_error_to_discover_passes_unchanged() {
    const ERROR: &str =
        r#"{"jsonrpc":"2.0","id":"d","error":{"code":-32601,"message":"Method not found: 1.0"}}"#;
    let world = World::with(Wishes::default(), |_, mut line| async move {
        line.answer("404 Not Found", "content-type: application/json\r\n", ERROR.as_bytes()).await;
    })
    .await;
    let body = modern_text("\"d\"", "server/discover", "");
    let told = world.modern("server/discover", None, body.clone()).send().await.unwrap();
    assert_eq!(told.status(), 404);
    assert_eq!(told.text().await.unwrap(), ERROR);
    assert_eq!(world.requests()[0].text(), body);
}

#[tokio::test]
async fn headers_pass_but_for_those_between_neighbours_and_credentials() {
    let world = World::with(Wishes::default(), |_, mut line| async move {
        line.answer(
            "200 OK",
            "content-type: application/json\r\nx-from-server: 1\r\nkeep-alive: timeout=5\r\n",
            DONE.as_bytes(),
        )
        .await;
    })
    .await;
    let told = world
        .post(CALL)
        .header("mcp-protocol-version", "2025-06-18")
        .header("traceparent", "00-abc")
        .header("x-custom", "1")
        .header("authorization", "Bearer of-the-client")
        .header("proxy-authorization", "Basic x")
        .header("te", "trailers")
        .header("accept-encoding", "gzip, br")
        .header("connection", "x-hop, mcp-session-id")
        .header("x-hop", "1")
        .send()
        .await
        .unwrap();
    assert_eq!(told.headers()["x-from-server"], "1");
    assert!(!told.headers().contains_key("keep-alive"));
    let seen = &world.requests()[0];
    for (name, value) in [
        ("mcp-protocol-version", "2025-06-18"),
        ("traceparent", "00-abc"),
        ("x-custom", "1"),
        ("mcp-session-id", "s-1"),
        ("accept", "application/json, text/event-stream"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    for name in ["authorization", "proxy-authorization", "te", "accept-encoding", "x-hop"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("host"), Some(world.upstream.address.to_string().as_str()));
    assert!(seen.head.starts_with("POST /server HTTP/1.1"));
}

#[tokio::test]
async fn delete_frees_the_servers_session_and_its_refusal_passes() {
    let world = World::with(Wishes::default(), |request, mut line| async move {
        let status = if request.header("mcp-session-id") == Some("mine") {
            "204 No Content"
        } else {
            "405 Method Not Allowed"
        };
        line.answer(status, "", b"").await;
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
    let world =
        World::with(
            Wishes::default(),
            |_, mut line| async move { line.answer("202 Accepted", "", b"").await },
        )
        .await;
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
async fn an_answer_that_says_to_be_of_two_kinds_does_not_pass_unseen() {
    let forged = format!("data: {}\n\n", DONE.replace("[]", "[\"forged\"]"));
    let world = World::with(Wishes::default(), move |_, mut line| {
        let forged = forged.clone();
        async move {
            let headers = "content-type: application/json, text/event-stream\r\n";
            line.answer("200 OK", headers, forged.as_bytes()).await;
        }
    })
    .await;
    let told = world.post(CALL).send().await.unwrap();
    assert!(!told.text().await.unwrap().contains("forged"));
}
