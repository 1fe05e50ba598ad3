//! Actions and approvals of operators.

use merkle::EntryDigest;
use registration::Policy;
use registration::limits::MAX_APPROVAL_TIME;
use registration::operator::{
    Action, Approval, OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE, OperatorRule as R,
    Pending,
};
use scitt::{Signer, SigningKey, StatementBuilder};
use serde_json::{Value, json};
use testkit::{LOG_ISS, NOW, ORIGIN, operator, verifier};

use super::{breaks, canonical, keeps, statement, text_with, with, without};
use crate::Case;

/// When the approvals of the vectors expire.
const EXPIRES: u64 = NOW + 3600;

/// The tests' policy with a second operator, and so many required.
pub fn of_two_operators(required: &Value) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    let mut second = toml::Table::new();
    second.insert("key".into(), verifier().public_key().did_key().into());
    document["operator"].as_array_mut().unwrap().push(second.into());
    document.insert("operator_actions".into(), toml::Value::try_from(required).unwrap());
    Policy::from_toml(&document.to_string()).unwrap()
}

fn two() -> Value {
    json!({ "operator_actions": { "required": 2 } })
}

/// A statement of an operator with exactly this payload.
fn builder(content_type: &str, payload: Vec<u8>, key: &SigningKey) -> StatementBuilder {
    let kid = key.public_key().thumbprint().to_vec();
    StatementBuilder::new(payload).content_type(content_type).kid(kid).iss(LOG_ISS).sub(ORIGIN)
}

fn act_on(payload: Vec<u8>) -> Vec<u8> {
    builder(OPERATOR_ACTION_CONTENT_TYPE, payload, &operator()).encode(&operator()).unwrap()
}

fn act(action: &Value) -> Vec<u8> {
    act_on(canonical(action))
}

/// An action that expires with its approvals.
fn expiring(action: &Value, expires: u64) -> Vec<u8> {
    let builder = builder(OPERATOR_ACTION_CONTENT_TYPE, canonical(action), &operator());
    builder.claim(4, i64::try_from(expires).unwrap().into()).encode(&operator()).unwrap()
}

fn approve(approval: &Value, key: &SigningKey) -> Vec<u8> {
    builder(OPERATOR_APPROVAL_CONTENT_TYPE, canonical(approval), key).encode(key).unwrap()
}

fn note() -> Vec<u8> {
    statement("text/plain", "note", "note")
}

fn freeze() -> Value {
    json!({ "action": "freeze", "reason": "replaced" })
}

fn hold(number: u64) -> Value {
    let entry = EntryDigest::of(&note());
    serde_json::from_slice(&Action::numbered(entry, "2026-17", number).payload()).unwrap()
}

fn approval_of(action: &Value, expires: u64) -> Value {
    let pending = Pending::of(OPERATOR_ACTION_CONTENT_TYPE, &canonical(action), expires);
    serde_json::from_slice(&Approval(pending).payload()).unwrap()
}

pub fn cases() -> Vec<Case> {
    let on_log = |case: Case| if case.log.is_empty() { case.log(vec![note()]) } else { case };
    let all = [payload_cases(), action_cases(), log_cases(), approval_cases(), required_cases()].concat();
    all.into_iter().map(on_log).collect()
}

fn payload_cases() -> Vec<Case> {
    let duplicate = text_with(&freeze(), "\"reason\"", "\"reason\":\"x\",\"reason\"");
    let mut cases = vec![
        keeps(R::Json, "object", "One JSON object.", act(&freeze())),
        breaks(R::Json, "array", "An action is an object.", act_on(b"[]".to_vec())),
        breaks(R::Json, "duplicate", "One reader sees one reason, another the other.", act_on(duplicate)),
        keeps(R::Canonical, "canonical", "Names in order, nothing between.", act(&hold(0))),
        breaks(
            R::Canonical,
            "blank",
            "A blank that JCS does not write.",
            act_on(text_with(&freeze(), ":", ": ")),
        ),
        keeps(R::Member, "hold", "All members of a hold.", act(&hold(0))),
        breaks(
            R::Member,
            "reason-of-hold",
            "A member that a hold has not.",
            act(&with(hold(0), "/reason", json!("x"))),
        ),
        breaks(
            R::Member,
            "case-of-freeze",
            "A member that a freeze has not.",
            act(&with(freeze(), "/case", json!("x"))),
        ),
        breaks(R::Member, "no-action", "This member is required.", act(&without(freeze(), "/action"))),
        breaks(R::Member, "no-reason", "This member is required.", act(&without(freeze(), "/reason"))),
    ];
    for name in ["entry", "case", "number"] {
        let statement = act(&without(hold(0), &format!("/{name}")));
        cases.push(breaks(R::Member, &format!("no-{name}"), "This member is required.", statement));
    }
    cases
}

