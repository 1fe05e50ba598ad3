//! C4: the operator's rules.

use admission::rules::{PolicyRule, Posture, RuleError, Then};
use serde_json::json;
use vap::audit::CallStatus;
use vap::glob::Pattern;
use vap::message::Sensitivity;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use crate::world::{Try, World, mallory, world};

fn ruled_by(rules: &[(&str, Option<&str>, Option<&str>, Then)]) -> World {
    let mut world = world();
    for (name, tool, when, then) in rules {
        let tool = tool.map(|tool| Pattern::new(tool).unwrap());
        world.rules.policy.push(PolicyRule::new(name, tool, *when, *then).unwrap());
    }
    world.with_session(json!({ "max_calls": 50, "limits": { "usd": 10 } }))
}

fn pay(amount: u64) -> Try {
    Try::of("pay", json!({ "amount": amount }))
}

#[test]
fn the_first_rule_that_holds_speaks() {
    let mut world = ruled_by(&[
        ("small", Some("pay"), Some("input.arguments.amount <= 10"), Then::Allow),
        ("any", Some("pay"), None, Then::Deny),
    ]);
    let ruling = world.served(&pay(10));
    world.settle(ruling.reservation(), CallStatus::Executed, "pay", None);
    assert!(ruling.verdict.verification.checks.contains(&"policy:small".to_owned()));
    assert_eq!(world.denied(&pay(11)).as_str(), "policy:any");
    world.served(&Try::of("crm.read", json!({})));
}

