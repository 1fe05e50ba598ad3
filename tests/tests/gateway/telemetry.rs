//! What a collector gets of a running gateway: spans by the MCP conventions, below the client's own, and nothing that was said
//! in a call. A collector that is not there changes nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use black_box::{Gateway, free_address};
use serde_json::json;
use testkit::McpServer;

/// The trace that the client is in, and its span.
const TRACE: [u8; 16] = [0x4b; 16];
const SPAN: [u8; 8] = [0x3f; 8];
const ADVISORY: &str = "without_vap = \"advisory\"";

/// A collector that keeps what it gets, undecoded: names, values and ids stand in OTLP's protobuf as they are.
struct Collector {
    url: String,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let keeps = got.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let keeps = keeps.clone();
                thread::spawn(move || {
                    let mut reader = BufReader::new(&stream);
                    while let Some((path, body)) = request(&mut reader) {
                        assert_eq!(path, "/v1/traces");
                        keeps.lock().unwrap().extend(body);
                        (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                    }
                });
            }
        });
        Self { url, got }
    }

    /// How often these bytes came.
    fn count(&self, bytes: impl AsRef<[u8]>) -> usize {
        let bytes = bytes.as_ref();
        self.got.lock().unwrap().windows(bytes.len()).filter(|window| *window == bytes).count()
    }

    #[track_caller]
    fn must_have(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.count(text) > 0, "{text}: {}", self.text());
        }
    }

    #[track_caller]
    fn must_not_have(&self, texts: &[&str]) {
        for text in texts {
            assert_eq!(self.count(text), 0, "{text}: {}", self.text());
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.got.lock().unwrap()).into_owned()
    }
}

/// The path and the body of the next request.
fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        length = line.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first.split(' ').nth(1)?.to_owned(), body))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parent() -> String {
    format!("00-{}-{}-01", hex(&TRACE), hex(&SPAN))
}

/// A field of a span, as protobuf writes it: its tag, its length, its bytes.
fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

#[test]
fn a_call_is_two_spans_below_the_client_s_own_and_a_stop_sends_them() {
    let (collector, upstream) = (Collector::start(), McpServer::ordinary());
    let gateway =
        Gateway::before(&upstream.url()).route(ADVISORY).top(&format!("otlp = \"{}\"", collector.url));
    let running = gateway.start();
    let mut client = running.in_session();
    let session = client.session().unwrap().to_owned();
    client
        .call(
            "echo",
            json!({ "word": "unspeakable" }),
            json!({ "traceparent": parent(), "tracestate": "a=b" }),
        )
        .must_succeed();
    let sent = upstream.only_call();
    running.stop();
    collector.must_have(&[
        "tabellion-gateway",
        "service.instance.id",
        "tools/call echo",
        "mcp.method.name",
        "mcp.session.id",
        "gen_ai.tool.name",
        "execute_tool",
        "jsonrpc.request.id",
        "a=b",
    ]);
    // SERVER and CLIENT of the call are both in the trace, and the client's span is above the first of them alone.
    assert_eq!(collector.count(field(0x0a, &TRACE)), 2, "{}", collector.text());
    assert_eq!(collector.count(field(0x22, &SPAN)), 1, "{}", collector.text());
    collector.must_not_have(&["unspeakable", "gw.example", "error.type", &session]);
    // The server sees the client's context, not ours.
    assert!(String::from_utf8(sent.body).unwrap().contains(&parent()));
    assert!(!sent.head.to_ascii_lowercase().contains("traceparent"), "{}", sent.head);
}

#[test]
fn a_trace_in_the_http_headers_goes_on_and_failures_say_what_they_are() {
    let collector = Collector::start();
    let upstream = McpServer::ordinary();
    let gateway = Gateway::before(&upstream.url()).top(&format!("otlp = \"{}\"", collector.url));
    let running = gateway.start();
    let mut client = running.in_session();
    client.headers.push(("traceparent".to_owned(), parent()));
    // Denied in band: nobody declared anything.
    client.call("echo", json!({ "word": "unspeakable" }), json!({}));
    client.request("no/such.method", json!({}));
    assert_eq!(upstream.calls(), 0);
    running.stop();
    assert_eq!(collector.count(field(0x22, &SPAN)), 2, "{}", collector.text());
    collector.must_have(&["error.type", "tool_error", "rpc.response.status_code", "-32601"]);
    collector.must_not_have(&["unspeakable"]);
}

#[test]
fn variables_name_the_collector_where_the_configuration_does_not() {
    let (collector, upstream) = (Collector::start(), McpServer::ordinary());
    let gateway = Gateway::before(&upstream.url()).route(ADVISORY);
    // What the log leaves out is sent all the same.
    let variables =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()), ("TABELLION_LOG_LEVEL", "error")];
    let running = gateway.try_start(&variables).unwrap();
    running.modern().call("echo", json!({}), json!({})).must_succeed();
    running.stop();
    collector.must_have(&["tools/call echo", "tabellion-gateway"]);
}

#[test]
fn a_dead_collector_and_a_silent_one_break_no_call_and_no_stop() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = McpServer::ordinary();
    for collector in [free_address(), silent.local_addr().unwrap()] {
        let gateway =
            Gateway::before(&upstream.url()).route(ADVISORY).top(&format!("otlp = \"http://{collector}\""));
        // The queue is shorter than what is done: what does not fit is dropped.
        let short = [("OTEL_BSP_SCHEDULE_DELAY", "50"), ("OTEL_BSP_MAX_QUEUE_SIZE", "8")];
        let running = gateway.try_start(&short).unwrap();
        let mut client = running.modern();
        for _ in 0..100 {
            client.call("echo", json!({}), json!({})).must_succeed();
        }
        running.stop();
    }
    assert_eq!(upstream.calls(), 200);
}

#[test]
fn a_collector_that_is_no_address_is_a_mistake_with_its_line() {
    let gateway = Gateway::before("http://127.0.0.1:9/mcp").top("otlp = \"localhost:4318\"");
    let refused = gateway.tabellion(&["gateway", "check", "--config", "gateway.toml"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("otlp"), "{refused}");
}
