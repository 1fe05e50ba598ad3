//! What a proxy must never break (1.4 of the specification's digest), each a test: a client and a server that are unaware of
//! the gateway say and hear the same bytes as without it.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use black_box::mcp::{LEGACY, MODERN};
use black_box::{Gateway, GatewayProcess, McpClient};
use serde_json::{Value, json};
use testkit::{McpRequest, McpServer};

/// A gateway that lets unaware clients through, and its process.
fn advisory(upstream: &McpServer) -> (Gateway, GatewayProcess) {
    let gateway = Gateway::before(&upstream.url()).route("without_vap = \"advisory\"");
    let running = gateway.start();
    (gateway, running)
}

/// The `_meta` of the newer era, as text.
fn meta() -> String {
    format!(
        "\"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"{MODERN}\",\"io.modelcontextprotocol/clientCapabilities\":{{}}}}"
    )
}

/// A body of the newer era that calls `echo`.
fn call(id: &str, arguments: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{arguments},{}}}}}",
        meta()
    )
}

/// An upstream that answers every tool call with this message, in which `$id` stands for the id.
fn answering(message: &'static str) -> McpServer {
    McpServer::scripted(move |seen, wire| {
        let asked = seen.rpc() == "tools/call";
        if asked {
            let message = message.replace("$id", &seen.id().unwrap());
            wire.answer(200, &[("Content-Type", "application/json")], message.as_bytes());
        }
        asked
    })
}

#[test]
fn an_id_comes_back_as_it_was_written_whatever_its_type() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = advisory(&upstream);
    let mut client = running.modern();
    for id in [
        "1",
        "\"1\"",
        "0",
        "-7",
        "9007199254740991",
        "\"\"",
        "\"\\u00e9\\ud83d\\ude00\"",
        "\"a b/c\"",
        "\"\\u0031\"",
        "1e2",
    ] {
        let answer = client.send("tools/call", Some("echo"), &call(id, "{}"));
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.contains(&format!("\"id\":{id},")), "{id}: {text}");
        assert_eq!(upstream.of("tools/call").last().unwrap().text(), call(id, "{}"));
    }
}

#[test]
fn a_request_reaches_the_server_byte_for_byte() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = advisory(&upstream);
    let mut client = running.modern();
    let numbers = "[1e2, 1.0, -0, 9007199254740993, 1e400, 0.1000000000000000055511151231257827, 1E+2]";
    let strings = "[\"\\u0041\\/\", \"\u{2028}\u{2029}\", \"\u{202e}abc\u{202c}\", \"\u{1f600}\", \"\\ud83d\\ude00\", \"\\ud800\", \"\\u0000\"]";
    let arguments =
        format!("{{ \"z\" : {numbers},\n\t\"a\":{strings} , \"nested\":{{\"\":null,\"é\":[[],{{}}]}} }}");
    for body in [
        call("1", &arguments),
        // Unknown parameters, unknown members beside them, and an order of one's own.
        format!(
            " {{\"params\":{{{},\"task\":{{\"ttl\":6e4}},\"arguments\":{arguments},\"unknown\":1.50,\"name\":\"echo\"}},\"x\":true,\"method\":\"tools/call\",\"id\":2,\"jsonrpc\":\"2.0\"}}\n",
            meta()
        ),
        // `_meta` of others, with keys that mean something elsewhere.
        call("3", "{}").replace(
            "\"_meta\":{",
            "\"_meta\":{\"progressToken\":1e0,\"traceparent\":\"00-0-0-01\",\"org.example/x\":{\"vap\":1},",
        ),
    ] {
        let answer = client.send("tools/call", Some("echo"), &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let calls = upstream.of("tools/call");
        assert_eq!(calls.last().unwrap().text(), body);
    }
}

