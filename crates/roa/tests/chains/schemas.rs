//! The JSON Schemas that are published are those of the types, and agree with the reader about every object of the tests.

use std::fs;
use std::path::PathBuf;

use roa::aer::SignedReceipt;
use roa::attestation::Attestation;
use roa::envelope::Envelope;
use roa::limits::{MAX_ENTRIES, MAX_NAME};
use roa::registry::{RegistryDocument, RevocationDelta};
use roa::signed::{Document, Signed};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::world::*;

fn schema<T: JsonSchema>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    for (name, schema) in [
        ("roa-envelope", schema::<Envelope>()),
        ("ara", schema::<Attestation>()),
        ("registry", schema::<RegistryDocument>()),
        ("revocation-delta", schema::<RevocationDelta>()),
        ("aer", schema::<SignedReceipt>()),
    ] {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let published = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(published, text, "{name}: UPDATE_SCHEMAS=1 cargo test -p roa writes it anew");
    }
}

#[test]
fn every_level_of_every_schema_is_closed() {
    fn open_objects(schema: &Value, at: &str, found: &mut Vec<String>) {
        if schema["type"] == "object"
            && schema["additionalProperties"] != false
            && !at.ends_with("Ed25519Jwk")
        {
            found.push(at.to_owned());
        }
        let children = match schema {
            Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect()
            }
            _ => Vec::new(),
        };
        children.iter().for_each(|(name, value)| open_objects(value, &format!("{at}/{name}"), found));
    }
    for schema in [
        schema::<Envelope>(),
        schema::<Attestation>(),
        schema::<RegistryDocument>(),
        schema::<SignedReceipt>(),
    ] {
        let mut found = Vec::new();
        open_objects(&schema, "", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    let envelope = jsonschema::validator_for(&schema::<Envelope>()).unwrap();
    let good: Value = serde_json::from_slice(root_with(|_| ()).canonical()).unwrap();
    assert!(envelope.is_valid(&good));
    for (pointer, bad) in [
        ("/envelope_id", json!("env:1")),
        ("/session/agent_id", json!("lead")),
        ("/session/channel", json!("fax")),
        ("/authorized_scope/capabilities", json!([])),
        ("/authorized_scope/capabilities/0", json!("github.read")),
        ("/authorized_scope/max_delegation_depth", json!(-1)),
        ("/policy/policy_digest", json!("sha256:00")),
        ("/signatures", json!([])),
        ("/signatures/0/alg", json!("Ed25519")),
        ("/signatures/0/sig", json!("AA==")),
        ("/schema_version", json!("2.0")),
    ] {
        let mut edited = good.clone();
        *edited.pointer_mut(pointer).unwrap() = bad;
        assert!(!envelope.is_valid(&edited), "{pointer}");
        let parsed = Signed::<Envelope>::parse(edited.to_string().as_bytes());
        assert!(parsed.is_err(), "{pointer}");
    }
    let attestation = jsonschema::validator_for(&schema::<Attestation>()).unwrap();
    let hop: Value = serde_json::from_slice(chain_of(1).hops()[0].canonical()).unwrap();
    assert!(attestation.is_valid(&hop));
}

/// Returns whether an object is valid, on which its schema and the reader must agree.
#[track_caller]
fn is_valid<D: Document + JsonSchema>(object: &Value) -> bool {
    let is_read = Signed::<D>::parse(object.to_string().as_bytes()).is_ok();
    assert_eq!(jsonschema::validator_for(&schema::<D>()).unwrap().is_valid(object), is_read);
    is_read
}

#[test]
fn the_schema_and_the_reader_have_the_same_lengths() {
    let envelope = |length: usize| {
        let mut members = root_members();
        let name = format!("mcp:a.{}", "é".repeat(length - 6));
        members["authorized_scope"]["capabilities"] = json!([name]);
        signed_value(members, &["acme:authorizer:1"])
    };
    assert!(is_valid::<Envelope>(&envelope(MAX_NAME)));
    assert!(!is_valid::<Envelope>(&envelope(MAX_NAME + 1)));
    let registry = |entries: usize| {
        let mut members = registry_members();
        members["classifications"] = (0..entries).map(|number| number.to_string()).collect();
        signed_value(members, &["operator"])
    };
    assert!(is_valid::<RegistryDocument>(&registry(MAX_ENTRIES)));
    assert!(!is_valid::<RegistryDocument>(&registry(MAX_ENTRIES + 1)));
    let delta = |revocations: Value| {
        let members = json!({
            "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": 1,
            "previous_sequence": 3, "sequence": 4, "issued_at": "2026-04-08T14:04:00Z",
            "revocations": revocations,
        });
        signed_value(members, &["operator"])
    };
    let revocation = json!({
        "sequence": 4, "revoked_at": "2026-04-08T14:04:00Z", "subject": { "envelope": "env:0000000000000001" },
    });
    assert!(is_valid::<RevocationDelta>(&delta(json!([revocation]))));
    assert!(!is_valid::<RevocationDelta>(&delta(json!([]))));
}
