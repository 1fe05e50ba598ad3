//! The description of the log's public listener, and that of its admin listener, the operator API.

use black_box::{Log, OPERATOR_TOKEN, Service, multipart};
use data_encoding::HEXLOWER;
use scitt::{Problem, Receipt};
use serde_json::{Value, json};

use super::clients::{Description, body, must_be_problem, text};

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
    let batched = [log.statement(), log.statement()];
    let batch = multipart::batch(batched.iter().map(|statement| &statement.bytes()[..]));
    let calls = json!([
        register(statement.bytes()),
        call("scrapi.resolve", json!({ "entry_id": id })),
        call("log.entries", json!({ "limit": 10 })),
        call("log.inclusion", json!({ "index": 1 })),
        call("log.entry", json!({ "entry_id": "0".repeat(64) })),
        register(b"no statement"),
        {
            "operation": "log.register_batch",
            "base_url": base_url,
            "content_type": multipart::content_type("mixed"),
            "body": { "hex": HEXLOWER.encode(&batch) },
        },
    ]);
    let answers = description.call_from_python(&calls);
    let [registered, resolved, entries, inclusion, unknown, malformed, results] = &answers[..] else {
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
    for (result, statement) in batched.iter().enumerate() {
        let result = &results["parsed"]["results"][result];
        assert_eq!(result["status"], 201, "{results}");
        assert_eq!(result["entry_id"], statement.digest().to_string(), "{results}");
    }
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

#[test]
fn the_description_of_the_operator_api_is_checked_in_and_clients_of_it_give_commands() {
    let log = Log::sqlite();
    let service = log.serve();
    let description = Description::served_by(service.admin());
    description.must_be_checked_in_as("operator.json");
    let expected = [
        "/clock",
        "/freeze",
        "/holds",
        "/holds/next",
        "/inbox",
        "/inbox/refuse",
        "/keys",
        "/keys/announce",
        "/keys/compromised",
        "/livez",
        "/metrics",
        "/operator",
        "/readyz",
        "/reindex",
    ];
    assert_eq!(description.paths(), expected);

    let base_url = format!("http://{}", service.admin().address());
    let bearer = json!({ "authorization": format!("Bearer {OPERATOR_TOKEN}") });
    let call = |operation: &str, headers: &Value| json!({ "operation": operation, "base_url": base_url, "headers": headers });
    let no_freeze = json!({ "model": "OperatorRequest", "value": { "statement": "AAAA" } });
    let no_pending = json!({ "entry_id": "0".repeat(64), "reason": "a test" });
    let with = |operation: &str, body: Value| {
        let mut call = call(operation, &bearer);
        call["body"] = body;
        call
    };
    let calls = json!([
        call("admin.readyz", &json!({})),
        call("operator.inbox", &json!({})),
        call("operator.inbox", &bearer),
        call("operator.keys", &bearer),
        with("operator.operator_statement", no_freeze),
        with("operator.refuse", json!({ "model": "RefuseRequest", "value": no_pending })),
        call("operator.reindex", &bearer),
    ]);
    let answers = description.call_from_python(&calls);
    let [ready, anonymous, inbox, keys, malformed, unknown, dropped] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(text(ready), "ready\n");
    must_be_problem(anonymous, 401, "token");
    assert_eq!((&inbox["parsed"]["leads"], &inbox["parsed"]["items"]), (&json!(true), &json!([])), "{inbox}");
    assert_eq!(keys["parsed"]["origin"], testkit::ORIGIN, "{keys}");
    must_be_problem(malformed, 400, "operator-statement");
    must_be_problem(unknown, 404, "not-in-inbox");
    assert_eq!((&dropped["status"], &dropped["parsed"]["indexed_to"]), (&json!(202), &json!(0)), "{dropped}");

    let answers = description.call_from_typescript("operator_client.mts", &[&base_url, OPERATOR_TOKEN]);
    let expected =
        json!({ "ready": "ready\n", "refused": "token", "leads": true, "origin": testkit::ORIGIN });
    assert_eq!(answers, expected);
    service.stop();
}