fn action_cases() -> Vec<Case> {
    let case = |length: usize| act(&with(hold(0), "/case", json!("x".repeat(length))));
    let reason = |length: usize| act(&with(freeze(), "/reason", json!("é".repeat(length))));
    let upper = EntryDigest::of(&note()).to_string().to_uppercase();
    let other = builder(OPERATOR_ACTION_CONTENT_TYPE, canonical(&freeze()), &operator()).sub("other.example");
    vec![
        keeps(R::Action, "freeze", "The end of the log.", act(&freeze())),
        breaks(R::Action, "thaw", "Nothing ends a freeze.", act(&json!({ "action": "thaw" }))),
        keeps(R::Reason, "long", "1000 characters.", reason(1000)),
        breaks(R::Reason, "too-long", "1001 characters.", reason(1001)),
        breaks(R::Reason, "empty", "Nothing is frozen without a reason.", reason(0)),
        keeps(R::Entry, "lower-case", "An entry ID.", act(&hold(0))),
        breaks(
            R::Entry,
            "upper-case",
            "Entry IDs are lower case.",
            act(&with(hold(0), "/entry", json!(upper))),
        ),
        keeps(R::Case, "long", "256 bytes.", case(256)),
        breaks(R::Case, "too-long", "257 bytes.", case(257)),
        breaks(R::Case, "empty", "A case without a name.", case(0)),
        breaks(R::Case, "control", "A line break.", act(&with(hold(0), "/case", json!("a\nb")))),
        keeps(R::Number, "even", "A hold has an even number.", act(&hold(0))),
        breaks(R::Number, "odd", "A hold with an odd number.", act(&with(hold(0), "/number", json!(1)))),
        breaks(
            R::Number,
            "even-release",
            "A release with an even number.",
            act(&with(hold(1), "/number", json!(0))),
        ),
        breaks(R::Number, "negative", "Holds count from 0.", act(&with(hold(0), "/number", json!(-1)))),
        keeps(R::Subject, "origin", "The subject is the log's origin.", act(&freeze())),
        breaks(R::Subject, "other-log", "A freeze of another log.", other.encode(&operator()).unwrap()),
    ]
}

fn log_cases() -> Vec<Case> {
    let unknown = EntryDigest::of(b"not there").to_string();
    let held = || vec![note(), act(&hold(0))];
    let again = act(&with(freeze(), "/reason", json!("once more")));
    vec![
        keeps(R::Known, "there", "The entry is in the log.", act(&hold(0))),
        breaks(
            R::Known,
            "not-there",
            "An entry that is not in the log.",
            act(&with(hold(0), "/entry", json!(unknown))),
        ),
        keeps(R::Predecessor, "release", "The release of a hold.", act(&hold(1))).log(held()),
        breaks(R::Predecessor, "nothing-held", "A release of what nobody holds.", act(&hold(1))),
        breaks(R::Predecessor, "gap", "A second hold before the first is released.", act(&hold(2)))
            .log(held()),
        keeps(R::NumberUnique, "first", "The first of its number.", act(&hold(0))),
        breaks(
            R::NumberUnique,
            "second",
            "A release that was registered, in another statement.",
            expiring(&hold(1), EXPIRES),
        )
        .log([held(), vec![act(&hold(1))]].concat()),
        keeps(R::FrozenOnce, "once", "A log is frozen once.", act(&freeze())),
        breaks(R::FrozenOnce, "twice", "A second freeze.", again).log(vec![note(), act(&freeze())]),
    ]
}

