//! The commitment in force and the chain of its digests: readings V-9, V-14 to V-18, V-23.

use std::collections::BTreeMap;

use admission::effective::{Capped, Effective, SessionCeiling};
use decimal::Decimal;
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::agent::signed_under;
use vap::digest::Digest;
use vap::limits::{MAX_METERS, MAX_PATTERNS};
use vap::reason::Reason;

use crate::sample::{amendment, commitment, scope_amendment, scope_commitment, with};

fn first(message: &Value) -> Effective {
    let Capped { effective, changed } =
        Effective::of(&scope_commitment(message), &SessionCeiling::default()).unwrap();
    assert!(!changed);
    effective
}

fn amended(effective: &Effective, message: &Value) -> Result<Effective, Reason> {
    effective.amended(&scope_amendment(message), &SessionCeiling::default()).map(|capped| capped.effective)
}

fn next(effective: &Effective, changes: &[(&str, Value)]) -> Result<Effective, Reason> {
    amended(effective, &with(amendment(effective.digest().as_str()), changes))
}

/// The document that an agent recomputes, and its digest by the rule of V-17.
fn document(effective: &Effective) -> Value {
    let document: Value = serde_json::from_str(&effective.text()).unwrap();
    assert_eq!(effective.digest(), Digest::of(&jose::jcs::canonical(&document)));
    document
}

#[test]
fn v_17_what_is_in_force_is_the_commitment_without_its_signature() {
    let key = crate::sample::ed25519(1);
    let with_signature = signed_under(&commitment(), &key, &crate::sample::header(&key));
    assert_eq!(document(&first(&with_signature)), commitment());
    let least = json!({
        "vap": "0.1", "type": "scope_commitment", "session_id": "s", "goal": "g",
        "scope": { "tools_allow": ["*"] }, "budget": { "max_calls": 1 }, "principal": { "agent_id": "a" },
    });
    assert_eq!(document(&first(&least)), least);
    let empty_deny = with(least.clone(), &[("/scope/tools_deny", json!([]))]);
    assert_eq!(document(&first(&empty_deny)), empty_deny);
    assert_ne!(first(&empty_deny).digest(), first(&least).digest());
}

#[test]
fn v_17_an_amendment_is_merged_as_the_agent_would() {
    let e0 = first(&commitment());
    let e1 = next(&e0, &[]).unwrap();
    let expected = with(
        commitment(),
        &[
            ("/scope/tools_allow", json!(["crm.*", "mail.send", "refunds.create"])),
            ("/scope/tools_deny", json!(["crm.delete*", "refunds.list"])),
            ("/budget/max_calls", json!(25)),
            ("/budget/deadline", json!("2026-12-02T00:00:00+01:00")),
            ("/budget/limits/usd_opcost", json!(0.6)),
            ("/plan_digest", json!("sha256:11ff")),
            ("/prev_commitment_digest", json!(e0.digest().as_str())),
        ],
    );
    assert_eq!(document(&e1), expected);
    let e2 = next(&e1, &[("/increase_budget/extend_deadline", json!("2026-12-03T00:00:00Z"))]).unwrap();
    assert_eq!(document(&e2)["prev_commitment_digest"], e1.digest().as_str());
    assert_eq!(document(&e2)["scope"], document(&e1)["scope"], "exact duplicates are dropped");
}

#[test]
fn v_17_the_chain_is_told_apart_from_a_made_up_one() {
    let e0 = first(&commitment());
    let upper = e0.digest().as_str().replace("sha256:", "").to_uppercase();
    assert!(amended(&e0, &amendment(&format!("sha256:{upper}"))).is_ok(), "hexadecimal in either case");
    for wrong in [
        format!("sha512:{upper}"),
        format!("sha256:{}", "0".repeat(64)),
        format!("sha256:{}", &upper[..62]),
        commitment()["plan_digest"].as_str().unwrap().to_owned(),
    ] {
        assert_eq!(amended(&e0, &amendment(&wrong)), Err(Reason::ChainBroken), "{wrong}");
    }
    let e1 = next(&e0, &[]).unwrap();
    assert_eq!(amended(&e1, &amendment(e0.digest().as_str())), Err(Reason::ChainBroken), "a replay");
}

