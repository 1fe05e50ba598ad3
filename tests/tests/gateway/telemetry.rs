//! What a collector gets of a running gateway: spans by the MCP conventions, below the client's own, and nothing that was said
//! in a call. A collector that is not there changes nothing.

use std::net::TcpListener;

use black_box::collector::{CLIENT_SPAN, CLIENT_TRACE, protobuf_field, traceparent};
use black_box::{Gateway, SpanCollector, free_address};
use serde_json::json;
use testkit::McpServer;

const ADVISORY: &str = "without_vap = \"advisory\"";

#[test]
fn a_call_is_two_spans_below_the_client_s_own_and_a_stop_sends_them() {
    let (collector, upstream) = (SpanCollector::start(), McpServer::ordinary());
    let gateway =
        Gateway::before(&upstream.url()).route(ADVISORY).top(&format!("otlp = \"{}\"", collector.url));
    let running = gateway.start();
    let mut client = running.in_session();
    let session = client.session().unwrap().to_owned();
    client
        .call(
            "echo",
            json!({ "word": "unspeakable" }),
            json!({ "traceparent": traceparent(), "tracestate": "a=b" }),
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
    assert_eq!(collector.count(protobuf_field(0x0a, &CLIENT_TRACE)), 2, "{}", collector.text());
    assert_eq!(collector.count(protobuf_field(0x22, &CLIENT_SPAN)), 1, "{}", collector.text());
    collector.must_not_have(&["unspeakable", "gw.example", "error.type", &session]);
    // The server sees the client's context, not ours.
    assert!(String::from_utf8(sent.body).unwrap().contains(&traceparent()));
    assert!(!sent.head.to_ascii_lowercase().contains("traceparent"), "{}", sent.head);
}

#[test]
fn a_trace_in_the_http_headers_goes_on_and_failures_say_what_they_are() {
    let collector = SpanCollector::start();
    let upstream = McpServer::ordinary();
    let gateway = Gateway::before(&upstream.url()).top(&format!("otlp = \"{}\"", collector.url));
    let running = gateway.start();
    let mut client = running.in_session();
    client.headers.push(("traceparent".to_owned(), traceparent()));
    // Denied in band: nobody declared anything.
    client.call("echo", json!({ "word": "unspeakable" }), json!({}));
    client.request("no/such.method", json!({}));
    assert_eq!(upstream.calls(), 0);
    running.stop();
    assert_eq!(collector.count(protobuf_field(0x22, &CLIENT_SPAN)), 2, "{}", collector.text());
    collector.must_have(&["error.type", "tool_error", "rpc.response.status_code", "-32601"]);
    collector.must_not_have(&["unspeakable"]);
}

#[test]
fn variables_name_the_collector_where_the_configuration_does_not() {
    let (collector, upstream) = (SpanCollector::start(), McpServer::ordinary());
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
fn calls_and_stops_succeed_without_a_working_collector() {
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
fn a_malformed_collector_address_is_a_mistake_with_its_line() {
    let gateway = Gateway::before("http://127.0.0.1:9/mcp").top("otlp = \"localhost:4318\"");
    let refused = gateway.tabellion(&["gateway", "check", "--config", "gateway.toml"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("otlp"), "{refused}");
}