#[test]
fn rules_see_principal_session_and_meters() {
    let mut world = ruled_by(&[
        ("not-alice", None, Some(r#"input.principal.identity.token.sub != "alice""#), Then::Deny),
        ("spent", None, Some("input.session.meters.usd >= 5"), Then::Deny),
        ("often", None, Some("input.session.calls >= 2"), Then::Deny),
    ]);
    world.ran(&pay(1), Some(r#"{"usd":1}"#));
    world.ran(&pay(1), Some(r#"{"usd":1}"#));
    assert_eq!(world.denied(&pay(1)).as_str(), "policy:often");
    let mut world = ruled_by(&[("spent", None, Some("input.session.meters.usd >= 5"), Then::Deny)]);
    world.ran(&pay(1), Some(r#"{"usd":5}"#));
    assert_eq!(world.denied(&pay(1)).as_str(), "policy:spent");
}

fn classified(rules: &[(&str, Option<&str>, Option<&str>, Then)]) -> World {
    let mut world = ruled_by(rules);
    world.rules.sensitivities.tools.push((Pattern::new("crm.purge").unwrap(), Sensitivity::Deletes));
    world.rules.sensitivities.tools.push((Pattern::new("crm.read").unwrap(), Sensitivity::Reads));
    world
}

#[test]
fn without_a_judge_a_rule_asks_a_person_above_a_risk_or_for_a_class() {
    let delete = || Try::of("crm.purge", json!({ "id": 1 }));
    let read = || Try::of("crm.read", json!({ "id": 1 }));
    let by_class = [("deletes", None, Some(r#"input.class == "deletes""#), Then::Confirm)];
    let by_risk = [("risky", None, Some("input.risk.score > 0.7"), Then::Confirm)];
    for rules in [by_class, by_risk] {
        let mut world = classified(&rules);
        let ruling = world.ruled(&delete());
        assert_eq!(ruling.verdict.verdict, VerdictKind::Clarify, "{rules:?}");
        assert!(ruling.verdict.verification.risk_score.is_some(), "{rules:?}");
        world.served(&read());
    }
}

#[test]
fn rules_see_each_signal_of_the_risk() {
    let signals = "input.risk.sensitivity == 0; input.risk.novelty == 1; input.risk.looping == 0; \
                   input.risk.proximity == 0; input.risk.burn_rate == 0";
    let mut world = classified(&[("new", None, Some(signals), Then::Deny)]);
    assert_eq!(world.denied(&Try::of("crm.read", json!({}))).as_str(), "policy:new");
    let mut world = classified(&[("again", None, Some("input.risk.looping >= 0.4"), Then::Deny)]);
    world.ran(&pay(1), None);
    world.ran(&pay(1), None);
    assert_eq!(world.denied(&pay(1)).as_str(), "policy:again");
}

#[test]
fn without_a_session_rules_see_the_class_that_the_operator_gave() {
    let mut world = classified(&[("deletes", None, Some(r#"input.class == "deletes""#), Then::Deny)]);
    world.rules.posture = Posture::Restricted;
    world.rules.restricted.push(Pattern::new("*").unwrap());
    let call = |tool| Try::of(tool, json!({})).by(mallory()).without_vap();
    assert_eq!(world.denied(&call("crm.purge")).as_str(), "policy:deletes");
    assert!(world.ruled(&call("crm.read")).is_admitted());
    let mut world = classified(&[("unknown", None, Some(r#"input.class == "unclassified""#), Then::Deny)]);
    assert_eq!(world.denied(&pay(1)).as_str(), "policy:unknown");
}

#[test]
fn a_rule_that_cannot_be_evaluated_denies() {
    let mut world =
        ruled_by(&[("odd", None, Some("regex.match(\"a\", input.arguments.amount)"), Then::Deny)]);
    assert_eq!(world.denied(&pay(1)), Reason::PolicyFailed);
    let mut world = ruled_by(&[("any", None, Some("input.arguments.x == 1"), Then::Deny)]);
    world.rules.posture = Posture::Restricted;
    world.rules.restricted.push(Pattern::new("*").unwrap());
    let huge = Try { arguments: r#"{"x":1e400}"#.into(), ..pay(1).by(mallory()).without_vap() };
    assert_eq!(world.denied(&huge), Reason::PolicyFailed, "a number that no reader holds");
}

#[test]
fn a_rule_that_names_what_no_call_has_is_no_rule() {
    for (condition, named) in [
        ("input.intent", "input.intent"),
        ("input.session.goal", "input.session.goal"),
        ("not input.session.goal", "input.session.goal"),
        ("input.principal.agent == \"a\"", "input.principal.agent"),
        ("input.amount > 1000", "input.amount"),
    ] {
        let rule = PolicyRule::new("never", None, Some(condition), Then::Deny);
        assert_eq!(rule.map(drop), Err(RuleError::Member(named.into())), "{condition}");
    }
    for condition in [
        r#"input.principal.identity.token.sub == "a""#,
        "input.session.meters[_] > 1",
        r#"input["arguments"].any.thing == 1"#,
        r#"object.get(input, "tool", "") == "x""#,
    ] {
        assert!(PolicyRule::new("r", None, Some(condition), Then::Deny).is_ok(), "{condition}");
    }
}

#[test]
fn a_large_amount_under_another_name_or_none_is_refused_all_the_same() {
    for (then, reason) in [(Then::Deny, "policy:large"), (Then::Confirm, "confirmation_required")] {
        for arguments in [
            json!({ "amount": 5000 }),
            json!({ "Amount": 5000 }),
            json!({ "amount": null }),
            json!({ "amount": [null] }),
            json!({}),
        ] {
            let mut world = ruled_by(&[("large", Some("pay"), Some("input.arguments.amount > 1000"), then)]);
            let told = world.ruled(&Try { can_ask: false, ..Try::of("pay", arguments.clone()) });
            let reason_told = told.reason.as_ref().map(ToString::to_string);
            assert_eq!((told.is_admitted(), reason_told.as_deref()), (false, Some(reason)), "{arguments}");
        }
        let mut world = ruled_by(&[("large", Some("pay"), Some("input.arguments.amount > 1000"), then)]);
        world.served(&pay(5));
    }
}

#[test]
fn a_member_that_is_missing_allows_nothing() {
    let mut world = ruled_by(&[
        ("dry", Some("pay"), Some("input.arguments.options.dry_run == true"), Then::Allow),
        ("any", Some("pay"), None, Then::Deny),
    ]);
    assert_eq!(world.denied(&pay(1)).as_str(), "policy:any");
    world.served(&Try::of("pay", json!({ "options": { "dry_run": true } })));
}

#[test]
fn a_rule_never_reads_arguments_that_two_readers_take_for_different_ones() {
    let when = "input.arguments.options.dry_run == true";
    for arguments in [
        r#"{"target":"prod","options":{"$serde_json::private::RawValue":"{\"dry_run\":true}"}}"#,
        r#"{"target":"prod","options":{"$serde_json::private::Number":"1"}}"#,
        r#"{"options":{"\u0024serde_json::private::RawValue":"{\"dry_run\":true}"}}"#,
        r#"{"options":{"dry_run":false,"dry_run":true}}"#,
        r#"{"options":{"dry_run":true},"account":9007199254740993}"#,
        r#"{"options":{"dry_run":true},"list":[{"share":0.1000000000000000055}]}"#,
    ] {
        for then in [Then::Allow, Then::Deny, Then::Confirm] {
            let mut world =
                ruled_by(&[("dry", Some("pay"), Some(when), then), ("any", None, None, Then::Deny)]);
            world.rules.posture = Posture::Restricted;
            world.rules.restricted.push(Pattern::new("*").unwrap());
            let attack = Try { arguments: arguments.into(), ..pay(1).by(mallory()).without_vap() };
            assert_eq!(world.denied(&attack), Reason::PolicyFailed, "{arguments}");
        }
    }
}

#[test]
fn a_rule_has_a_name_that_a_record_can_hold() {
    let named = |name: &str| PolicyRule::new(name, None, None, Then::Deny).map(drop);
    assert_eq!(named("two words"), Err(RuleError::Name));
    assert_eq!(named(&"r".repeat(58)), Err(RuleError::Name));
    assert!(named(&"r".repeat(57)).is_ok());
    assert!(PolicyRule::new("r", None, Some("("), Then::Deny).is_err());
    let mut world = ruled_by(&[(&"r".repeat(57), None, None, Then::Deny)]);
    world.denied(&pay(1));
}