#[test]
fn an_unknown_method_and_its_answer_pass_unchanged() {
    let upstream = McpServer::scripted(|seen, wire| {
        let asked = seen.rpc() == "example/unheard-of";
        if asked {
            wire.result(
                seen,
                "{\"resultType\":\"example/odd\",\"n\":1e2,\"more\":[{\"type\":\"hologram\"}]}",
            );
        }
        asked
    });
    let (_gateway, running) = advisory(&upstream);
    let mut client = running.modern();
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"example/unheard-of\",\"params\":{{\"q\":1.0,{}}}}}",
        meta()
    );
    let answer = client.send("example/unheard-of", None, &body);
    let expected = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"example/odd\",\"n\":1e2,\"more\":[{\"type\":\"hologram\"}]}}";
    assert_eq!(String::from_utf8(answer.body).unwrap(), expected);
    assert_eq!(upstream.of("example/unheard-of")[0].text(), body);
    // One that the server does not know either keeps its status.
    assert_eq!(client.request("example/never", json!({})).answer.status, 404);
}

#[test]
fn a_result_reaches_a_caller_without_vap_byte_for_byte() {
    const RESULT: &str = "{\"jsonrpc\" : \"2.0\", \"id\" : $id, \"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"\u{2028}\\u0041\",\"annotations\":{\"priority\":1.0}},{\"type\":\"future\",\"x\":1e2}],\"structuredContent\":{\"n\":9007199254740993,\"z\":1,\"a\":2},\"isError\":true,\"_meta\":{\"org.example/y\":[1.10],\"progressToken\":\"p\"},\"nextCursor\":\"c\",\"icons\":[]}}\n";
    let upstream = answering(RESULT);
    let (_gateway, running) = advisory(&upstream);
    let answer = running.modern().send("tools/call", Some("echo"), &call("5", "{}"));
    assert_eq!(String::from_utf8(answer.body).unwrap(), RESULT.replace("$id", "5"));
}

#[test]
fn a_json_rpc_error_passes_with_its_data() {
    const ERROR: &str = "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32042,\"message\":\"go there\",\"data\":{\"elicitations\":[{\"mode\":\"url\",\"n\":1e0}]}}}";
    let upstream = answering(ERROR);
    let (_gateway, running) = advisory(&upstream);
    let answer = running.modern().send("tools/call", Some("echo"), &call("6", "{}"));
    assert_eq!((answer.status, String::from_utf8(answer.body).unwrap()), (200, ERROR.replace("$id", "6")));
}

#[test]
fn arguments_over_the_routes_length_limit_are_refused() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = advisory(&upstream);
    let padded = |length: usize| call("1", &format!("{{\"large\":\"{}\"}}", "x".repeat(length - 12)));
    let answer = running.modern().send("tools/call", Some("echo"), &padded((64 << 10) + 1));
    assert_eq!(answer.json()["error"]["code"], -32602, "{answer:?}");
    assert_eq!(answer.json()["error"]["message"], "the arguments are longer than 65536 bytes");
    assert_eq!(upstream.calls(), 0);
    running.modern().send("tools/call", Some("echo"), &padded(64 << 10));
    assert_eq!(upstream.calls(), 1);
}

#[test]
fn a_message_of_a_megabyte_goes_both_ways() {
    let upstream = McpServer::ordinary();
    let gateway = Gateway::before(&upstream.url())
        .route("without_vap = \"advisory\"")
        .route("arguments_bytes = \"2MiB\"");
    let running = gateway.start();
    let large = "\u{e9}".repeat(500_000);
    let body = call("1", &format!("{{\"large\":\"{large}\"}}"));
    let answer = running.modern().send("tools/call", Some("echo"), &body);
    assert_eq!(answer.json()["result"]["structuredContent"]["arguments"]["large"], large);
    assert_eq!(upstream.only_call().text(), body);
}

