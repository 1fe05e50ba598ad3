//! What a collector gets of a running service: spans of requests and jobs below the client's own, and nothing of the work.

use black_box::cli::Dev;
use black_box::collector::{CLIENT_SPAN, CLIENT_TRACE, protobuf_field, traceparent};
use black_box::{Connection, SpanCollector, VerificationProcess};

use crate::request;

#[test]
fn a_request_is_a_span_below_the_client_s_own_with_its_checks_and_its_signature_and_a_stop_sends_them() {
    let (collector, dev) = (SpanCollector::start(), Dev::start());
    let service =
        VerificationProcess::start_with(&dev.folder, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]);
    let traceparent = traceparent();
    let headers = [("Content-Type", "application/json"), ("traceparent", &traceparent)];
    let answer = service.post(&request(7), &headers).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.json());
    let id = answer.header("x-request-id").unwrap().to_owned();
    service.stop();
    collector.must_have(&[
        "tabellion-verification",
        "service.instance.id",
        "POST /verify",
        "http.response.status_code",
        "checks",
        "check.verdict",
        "signature",
        &id,
    ]);
    // The request and its two parts are in the trace, and the client's span is above the first of them alone.
    assert_eq!(collector.count(protobuf_field(0x0a, &CLIENT_TRACE)), 3, "{}", collector.text());
    assert_eq!(collector.count(protobuf_field(0x22, &CLIENT_SPAN)), 1, "{}", collector.text());
    collector.must_not_have(&["task-7", "error.type", "maximum", crate::AGENT]);
}

#[test]
fn every_answer_has_the_number_of_its_request() {
    let dev = Dev::start();
    let service = VerificationProcess::start(&dev.folder);
    let mut connection = Connection::to(service.url());
    let mut numbers: Vec<String> = ["/v1/engines", "/openapi.json", "/jobs/none", "/nothing", "/verify"]
        .iter()
        .map(|path| connection.get(path).header("x-request-id").unwrap().to_owned())
        .collect();
    let refused = service.post(&request(1), &[]).unwrap();
    assert_eq!(refused.status, 415);
    numbers.push(refused.header("x-request-id").unwrap().to_owned());
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), 6, "{numbers:?}");
}
