//! Requests that no client sends by mistake: they are refused as the revision says, and the server hears nothing of them.

use std::io::Write as _;

use black_box::mcp::{LEGACY, MODERN};
use black_box::{Connection, Gateway, GatewayProcess};
use serde_json::json;
use testkit::McpServer;

fn before(upstream: &McpServer) -> (Gateway, GatewayProcess) {
    let gateway = Gateway::before(&upstream.url()).route("without_vap = \"advisory\"");
    let running = gateway.start();
    (gateway, running)
}

const TYPES: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];

fn post(connection: &mut Connection, headers: &[(&str, &str)], body: &[u8]) -> black_box::Answer {
    connection.send("POST", "/mcp", &[&TYPES, headers].concat(), body)
}

#[test]
fn an_ambiguous_body_is_refused() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = before(&upstream);
    let call = |members: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{}}{members}}}}}"
        )
    };
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for body in [
        call(",\"name\":\"files.delete\""),
        call(",\"arguments\":{\"a\":1,\"a\":2}"),
        call(",\"na\\u006de\":\"files.delete\""),
        call(",\"_meta\":{\"vap\":1,\"vap\":2}"),
        call("").replace("\"id\":1", "\"id\":1,\"id\":2"),
        call("").replace("\"method\"", "\"method\":\"ping\",\"method\""),
        call("").replace("\"id\":1,", ""),
        call("").replace("\"id\":1", "\"id\":null"),
        call("").replace("\"id\":1", "\"id\":{}"),
        format!("[{}]", call("")),
        format!("[{},{}]", call(""), call("")),
        format!("{}{}", call(""), call("")),
        "[]".to_owned(),
        String::new(),
        "null".to_owned(),
        "{".to_owned(),
        call(&format!(",\"x\":{deep}")),
        format!("\u{feff}{}", call("")),
        call(",\"x\":01"),
        call(",\"x\":NaN"),
    ] {
        for version in [LEGACY, MODERN] {
            let mut connection = running.connection();
            let headers =
                [("MCP-Protocol-Version", version), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
            let answer = post(&mut connection, &headers, body.as_bytes());
            let (code, id) = (answer.json()["error"]["code"].as_i64(), answer.json()["id"].clone());
            assert!(matches!(code, Some(-32600 | -32700)) && id.is_null(), "{body}: {answer:?}");
            assert_eq!(answer.status, 400, "{body}: {answer:?}");
        }
    }
    let answer = post(&mut running.connection(), &[], b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
    assert_eq!(answer.status, 400);
    assert_eq!(upstream.seen().len(), 0);
}

#[test]
fn mirrored_headers_must_agree_with_the_body() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = before(&upstream);
    let mut client = running.modern();
    let mut params = json!({ "name": "echo", "arguments": {} });
    client.dress(&mut params);
    let body = client.body("tools/call", &params);
    let right = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let without = |name: &str| right.iter().copied().filter(|(known, _)| *known != name).collect::<Vec<_>>();
    let instead = |name: &'static str, value: &'static str| [&without(name)[..], &[(name, value)]].concat();
    let twice = [&right[..], &[("Mcp-Name", "files.delete")]].concat();
    for headers in [
        without("Mcp-Method"),
        without("Mcp-Name"),
        without("MCP-Protocol-Version"),
        instead("Mcp-Method", "tools/list"),
        instead("Mcp-Method", "TOOLS/CALL"),
        instead("Mcp-Name", "files.delete"),
        instead("Mcp-Name", "=?base64?ZmlsZXMuZGVsZXRl?="),
        instead("Mcp-Name", "=?base64?!?="),
        instead("MCP-Protocol-Version", LEGACY),
        twice,
    ] {
        let answer = post(&mut running.connection(), &headers, body.as_bytes());
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"], &answer.json()["id"]),
            (400, &json!(-32020), &json!(1)),
            "{headers:?}: {answer:?}"
        );
    }
    assert_eq!(upstream.seen().len(), 0);
    let answer =
        post(&mut running.connection(), &instead("Mcp-Name", "=?base64?ZWNobw==?="), body.as_bytes());
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn foreign_origins_and_rebound_hosts_are_refused() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = before(&upstream);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for origin in ["https://evil.example", "http://evil.example:80", "null", "http://127.0.0.1.evil.example"]
    {
        for method in ["POST", "GET", "DELETE"] {
            let headers = [&TYPES[..], &[("Origin", origin)]].concat();
            let answer = running.connection().send(method, "/mcp", &headers, body.as_bytes());
            assert_eq!(answer.status, 403, "{method} {origin}: {answer:?}");
        }
    }
    let connection = running.connection();
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""] {
        let length = body.len();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let answers = connection.raw(request.as_bytes());
        assert!(
            answers.iter().all(|answer| (400..500).contains(&answer.status)) && !answers.is_empty(),
            "{host}"
        );
    }
    assert_eq!(upstream.seen().len(), 0);
    let local = format!("http://{}", connection.address());
    let headers = [&TYPES[..], &[("Origin", local.as_str())]].concat();
    assert_eq!(running.connection().send("POST", "/mcp", &headers, body.as_bytes()).status, 200);
}

