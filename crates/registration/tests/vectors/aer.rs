//! `vectors/aer`: execution receipts.

use registration::aer::AerRule;
use registration::{Permit, Violation};
use serde_json::Value;

use crate::decided::{self, Log};

const FAMILIES: &[&str] = &["aer"];

/// Registers as a log would, whose time and contents the vector gives.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let policy = decided::policy(|content_type, rule| {
        if content_type.contains("aer") {
            rule.insert("aer".to_owned(), toml::Value::try_from(&vector["options"]).unwrap());
        }
    });
    Log::of(vector, policy).decide(vector)
}

tests_of_vectors!(FAMILIES, rules_of!(AerRule), register);