#[test]
fn v_18_an_amendment_that_fails_leaves_nothing_behind() {
    let e0 = first(&commitment());
    let before = (e0.clone(), e0.digest());
    let wide_but_wrong = [("/increase_budget/add_limits", json!({ "unheard_of": 1 }))];
    assert_eq!(next(&e0, &wide_but_wrong), Err(Reason::NoSuchLimit));
    assert!(next(&e0, &[]).is_ok());
    assert_eq!((e0.clone(), e0.digest()), before);
    assert!(!e0.scope.allows("refunds.create"));
}

#[test]
fn v_16_only_what_is_bounded_is_raised() {
    let unbounded = |pointer: &str| first(&with(commitment(), &[(pointer, Value::Null)]));
    let only = |member: &str, value: Value| {
        [("/add_scope", Value::Null), ("/increase_budget", json!({ member: value }))]
    };
    for (e0, change) in [
        (unbounded("/budget/max_calls"), only("add_calls", json!(1))),
        (unbounded("/budget/deadline"), only("extend_deadline", json!("2027-01-01T00:00:00Z"))),
        (unbounded("/budget/limits"), only("add_limits", json!({ "tokens": 1 }))),
        (unbounded("/budget/limits/tokens"), only("add_limits", json!({ "tokens": 1 }))),
        (first(&commitment()), only("add_limits", json!({ "tokens": 1, "Tokens": 1 }))),
    ] {
        assert_eq!(next(&e0, &change), Err(Reason::NoSuchLimit), "{change:?}");
    }
}

#[test]
fn v_16_an_empty_addition_is_none() {
    let e0 = first(&commitment());
    for added in [json!({}), json!({ "tools_allow": [] }), json!({ "tools_allow": [], "tools_deny": [] })] {
        let change = [("/add_scope", added), ("/increase_budget", Value::Null)];
        assert_eq!(next(&e0, &change), Err(Reason::NothingToAdd));
    }
    assert!(next(&e0, &[("/add_scope", json!({}))]).is_ok(), "the budget is raised");
}

#[test]
fn v_15_a_deadline_is_extended_to_a_later_time_only() {
    let e0 = first(&commitment());
    for not_later in ["2026-12-01T00:00:00Z", "2026-12-01T01:00:00+01:00", "2026-12-01T00:30:00+01:00"] {
        let change = [("/increase_budget/extend_deadline", json!(not_later))];
        assert_eq!(next(&e0, &change), Err(Reason::DeadlineNotLater), "{not_later}");
    }
}

#[test]
fn v_9_no_amendment_removes_a_deny() {
    let e0 = first(&commitment());
    let e1 =
        next(&e0, &[("/add_scope", json!({ "tools_allow": ["crm.delete_all", "*"], "tools_deny": [] }))])
            .unwrap();
    assert!(e1.scope.allows("anything") && !e1.scope.allows("crm.delete_all"));
}

#[test]
fn v_13_limits_are_added_as_decimals() {
    let e0 = first(&with(commitment(), &[("/budget/limits/usd_opcost", json!(0.1))]));
    let e1 = next(&e0, &[("/increase_budget/add_limits/usd_opcost", json!(0.2))]).unwrap();
    assert_eq!(e1.budget.limits["usd_opcost"].to_string(), "0.3");
    assert!(e1.text().contains("\"usd_opcost\":0.3}"), "{}", e1.text());
}

#[test]
fn v_22_a_limit_that_no_double_holds_keeps_its_digits() {
    let text = commitment().to_string().replace("\"tokens\":1000", "\"tokens\":9007199254740993");
    let read = |text: &str| match vap::message::Message::read(text).unwrap() {
        vap::message::Message::ScopeCommitment(commitment) => {
            Effective::of(&commitment, &SessionCeiling::default()).unwrap().effective
        }
        other => panic!("{other:?}"),
    };
    let e0 = read(&text);
    assert!(e0.canon().raw && e0.text().contains("\"tokens\":9007199254740993"), "{}", e0.text());
    assert_ne!(e0.digest(), read(&text.replace("740993", "740992")).digest());
    assert!(!first(&commitment()).canon().raw);
}

