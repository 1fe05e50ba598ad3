//! `vectors/conversation`: records in JSON and CBOR.

use registration::conversation::ConversationRule;
use registration::{Permit, Violation};
use serde_json::Value;

use crate::decided::{self, Log};

const FAMILIES: &[&str] = &["conversation"];

/// Registers under a policy with the vector's options, in which no type is for plain JSON when records come so.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let policy = decided::policy_of(
        |content_type| content_type != "application/json",
        |content_type, rule| {
            if content_type.contains("conversation") {
                rule.insert("conversation".to_owned(), toml::Value::try_from(&vector["options"]).unwrap());
            }
        },
    );
    Log::of(vector, policy).decide(vector)
}

tests_of_vectors!(FAMILIES, rules_of!(ConversationRule), register);