#[test]
fn every_event_comes_as_it_was_sent_and_while_the_tool_still_runs() {
    const EVENTS: [&str; 4] = [
        ": a comment\n\n",
        "id: 1\nretry: 250\ndata: \n\n",
        "event: message\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\n\
         data: \"params\":{\"progressToken\":1,\"progress\":1.0}}\n\n",
        "id:3\nevent:message\ndata:{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1e2}}\n\n",
    ];
    for era in [LEGACY, MODERN] {
        // The server goes on only once the client has seen the event before.
        let (go, going) = mpsc::channel::<()>();
        let going = Mutex::new(going);
        let upstream = McpServer::scripted(move |seen, wire| {
            if seen.rpc() != "tools/call" {
                return false;
            }
            wire.stream();
            for event in EVENTS {
                wire.bytes(event);
                going.lock().unwrap().recv().unwrap();
            }
            wire.last(seen, "{\"content\":[]}");
            true
        });
        let (_gateway, running) = advisory(&upstream);
        let mut client = if era == MODERN { running.modern() } else { running.in_session() };
        let mut coming = client.begin_call("echo", json!({}), json!({ "progressToken": 1 }));
        assert_eq!(coming.head.header("content-type"), Some("text/event-stream"));
        assert_eq!(coming.head.header("x-accel-buffering"), Some("no"));
        assert_eq!(coming.head.header("content-encoding"), None);
        for event in EVENTS {
            let came = coming.event().expect("an event while the tool runs");
            assert_eq!(format!("{}\n\n", came.text), event, "{era}");
            go.send(()).unwrap();
        }
        assert_eq!(coming.message().unwrap()["result"], json!({ "content": [] }), "{era}");
        assert!(
            coming.message().is_none() && coming.ended(),
            "{era}: the stream ends where the server ends it"
        );
    }
}

#[test]
fn a_server_that_asks_its_client_during_a_call_gets_the_answer() {
    let answers: Arc<Mutex<Vec<String>>> = Arc::default();
    let (heard, hearing) = mpsc::channel::<String>();
    let (heard, hearing) = (Mutex::new(heard), Mutex::new(hearing));
    let kept = Arc::clone(&answers);
    let upstream = McpServer::scripted(move |seen, wire| match seen.rpc().as_str() {
        "tools/call" => {
            wire.stream();
            // Its ids are its own, and may be those of the client's requests.
            wire.event("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}");
            let answer = hearing.lock().unwrap().recv().unwrap();
            wire.last(seen, &json!({ "content": [{ "type": "text", "text": answer }] }).to_string());
            true
        }
        "POST" => {
            kept.lock().unwrap().push(seen.text().to_owned());
            heard
                .lock()
                .unwrap()
                .send(seen.json()["result"]["action"].as_str().unwrap_or("none").to_owned())
                .unwrap();
            wire.answer(202, &[], b"");
            true
        }
        _ => false,
    });
    let (_gateway, running) = advisory(&upstream);
    let mut client = McpClient::legacy(running.url()).that_can(json!({ "elicitation": {} }));
    client.initialize(json!({})).must_succeed();
    let mut coming = client.begin_call("echo", json!({}), json!({}));
    let asked = coming.message().unwrap();
    assert_eq!((&asked["method"], &asked["id"]), (&json!("elicitation/create"), &json!(1)));
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"action\":\"accept\",\"content\":{\"n\":1e2}}}";
    assert_eq!(client.send("", None, answer).status, 202);
    assert_eq!(coming.message().unwrap()["result"]["content"][0]["text"], "accept");
    assert_eq!(*answers.lock().unwrap(), [answer]);
}

#[test]
fn sessions_and_their_end_pass_between_client_and_server() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = advisory(&upstream);
    let (mut one, mut other) = (running.in_session(), running.in_session());
    assert_eq!((one.session(), other.session()), (Some("session-1"), Some("session-2")));
    one.call("echo", json!({}), json!({})).must_succeed();
    assert_eq!(upstream.only_call().header("mcp-session-id"), Some("session-1"));
    assert_eq!(one.delete().status, 200);
    let deleted: Vec<McpRequest> =
        upstream.seen().into_iter().filter(|seen| seen.method() == "DELETE").collect();
    assert_eq!(
        deleted.iter().map(|seen| seen.header("mcp-session-id")).collect::<Vec<_>>(),
        [Some("session-1")]
    );
    // A client learns from the status that it has to begin anew.
    assert_eq!(one.call("echo", json!({}), json!({})).answer.status, 404);
    other.call("echo", json!({}), json!({})).must_succeed();
    other.pretend("never-begun");
    assert_eq!(other.listen(None).head.status, 405, "GET is answered by the server, who has no stream");
}

