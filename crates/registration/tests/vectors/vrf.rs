//! `vectors/vrf`: verification receipts.

use registration::vrf::{VrfRedacted, VrfRule};
use registration::{Permit, Violation};
use serde_json::Value;

use crate::decided::{self, Log};

const FAMILIES: &[&str] = &["vrf"];

/// Registers as a log would, whose time and contents the vector gives; then checks what is disclosed.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let policy = decided::policy(|content_type, rule| {
        if content_type.contains("vrf") {
            rule.insert("vrf".to_owned(), toml::Value::try_from(&vector["options"]).unwrap());
            rule.insert("issuers".to_owned(), vec!["did:key:*", "did:jwk:*"].into());
        }
    });
    let permit = Log::of(vector, policy).decide(vector)?;
    if let Some(disclosed) = vector.get("disclosed") {
        let redacted = VrfRedacted::verify(&decided::statement(&vector["statement"]), None)?;
        redacted.disclose(&decided::bytes(disclosed))?;
    }
    Ok(permit)
}

tests_of_vectors!(FAMILIES, rules_of!(VrfRule), register);