/// Most memory that a gateway takes, whatever clients and servers send, in bytes. Its limits on held messages and answers
/// allow 256 MiB; copies on the way and what the allocator keeps are the rest: 857 MiB were measured on a busy machine.
const MOST_MEMORY: u64 = 1 << 30;

/// The most memory that a process has taken so far.
fn peak(running: &GatewayProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid().as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn unfinished_messages_take_a_bounded_amount_of_memory() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = before(&upstream);
    let part = vec![b' '; (4 << 20) - 1];
    let mut held = Vec::new();
    for _ in 0..120 {
        let connection = running.connection();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            connection.address(),
            4 << 20
        );
        let mut stream = connection.connect().unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // One that is turned away cannot write all of it.
        let _all = stream.write_all(&part);
        held.push(stream);
    }
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": "y".repeat(1 << 20) } });
    let refused = post(&mut running.connection(), &[], message.to_string().as_bytes());
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(running.modern().call("echo", json!({}), json!({})).answer.status, 200, "a small one goes on");
    assert!(peak(&running) < MOST_MEMORY, "{} MiB", peak(&running) >> 20);
    drop(held);
}

#[test]
fn large_answers_of_servers_take_a_bounded_amount_of_memory() {
    let text = format!("{{\"content\":[],\"large\":\"{}\"}}", "x".repeat(60 << 20));
    let upstream = McpServer::scripted(move |seen, wire| {
        let asked = seen.rpc() == "tools/call" && seen.text().contains("large");
        if asked {
            wire.result(seen, &text);
        }
        asked
    });
    let (_gateway, running) = before(&upstream);
    let came = std::thread::scope(|scope| {
        let call = || {
            running.modern().call("echo", json!({ "kind": "large" }), json!({})).message["error"].is_null()
        };
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).filter(|came| *came).count()
    });
    assert!(came > 0, "what there is room for comes");
    assert!(peak(&running) < MOST_MEMORY, "{} MiB", peak(&running) >> 20);
    assert!(running.modern().call("echo", json!({ "kind": "large" }), json!({})).message["error"].is_null());
    assert_eq!(running.modern().call("echo", json!({}), json!({})).answer.status, 200);
}

#[test]
fn unknown_methods_paths_and_content_types_are_refused() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = before(&upstream);
    let mut connection = running.connection();
    for method in ["PUT", "PATCH", "TRACE", "OPTIONS", "HEAD"] {
        let answer = connection.send(method, "/mcp", &[], b"");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, POST, DELETE")), "{method}");
    }
    for path in ["/", "/mcp/", "/mcp2", "/MCP", "//mcp", "/mcp/../mcp", "/admin", "/metrics"] {
        assert_eq!(connection.send("POST", path, &TYPES, b"{}").status, 404, "{path}");
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let answer = connection.send("POST", "/mcp", &[("Content-Type", kind), TYPES[1]], body.as_bytes());
        assert!((400..500).contains(&answer.status), "{kind}: {answer:?}");
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[test]
fn ambiguous_lengths_are_refused() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = before(&upstream);
    let connection = running.connection();
    let host = connection.address();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    );
    let inner = format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{{}}");
    for smuggled in [
        format!("{head}Content-Length: 2\r\nContent-Length: {}\r\n\r\n{{}}{inner}", inner.len() + 2),
        format!("{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{inner}"),
        format!("{head}Content-Length: +2\r\n\r\n{{}}{inner}"),
    ] {
        let answers = connection.raw(smuggled.as_bytes());
        assert!(answers.iter().all(|answer| answer.status >= 400), "{answers:?}");
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[test]
fn tokens_hop_headers_and_vap_material_are_removed() {
    let upstream = McpServer::ordinary();
    let (_gateway, running) = before(&upstream);
    let mut client = running.modern().with_token("a-token-of-the-client");
    for (name, value) in
        [("Cookie", "a=b"), ("Proxy-Authorization", "Basic eDp5"), ("Connection", "X-Hop"), ("X-Hop", "1")]
    {
        client.headers.push((name.to_owned(), value.to_owned()));
    }
    let response =
        client.call("echo", json!({}), json!({ "dev.tabellion/roa": ["x"], "org.example/kept": 1 }));
    assert_eq!(response.answer.status, 200, "{response:?}");
    let call = upstream.only_call();
    for gone in ["authorization", "proxy-authorization", "x-hop"] {
        assert_eq!(call.header(gone), None, "{}", call.head);
    }
    assert!(
        !call.text().contains("dev.tabellion/roa") && call.text().contains("org.example/kept"),
        "{}",
        call.text()
    );
}
