//! The description of the gateway's three listeners.

use black_box::{Connection, Gateway, free_address};
use scitt::Signer as _;
use serde_json::{Value, json};
use testkit::McpServer;

use super::clients::{Description, must_be_problem};

/// A message that needs no decision.
fn ping() -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" })
}

#[test]
fn the_description_of_a_gateway_is_checked_in_and_clients_of_it_reach_each_listener() {
    let (upstream, listen) = (McpServer::ordinary(), free_address());
    let approver = testkit::ed25519([0x51; 32]).public_key().to_jwk().to_value();
    let gateway = Gateway::before(&upstream.url()).table(&format!(
        "[approvals]\nlisten = \"{listen}\"\n[[approver]]\nname = \"carol\"\njwk = \"carol.json\""
    ));
    std::fs::write(gateway.path("carol.json"), approver.to_string()).unwrap();
    let running = gateway.start();
    let approvals = format!("http://{listen}");
    let description = Description::served_by(running.connection());
    description.must_be_served_by(running.admin());
    description.must_be_served_by(Connection::to(&approvals));
    description.must_be_checked_in_as("gateway.json");

    let clients = format!("http://{}", running.connection().address());
    let admin = format!("http://{}", running.admin().address());
    let call = |operation: &str, base_url: &str| json!({ "operation": operation, "base_url": base_url });
    let calls = json!([
        call("clients.vap", &clients),
        {
            "operation": "clients.endpoint_post",
            "base_url": clients,
            "headers": { "accept": "application/json, text/event-stream" },
            "arguments": { "endpoint": "mcp" },
            "body": { "model": "JsonRpcMessage", "value": ping() },
        },
        call("approvals.questions", &approvals),
        call("admin.readyz", &admin),
    ]);
    let answers = description.call_from_python(&calls);
    let [posture, answer, refused, ready] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(posture["parsed"]["routes"][0]["path"], "/mcp", "{posture}");
    assert_eq!((&answer["status"], &answer["parsed"]["id"]), (&json!(200), &json!(7)), "{answer}");
    must_be_problem(refused, 401, "not-an-approver");
    assert_eq!(ready["parsed"]["ready"], true, "{ready}");

    let answers = description.call_from_typescript("gateway_client.mts", &[&clients, &approvals, &admin]);
    let expected = json!({ "posture": 200, "answered": 7, "refused": "not-an-approver", "ready": true });
    assert_eq!(answers, expected);
    running.stop();
}