#[test]
fn clients_with_the_same_ids_at_the_same_time_hear_their_own_answers() {
    let upstream = McpServer::scripted(|seen, wire| {
        let asked = seen.rpc() == "tools/call";
        if asked {
            let who = seen.param("arguments").unwrap();
            std::thread::sleep(Duration::from_millis(fastrand::u64(0..20)));
            wire.result(seen, &format!("{{\"content\":[],\"structuredContent\":{who}}}"));
        }
        asked
    });
    let (_gateway, running) = advisory(&upstream);
    let url = running.url();
    std::thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || {
                let mut client = if n % 2 == 0 { McpClient::modern(url) } else { McpClient::in_session(url) };
                for round in 0..10 {
                    let who = json!({ "client": n, "round": round });
                    let response = client.call("echo", who.clone(), json!({}));
                    assert_eq!(response.result()["structuredContent"], who);
                }
            });
        }
    });
}

#[test]
fn a_call_of_a_server_that_hangs_up_ends_in_band_and_is_sent_once() {
    for at_once in [true, false] {
        let upstream = McpServer::scripted(move |seen, wire| {
            let asked = seen.rpc() == "tools/call";
            if asked {
                if !at_once {
                    wire.stream();
                    wire.bytes(": started\n\n");
                }
                wire.hang_up();
            }
            asked
        });
        let (_gateway, running) = advisory(&upstream);
        let mut client = running.modern();
        let mut coming = client.begin_call("echo", json!({}), json!({}));
        let messages: Vec<Value> = coming.messages();
        if at_once {
            assert_eq!(messages[0]["error"]["code"], -31001, "{messages:?}");
        } else {
            assert!(messages.iter().all(|message| message["result"].is_null()), "{messages:?}");
        }
        assert_eq!(upstream.calls(), 1);
        // And nothing else has suffered.
        client.request("tools/list", json!({})).must_succeed();
    }
}

#[test]
fn an_older_servers_error_to_a_newer_client_passes_unchanged() {
    // A client of both eras falls back to `initialize` on any error that is not of the newer one.
    let upstream = McpServer::scripted(|seen, wire| {
        let asked = seen.rpc() == "server/discover";
        if asked {
            let error = "{\"jsonrpc\":\"2.0\",\"id\":\"server-error\",\"error\":{\"code\":-32600,\"message\":\"Bad Request: no valid session ID provided\"}}";
            wire.answer(400, &[("Content-Type", "application/json")], error.as_bytes());
        }
        asked
    });
    let (_gateway, running) = advisory(&upstream);
    let response = running.modern().request("server/discover", json!({}));
    assert_eq!(response.answer.status, 400);
    assert_eq!(response.answer.json()["error"]["code"], -32600);
    assert_eq!(response.answer.json()["id"], "server-error");
}

#[test]
fn capabilities_and_lists_of_the_server_pass_whole() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = advisory(&upstream);
    let mut client =
        McpClient::legacy(running.url()).that_can(json!({ "elicitation": { "url": {} }, "x": 1 }));
    let response = client.initialize(json!({}));
    assert_eq!(response.result()["capabilities"]["experimental"]["other"], json!({ "kept": true }));
    assert_eq!(response.result()["capabilities"]["tools"], json!({ "listChanged": true }));
    let asked = &upstream.of("initialize")[0];
    assert_eq!(asked.json()["params"]["capabilities"], json!({ "elicitation": { "url": {} }, "x": 1 }));
    let listed = client.request("tools/list", json!({}));
    assert_eq!(listed.result()["tools"].as_array().unwrap().len(), 3);
    let response = running.modern().request("server/discover", json!({}));
    assert_eq!(response.result()["capabilities"]["extensions"]["example/other"], json!({}));
    assert_eq!(
        (&response.result()["ttlMs"], &response.result()["cacheScope"]),
        (&json!(60_000), &json!("public"))
    );
}