#[test]
fn sums_beyond_what_is_kept_are_refused() {
    let most = first(&with(commitment(), &[("/budget/max_calls", json!((1u64 << 53) - 1))]));
    assert_eq!(next(&most, &[]), Err(Reason::OutOfRange));
    let large = first(&with(commitment(), &[("/budget/limits/tokens", json!(9e29))]));
    let again = [("/increase_budget/add_limits", json!({ "tokens": 9e29 }))];
    assert_eq!(next(&large, &again), Err(Reason::OutOfRange));
    let many: Vec<_> = (0..MAX_PATTERNS - 2).map(|at| format!("t{at}")).collect();
    let wide = first(&with(commitment(), &[("/scope/tools_allow", json!(many))]));
    assert_eq!(next(&wide, &[]), Err(Reason::OutOfRange));
}

fn ceiling() -> SessionCeiling {
    SessionCeiling {
        max_calls: Some(10),
        deadline: Some("2026-11-30T00:00:00Z".parse().unwrap()),
        limits: BTreeMap::from([
            ("tokens".to_owned(), Decimal::from(500)),
            ("bytes".to_owned(), Decimal::from(7)),
        ]),
        ..SessionCeiling::default()
    }
}

#[test]
fn v_23_the_operators_ceiling_comes_last_and_shows() {
    let Capped { effective, changed } = Effective::of(&scope_commitment(&commitment()), &ceiling()).unwrap();
    let capped = json!({
        "max_calls": 10, "deadline": "2026-11-30T00:00:00Z",
        "limits": { "usd_opcost": 0.5, "tokens": 500, "bytes": 7 },
    });
    assert_eq!((document(&effective)["budget"].clone(), changed), (capped.clone(), true));
    let message = with(amendment(effective.digest().as_str()), &[]);
    let Capped { effective, changed } = effective.amended(&scope_amendment(&message), &ceiling()).unwrap();
    let still = with(capped, &[("/limits/usd_opcost", json!(0.6))]);
    assert_eq!((document(&effective)["budget"].clone(), changed), (still, true));
}

#[test]
fn v_23_a_ceiling_that_changes_nothing_does_not_show() {
    let modest = with(
        commitment(),
        &[
            ("/budget/max_calls", json!(10)),
            ("/budget/deadline", json!("2026-11-30T01:00:00+01:00")),
            ("/budget/limits", json!({ "tokens": 500, "bytes": 1 })),
        ],
    );
    let Capped { effective, changed } = Effective::of(&scope_commitment(&modest), &ceiling()).unwrap();
    assert_eq!((document(&effective), changed), (modest, false));
}

#[test]
fn a_ceiling_of_more_meters_than_are_kept_refuses() {
    let limits = (0..MAX_METERS).map(|at| (format!("m{at}"), Decimal::from(1))).collect();
    let ceiling = SessionCeiling { limits, ..SessionCeiling::default() };
    assert_eq!(Effective::of(&scope_commitment(&commitment()), &ceiling), Err(Reason::OutOfRange));
}

#[test]
fn what_is_in_force_reads_back_from_the_store() {
    let e1 = next(&first(&commitment()), &[]).unwrap();
    let stored = serde_json::to_vec(&e1).unwrap();
    let read: Effective = serde_json::from_slice(&stored).unwrap();
    assert_eq!((read.digest(), &read), (e1.digest(), &e1));
}

proptest! {
    #[test]
    fn where_numbers_are_safe_the_text_is_jcs(
        goal in "[ -~é😀\u{0}-\u{1f}]{1,20}",
        meters in prop::collection::btree_map("[a-zé😀\u{fb01}\"]{1,4}", 1..1_000_000u32, 0..5),
        calls in 1..1000u32,
    ) {
        let limits: serde_json::Map<_, _> =
            meters.into_iter().map(|(meter, limit)| (meter, json!(f64::from(limit) / 64.0))).collect();
        let mut message = with(commitment(), &[("/goal", goal.into()), ("/budget", json!({ "max_calls": calls }))]);
        if !limits.is_empty() {
            message["budget"]["limits"] = limits.into();
        }
        prop_assert_eq!(first(&message).text().into_bytes(), jose::jcs::canonical(&message));
    }
}
