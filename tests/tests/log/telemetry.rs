//! What a collector gets of a running log: the span of a request below the client's own, the stages of a registration below
//! that, and the batch. Nothing of a statement.

use black_box::collector::{CLIENT_SPAN, CLIENT_TRACE, protobuf_field, traceparent};
use black_box::{Log, SpanCollector};

#[test]
fn a_registration_is_a_span_below_the_client_s_own_with_its_stages_and_its_batch_is_another_trace() {
    let (collector, log) = (SpanCollector::start(), Log::sqlite());
    log.configure(&format!("otlp = \"{}\"", collector.url));
    let service = log.serve();
    let statement = log.statement();
    let traceparent = traceparent();
    let headers = [("Content-Type", "application/cose"), ("traceparent", &traceparent)];
    let registered = service.connection().send("POST", "/entries", &headers, statement.bytes());
    assert_eq!(registered.status, 201);
    let id = registered.must_have("x-request-id").to_owned();
    service.stop();
    let stages = ["parse", "verify", "policy", "queue"];
    collector.must_have(&stages);
    collector.must_have(&[
        "tabellion-log",
        "service.instance.id",
        "POST /entries",
        "http.response.status_code",
        "commit batch",
        "batch.entries",
        "sign head",
        "tree.size",
        &id,
    ]);
    // The request and its stages are in the trace, and the client's span is above the request alone.
    let spans = collector.count(protobuf_field(0x0a, &CLIENT_TRACE));
    assert_eq!(spans, 1 + stages.len(), "{}", collector.text());
    assert_eq!(collector.count(protobuf_field(0x22, &CLIENT_SPAN)), 1, "{}", collector.text());
    collector.must_not_have(&["error.type", "did:key", testkit::AGENT]);
}

#[test]
fn a_failed_request_is_a_failed_span_and_a_wrong_collector_a_mistake_in_the_settings() {
    let (collector, log) = (SpanCollector::start(), Log::sqlite());
    log.configure(&format!("otlp = \"{}\"", collector.url));
    let service = log.serve();
    let unknown = service.connection().get("/v1/entries/none");
    assert_eq!(unknown.status, 400);
    service.stop();
    collector.must_have(&["GET /v1/entries/{entry_id}", "http.response.status_code"]);
    // The client's mistakes are not errors of the service.
    collector.must_not_have(&["error.type", "none"]);

    let refused = log.tabellion(&["serve", "--otlp", "localhost:4318"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("otlp") && refused.stderr.contains("http://127.0.0.1:4318"), "{refused}");
}
