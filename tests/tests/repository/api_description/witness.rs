//! The description of the witness's two listeners.

use black_box::{Connection, LyingLog, WitnessHome};
use data_encoding::HEXLOWER;
use serde_json::json;
use tlog::checkpoint::Origin;
use tlog::key::VerifierKey;

use super::clients::{Description, text};

#[test]
fn the_description_of_a_witness_is_checked_in_and_clients_of_it_get_a_cosignature() {
    let log = LyingLog::of(3);
    let home = WitnessHome::of(&[&log.vkey()]);
    let witness = home.serve();
    let description = Description::served_by(witness.connection());
    description.must_be_served_by(witness.admin());
    description.must_be_checked_in_as("witness.json");
    assert_eq!(
        description.paths(),
        ["/add-checkpoint", "/livez", "/metrics", "/readyz", "/{log}/checkpoint"]
    );

    let (url, admin) = (witness.url(), format!("http://{}", witness.admin().address()));
    let key: VerifierKey = log.vkey().parse().unwrap();
    let digest = Origin::from(key.name().clone()).digest();
    let signed = Connection::to(&log.url()).get("/checkpoint").body;
    let request = format!("old 0\n\n{}", String::from_utf8(signed).unwrap());
    let add = |request: &str| {
        let body = json!({ "hex": HEXLOWER.encode(request.as_bytes()) });
        json!({ "operation": "witness.add_checkpoint", "base_url": url, "body": body })
    };
    let call = |operation: &str, base_url: &str, arguments| json!({ "operation": operation, "base_url": base_url, "arguments": arguments });
    let calls = json!([
        add(&request),
        add("nothing"),
        call("witness.checkpoint", &url, json!({ "log": digest })),
        call("admin.readyz", &admin, json!({})),
    ]);
    let answers = description.call_from_python(&calls);
    let [cosigned, refused, checkpoint, ready] = &answers[..] else { panic!("{answers:?}") };
    assert!(text(cosigned).starts_with("— "), "{}", text(cosigned));
    assert_eq!((&refused["status"], text(refused).is_empty()), (&json!(400), false));
    assert!(text(checkpoint).ends_with(&text(cosigned)), "{}", text(checkpoint));
    assert_eq!(text(ready), "ready\n");

    let answers = description.call_from_typescript("witness_client.mts", &[&url, &admin, &digest, &request]);
    // The tree has been cosigned: the witness answers with its size.
    assert_eq!((&answers["status"], &answers["seen"]), (&json!(409), &json!("3")), "{answers}");
    assert_eq!(answers["checkpoint"], text(checkpoint));
    assert_eq!(answers["ready"], "ready\n");
    witness.stop();
}
