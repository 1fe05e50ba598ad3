//! C4: the operator's rules.

use admission::decide::Status;
use admission::glob::Pattern;
use admission::reason::Reason;
use admission::rules::{PolicyRule, Posture, RuleError, Then};
use serde_json::json;

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
    world.settle(ruling.reservation.unwrap(), Status::Executed, "pay", None);
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
fn no_rule_sees_what_the_agent_says() {
    let mut world = ruled_by(&[("never", None, Some("input.intent"), Then::Deny)]);
    world.served(&pay(1));
    let mut world = ruled_by(&[("never", None, Some("input.session.goal"), Then::Deny)]);
    world.served(&pay(1));
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
