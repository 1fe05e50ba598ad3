//! Execution receipts from strangers: changed at random, and made to take long. None panics, none is read as another one,
//! and none is looked at further than its bounds.

#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use registration::aer::AerRecord;
use registration::{Answers, LookupKind, PolicyInForce, Record, SearchValues, SideData, entry_facts};
use roa::limits::{AER, MAX_AER_SIGNATURES};
use scitt::SignedStatement;
use serde_json::{Value, json};
use testkit::{aer, aer_json, aer_statement, denied_aer_json, gateway, policy_in_force};

static ORIGINAL: LazyLock<SignedStatement> = LazyLock::new(|| aer(0));
static POLICY: LazyLock<PolicyInForce> = LazyLock::new(policy_in_force);

fn read(payload: &[u8]) -> Result<AerRecord, String> {
    AerRecord::read(ORIGINAL.header(), payload).map_err(|violation| violation.rule.as_str().to_owned())
}

fn receipt() -> Vec<u8> {
    ORIGINAL.payload().unwrap().to_vec()
}

/// Overwrites, cuts and doubles pieces.
fn change(bytes: &[u8], changes: &[(usize, u8, usize)]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for (at, byte, n) in changes {
        let at = at % (out.len() + 1);
        let end = (at + n).min(out.len());
        match byte % 3 {
            0 => drop(out.drain(at..end)),
            1 => out[at..end].fill(*byte),
            _ => {
                let piece = out[at..end].to_vec();
                out.splice(at..at, piece);
            }
        }
    }
    out
}

/// Any JSON that could stand in for a member.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        Just(json!("none")),
        Just(json!("degraded")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z_]{1,12}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Every place of the receipt.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| pointers(value, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, value)| pointers(value, &format!("{at}/{i}"), found));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_changed_statement_is_refused_or_is_the_same(
        changes in vec((any::<usize>(), any::<u8>(), 0..40usize), 1..4)
    ) {
        let changed = change(ORIGINAL.bytes(), &changes);
        if let Ok(statement) = SignedStatement::parse(changed)
            && let Ok(authenticated) = POLICY.authenticate(&statement, SideData::default())
            && let Ok(record) = Record::read(&authenticated)
            && POLICY.decide(&authenticated, &record, &Answers::none()).into_permit().is_ok()
        {
            prop_assert_eq!(statement.bytes(), ORIGINAL.bytes());
        }
    }

    #[test]
    fn a_changed_receipt_is_refused_or_canonical(
        changes in vec((any::<usize>(), any::<u8>(), 0..40usize), 1..4)
    ) {
        let changed = change(&receipt(), &changes);
        if read(&changed).is_ok() {
            prop_assert!(jose::jcs::is_canonical(&changed));
        }
    }

    #[test]
    fn anything_in_any_place_is_answered(at in any::<prop::sample::Index>(), value in json_value()) {
        let mut receipt: Value = serde_json::from_slice(&receipt()).unwrap();
        let mut places = Vec::new();
        pointers(&receipt, "", &mut places);
        let place: &String = at.get(&places);
        *receipt.pointer_mut(place).unwrap() = value;
        let _ = read(&jose::jcs::canonical(&receipt));
    }

    #[test]
    fn any_payload_is_answered(payload in vec(any::<u8>(), 0..200)) {
        let _ = read(&payload);
    }
}

#[test]
fn a_receipt_beyond_its_bounds_is_refused_before_anything_is_built_of_it() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let many = format!("[{}0]", "[],".repeat(200_000));
    let megabytes = "[".repeat(4_000_000);
    for text in [&many, &megabytes, &format!("{{\"{}\":1}}", "a".repeat(4_000_000))] {
        assert!(text.len() > AER.bytes);
        assert_eq!(read(text.as_bytes()).unwrap_err(), "aer-size");
    }
    assert_eq!(read(nested(AER.depth + 1).as_bytes()).unwrap_err(), "aer-json");
    assert_eq!(read(nested(AER.bytes / 2).as_bytes()).unwrap_err(), "aer-json");
    assert_eq!(read(nested(AER.depth).as_bytes()).unwrap_err(), "aer-member");
}

#[test]
fn the_largest_receipt_that_keeps_every_rule_is_far_within_the_bounds() {
    let mut receipt = aer_json(0);
    let long = "\u{1f511}".repeat(256);
    receipt["session"]["device_attestation_ref"] = json!(long.repeat(32));
    for (object, name) in
        [("session", "session_id"), ("policy", "policy_id"), ("border_gateway", "gateway_version")]
    {
        receipt[object][name] = json!(long);
    }
    let signature = registration::aer::inner_signature(&receipt, &gateway()).unwrap();
    receipt["signatures"] = json!(vec![signature; MAX_AER_SIGNATURES]);
    let statement = aer_statement(receipt).about_session().sign(&gateway()).unwrap();
    assert!(statement.payload().unwrap().len() < AER.bytes * 3 / 4);
    let authenticated = POLICY.authenticate(&statement, SideData::default()).unwrap();
    let record = Record::read(&authenticated).unwrap();
    assert!(POLICY.decide(&authenticated, &record, &Answers::none()).into_permit().is_ok());
}

#[test]
fn a_denial_of_a_hostile_name_is_registered_whatever_the_name_is() {
    for tool in ["", "\0", "\u{1b}[2J\n", "..", &"\u{1f511}".repeat(7_000)] {
        let mut receipt = denied_aer_json(0, "capability_not_in_scope");
        receipt["action"]["mcp_tool_name"] = json!(tool);
        receipt["action"]["capability"] = json!(format!("mcp:github.{tool}"));
        let statement = aer_statement(receipt.clone()).sign(&gateway()).unwrap();
        let authenticated = POLICY.authenticate(&statement, SideData::default()).unwrap();
        let record = Record::read(&authenticated).unwrap();
        let permit = POLICY.decide(&authenticated, &record, &Answers::none()).into_permit().unwrap();
        let facts = Value::from(entry_facts(&statement, permit.facts()));
        assert!(!facts.to_string().contains("\\u0000"));
        let lookups = SearchValues::of_record(statement.header(), &record, statement.payload()).lookups;
        let tools = lookups.iter().filter(|lookup| lookup.kind == LookupKind::Tool);
        assert_eq!(tools.count(), usize::from(!tool.is_empty()));
    }
}

#[test]
fn an_answer_does_not_grow_with_the_receipt() {
    let name = "a".repeat(60_000);
    for text in [
        format!("{{\"{name}\":1}}"),
        format!("{{\"{name}\":1,\"{name}\":1}}"),
        format!("{{\"aer_id\":\"{name}\"}}"),
        format!("{{\"schema_version\":\"{name}\"}}"),
    ] {
        let violation = AerRecord::read(ORIGINAL.header(), text.as_bytes()).unwrap_err();
        assert!(violation.to_string().len() < 2000, "{}", violation.to_string().len());
    }
}