fn approval_cases() -> Vec<Case> {
    let approval = || approval_of(&freeze(), EXPIRES);
    let first = |approval: &Value| approve(approval, &operator());
    let changed = |pointer: &str, value: Value| first(&with(approval(), pointer, value));
    vec![
        keeps(R::PayloadDigest, "digest", "A SHA-256 in hexadecimal.", first(&approval())),
        breaks(
            R::PayloadDigest,
            "short",
            "Half a digest.",
            changed("/payload_sha256", json!("00".repeat(16))),
        ),
        keeps(R::ContentType, "action", "A freeze may need approval.", first(&approval())),
        breaks(
            R::ContentType,
            "approval",
            "An approval needs none.",
            changed("/content_type", json!(OPERATOR_APPROVAL_CONTENT_TYPE)),
        ),
        breaks(
            R::ContentType,
            "others",
            "What others register needs none.",
            changed("/content_type", json!("text/plain")),
        ),
        breaks(
            R::ContentType,
            "parameter",
            "Without parameters, in lower case.",
            changed("/content_type", json!(format!("{OPERATOR_ACTION_CONTENT_TYPE};v=1"))),
        ),
        keeps(R::Expires, "soon", "It expires within 31 days.", first(&approval())),
        keeps(
            R::Expires,
            "last",
            "The first second of 31 days.",
            first(&approval_of(&freeze(), NOW + MAX_APPROVAL_TIME)),
        ),
        breaks(
            R::Expires,
            "late",
            "It expires in more than 31 days.",
            first(&approval_of(&freeze(), NOW + MAX_APPROVAL_TIME + 1)),
        ),
        breaks(R::Expires, "passed", "It has expired.", first(&approval_of(&freeze(), NOW))),
        breaks(R::Expires, "never", "It expired before 1970.", changed("/expires", json!(0))),
        keeps(R::ApprovedOnce, "once", "An operator approves once.", first(&approval())),
        breaks(
            R::ApprovedOnce,
            "twice",
            "The same approval in another statement.",
            builder(OPERATOR_APPROVAL_CONTENT_TYPE, canonical(&approval()), &operator())
                .claim(6, 7_i64.into())
                .encode(&operator())
                .unwrap(),
        )
        .log(vec![note(), first(&approval())]),
    ]
}

fn required_cases() -> Vec<Case> {
    let by = |key: &SigningKey, expires| approve(&approval_of(&freeze(), expires), key);
    let breaks_two = |name: &str, why: &str, statement: Vec<u8>, log: Vec<Vec<u8>>| {
        breaks(R::Approvals, name, why, statement).log([vec![note()], log].concat()).options(two())
    };
    let (first, second) = (operator(), verifier());
    let other = approve(&approval_of(&with(freeze(), "/reason", json!("other")), EXPIRES), &second);
    vec![
        keeps(R::Approvals, "one-is-enough", "The policy requires one operator.", act(&freeze())),
        keeps(R::Approvals, "two", "Another operator approved it.", expiring(&freeze(), EXPIRES))
            .log(vec![note(), by(&second, EXPIRES)])
            .options(two()),
        keeps(R::Approvals, "hold", "A hold needs one operator.", act(&hold(0))).options(two()),
        breaks_two("one", "One operator of two.", expiring(&freeze(), EXPIRES), Vec::new()),
        breaks_two(
            "own",
            "Its own operator approved it.",
            expiring(&freeze(), EXPIRES),
            vec![by(&first, EXPIRES)],
        ),
        breaks_two(
            "other-payload",
            "Another freeze was approved.",
            expiring(&freeze(), EXPIRES),
            vec![other],
        ),
        breaks_two(
            "other-expiry",
            "It was approved with another expiry.",
            expiring(&freeze(), EXPIRES + 1),
            vec![by(&second, EXPIRES)],
        ),
        breaks_two("no-expiry", "It names no expiry.", act(&freeze()), vec![by(&second, EXPIRES)]),
    ]
}
