//! The rules of content types for statements outside of a log.

#![allow(clippy::unwrap_used)]

use registration::conversation::Form;
use registration::vrf::VrfStatement;
use registration::{ContentCheck, check_content};
use serde_json::json;
use testkit::{receipt, receipt_json, verifier, vrf};

#[test]
fn a_statement_keeps_the_rules_of_its_type_or_names_the_one_it_breaks() {
    assert_eq!(check_content(&vrf(1), None), Ok(ContentCheck::Complete));
    assert_eq!(check_content(&testkit::opaque("s", &json!({})), None), Ok(ContentCheck::NoRules));
    assert_eq!(check_content(&testkit::aer(1), None), Ok(ContentCheck::Complete));
    let conversation = testkit::conversation(1, Form::Json);
    assert_eq!(check_content(&conversation, None), Ok(ContentCheck::Complete));
    let mut broken = receipt_json(1);
    broken["tier"] = 7.into();
    let broken = VrfStatement::new(broken, testkit::AGENT);
    let broken = broken.builder(&verifier()).sign(&verifier()).expect("a fixed key signs");
    let violation = check_content(&broken, None).expect_err("there is no tier 7");
    assert!(violation.rule.as_str().starts_with("vrf-tier"), "{violation}");
}

#[test]
fn a_hash_is_checked_with_the_content_that_is_shown() {
    let statement = receipt(1).redacted();
    let signed = statement.sign(&verifier()).expect("it keeps the rules");
    assert_eq!(check_content(&signed, None), Ok(ContentCheck::HeaderOnly));
    assert_eq!(check_content(&signed, Some(&statement.byte_string())), Ok(ContentCheck::Complete));
    assert!(check_content(&signed, Some(&receipt(2).byte_string())).is_err());
}
