//! The description of the verification service's two listeners.

use black_box::cli::Dev;
use black_box::{Connection, VerificationProcess};
use serde_json::{Value, json};

use super::clients::{Description, must_be_problem, text};

/// A request about work that fulfils its schema.
fn request() -> Value {
    json!({
        "tier": 1,
        "subject": "did:web:agent.example",
        "artifact": { "content": { "count": 3 } },
        "schema": { "type": "object", "required": ["count"] },
    })
}

#[test]
fn the_description_of_a_verification_service_is_checked_in_and_clients_of_it_have_work_checked() {
    let dev = Dev::start();
    let service = VerificationProcess::start(&dev.folder);
    let description = Description::served_by(Connection::to(service.url()));
    description.must_be_checked_in_as("verification.json");
    description.must_be_served_by(service.admin());
    assert_eq!(
        description.paths(),
        ["/jobs/{id}", "/livez", "/metrics", "/readyz", "/v1/engines", "/verify"]
    );

    let base_url = service.url();
    let verify = |request: Value| {
        let body = json!({ "model": "VerifyBody", "value": request });
        json!({ "operation": "verification.verify", "base_url": base_url, "body": body })
    };
    let calls = json!([
        { "operation": "verification.engines", "base_url": base_url },
        verify(request()),
        verify(json!({ "tier": 9 })),
        { "operation": "verification.job", "base_url": base_url, "arguments": { "id": "none" } },
        { "operation": "admin.readyz", "base_url": format!("http://{}", service.admin().address()) },
    ]);
    let answers = description.call_from_python(&calls);
    let [engines, checked, refused, unknown, ready] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(engines["parsed"]["issuer"], service.issuer(), "{engines}");
    let checked_work = &checked["parsed"];
    assert_eq!((&checked["status"], &checked_work["verdict"]), (&json!(200), &json!("pass")), "{checked}");
    must_be_problem(refused, 422, "request");
    must_be_problem(unknown, 404, "job-unknown");

    assert_eq!(text(ready), "ready\n");

    let work = request().to_string();
    let answers = description.call_from_typescript("verification_client.mts", &[base_url, &work]);
    assert_eq!(answers["tiers"], engines["parsed"]["tiers"], "{answers}");
    // A repeated request has the same result.
    assert_eq!(
        (&answers["verdict"], &answers["entry"]),
        (&checked_work["verdict"], &checked_work["entry"]),
        "{answers}"
    );
    assert_eq!(
        (&answers["state"], &answers["registered"]),
        (&json!("done"), &checked_work["entry"]),
        "{answers}"
    );
    assert_eq!(
        (&answers["unknown"], &answers["numbered"]),
        (&json!("job-unknown"), &json!(true)),
        "{answers}"
    );
    service.stop();
}
