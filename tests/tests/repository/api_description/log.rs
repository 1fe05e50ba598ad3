//! The description of the log's public listener.

use black_box::{Log, Service};
use data_encoding::HEXLOWER;
use scitt::{Problem, Receipt};
use serde_json::json;

use super::clients::{Description, body};

fn base_url(service: &Service) -> String {
    format!("http://{}", service.connection().address())
}

#[test]
fn a_generated_python_client_registers_reads_and_understands_a_problem() {
    let log = Log::sqlite();
    let service = log.serve();
    let description = Description::served_by(service.connection());
    description.must_be_checked_in_as("openapi.json");
    let statement = log.statement();
    let (id, base_url) = (statement.digest().to_string(), base_url(&service));
    let call = |operation: &str, arguments| json!({ "operation": operation, "base_url": base_url, "arguments": arguments });
    let register = |bytes: &[u8]| {
        let body = json!({ "hex": HEXLOWER.encode(bytes) });
        json!({ "operation": "scrapi.register", "base_url": base_url, "body": body })
    };
    let calls = json!([
        register(statement.bytes()),
        call("scrapi.resolve", json!({ "entry_id": id })),
        call("log.entries", json!({ "limit": 10 })),
        call("log.inclusion", json!({ "index": 1 })),
        call("log.entry", json!({ "entry_id": "0".repeat(64) })),
        register(b"no statement"),
    ]);
    // The one type that this generator does not know.
    let not_generated =
        ["WARNING parsing POST /v1/entries/batch within log. Endpoint will not be generated."];
    let answers = description.call_from_python(&calls, &not_generated);
    let [registered, resolved, entries, inclusion, unknown, malformed] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(registered["status"], 201, "{registered}");
    for answer in [registered, resolved] {
        Receipt::parse(body(answer)).unwrap();
    }
    assert_eq!(entries["parsed"]["entries"][1]["entry_id"], id, "{entries}");
    assert_eq!(inclusion["parsed"]["entry_id"], id, "{inclusion}");
    assert_eq!((&unknown["status"], &unknown["parsed"]["status"]), (&json!(404), &json!(404)), "{unknown}");
    assert!(unknown["parsed"]["code"].is_string() && unknown["parsed"]["detail"].is_string(), "{unknown}");
    assert_eq!(malformed["status"], 400, "{malformed}");
    let problem = Problem::parse(&body(malformed)).unwrap();
    assert!(problem.to_string().contains("could not be parsed"), "{problem}");
    service.stop();
}

#[test]
fn a_generated_typescript_client_covers_every_path_compiles_and_reads() {
    let log = Log::sqlite();
    let service = log.serve();
    let statement = log.statement();
    assert_eq!(service.connection().post(statement.bytes()).status, 201);
    let (id, base_url) = (statement.digest().to_string(), base_url(&service));
    let description = Description::served_by(service.connection());
    assert!(description.paths().len() > 30, "{:?}", description.paths());
    let answers = description.call_from_typescript("openapi_client.mts", &[&base_url, &id]);
    assert_eq!((&answers["entries"][1], &answers["proven"]), (&id.clone().into(), &id.into()), "{answers}");
    Receipt::parse(HEXLOWER.decode(answers["receipt"].as_str().unwrap().as_bytes()).unwrap()).unwrap();
    assert_eq!(answers["unknown"], 404, "an error is a response of its own type");
    service.stop();
}
