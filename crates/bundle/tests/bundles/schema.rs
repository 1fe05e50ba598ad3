//! `schemas/bundle.json` describes what the reader accepts.

use bundle::EvidenceBundle;
use serde_json::Value;

use crate::cases;

#[test]
fn the_schema_accepts_every_bundle_that_is_read_and_refuses_wrong_members() {
    let schema: Value = serde_json::from_str(include_str!("../../schemas/bundle.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut refused = 0;
    for case in cases::all() {
        let Ok(document) = serde_json::from_str::<Value>(&case.bundle) else { continue };
        let accepted = validator.is_valid(&document);
        match EvidenceBundle::parse(case.bundle.as_bytes()) {
            Ok(_) => assert!(accepted, "{}: {:?}", case.name, validator.validate(&document)),
            Err(_) => refused += usize::from(!accepted),
        }
    }
    assert!(refused >= 5, "only {refused} malformed cases break the schema");
}
