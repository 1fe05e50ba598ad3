//! Callers without VAP: reading V-33.

use admission::clarify::HumanAnswer;
use admission::decide::{Authority, CallDecision, Stream, VerdictDelivery};
use admission::rules::{PolicyRule, Posture, Then};
use admission::tool::ToolFault;
use serde_json::json;
use vap::glob::Pattern;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use crate::world::{Try, World, alice, legacy, mallory, nobody, world};

fn read() -> Try {
    Try::of("crm.read", json!({})).without_vap()
}

fn posture(posture: Posture) -> World {
    let mut world = world();
    world.rules.posture = posture;
    world.rules.restricted.push(Pattern::new("crm.read*").unwrap());
    world
}

#[test]
fn v_33_by_default_a_call_without_an_envelope_is_denied() {
    assert_eq!(world().denied(&read()), Reason::NoEnvelope);
    assert_eq!(world().denied(&read().by(nobody())), Reason::NoEnvelope);
}

#[test]
fn v_33_restricted_serves_what_the_operator_listed_and_says_so() {
    let mut world = posture(Posture::Restricted);
    let ruling = world.ruled(&read());
    assert_eq!(
        (ruling.verdict.verdict, ruling.reason.clone()),
        (VerdictKind::Downgraded, Some(Reason::Restricted))
    );
    assert!(
        ruling.is_admitted()
            && ruling.verdict.downgrade.is_some()
            && ruling.permit.unwrap().reservation().is_none()
    );
    assert_eq!(world.denied(&Try::of("crm.write", json!({})).without_vap()), Reason::Restricted);
}

#[test]
fn an_agentroa_envelope_that_nothing_enforces_is_refused_where_calls_are_decided() {
    for rules in [Posture::Deny, Posture::Restricted] {
        let call = Try { authority: Authority::NotEnforced, ..read() };
        assert_eq!(posture(rules).denied(&call), Reason::RoaNotEnforced);
    }
    for rules in [Posture::Deny, Posture::Advisory] {
        let mut world = posture(rules).with_session(json!({ "max_calls": 9 }));
        let call = Try { authority: Authority::NotEnforced, ..Try::of("crm.read", json!({})) };
        assert_eq!(world.denied(&call), Reason::RoaNotEnforced);
        assert_eq!(world.session().running.calls(), 0);
    }
}

#[test]
fn in_advisory_mode_the_record_says_what_an_agentroa_envelope_would_have_come_to() {
    let mut world = posture(Posture::Advisory);
    assert!(world.ruled(&Try { authority: Authority::NotEnforced, ..read() }).is_admitted());
    assert_eq!(advised(&world, 0), json!({ "verdict": "denied", "reason": "roa_not_enforced" }));
}

#[test]
fn a_tool_that_is_not_what_was_pinned_is_refused_where_calls_are_decided() {
    let fault = || Some(ToolFault::of(Reason::ToolChanged));
    let mut world = posture(Posture::Restricted);
    assert_eq!(world.denied(&Try { tool_fault: fault(), ..read() }), Reason::ToolChanged);
    let unlisted = Try { tool_fault: fault(), ..Try::of("crm.write", json!({})).without_vap() };
    assert_eq!(world.denied(&unlisted), Reason::Restricted, "what may not be called at all is told first");
    for rules in [Posture::Deny, Posture::Advisory] {
        let mut world = posture(rules).with_session(json!({ "max_calls": 9 }));
        let call = Try { tool_fault: fault(), ..Try::of("crm.read", json!({})) };
        assert_eq!(world.denied(&call), Reason::ToolChanged);
        assert_eq!(world.session().running.calls(), 0);
    }
}

#[test]
fn arguments_that_do_not_fit_are_told_by_their_place_to_the_caller_and_in_no_record() {
    let place = Some("maximum at \"/amount\"".to_owned());
    let fault = Some(ToolFault { reason: Reason::ArgumentsInvalid, place: place.clone() });
    let mut world = posture(Posture::Deny).with_session(json!({ "max_calls": 9 }));
    let ruling = world.ruled(&Try { tool_fault: fault, ..Try::of("crm.read", json!({})) });
    assert_eq!((ruling.ruling.reason, ruling.ruling.fault_place), (Some(Reason::ArgumentsInvalid), place));
    let (_, record) = world.records.last().unwrap();
    assert!(!String::from_utf8_lossy(record).contains("/amount"));
}

#[test]
fn in_advisory_mode_the_record_says_what_a_changed_tool_would_have_come_to() {
    let mut world = posture(Posture::Advisory);
    let fault = Some(ToolFault::of(Reason::ToolChanged));
    assert!(world.ruled(&Try { tool_fault: fault, ..read() }).is_admitted());
    assert_eq!(advised(&world, 0), json!({ "verdict": "denied", "reason": "tool_changed" }));
}

/// What the rules would have decided, as a record says.
fn advised(world: &World, record: usize) -> serde_json::Value {
    let record: serde_json::Value = serde_json::from_slice(&world.records[record].1).unwrap();
    assert_eq!(record["verdict"], "served");
    record["advised"].clone()
}

#[test]
fn v_33_advisory_forwards_records_and_tells_nothing() {
    let mut world = posture(Posture::Advisory);
    let ruling = world.ruled(&Try::of("anything", json!({})).without_vap());
    assert!(ruling.is_admitted() && ruling.delivery == VerdictDelivery::NotSent);
    assert_eq!((ruling.ruling.stream, world.records.len()), (Stream::Unbound, 1));
}

#[test]
fn v_33_advisory_records_what_the_rules_would_have_decided() {
    let mut world = posture(Posture::Advisory);
    world.ruled(&read());
    assert_eq!(advised(&world, 0), json!({ "verdict": "served" }));
    let rule = |name, tool| PolicyRule::new(name, Some(Pattern::new(tool).unwrap()), None, Then::Deny);
    world.rules.policy.push(rule("no", "crm.read").unwrap());
    world.rules.policy.push(PolicyRule::new("ask", None, None, Then::Confirm).unwrap());
    assert!(world.ruled(&read()).is_admitted());
    assert_eq!(advised(&world, 1), json!({ "verdict": "denied", "reason": "policy:no" }));
    assert!(world.ruled(&Try::of("pay", json!({})).without_vap()).is_admitted());
    assert_eq!(advised(&world, 2), json!({ "verdict": "clarify", "reason": "policy:ask" }));
    // Who speaks VAP is decided about, and nothing is advised.
    world.rules.policy.clear();
    let mut world = world.with_session(json!({ "max_calls": 1 }));
    assert_eq!(world.served(&Try::of("crm.read", json!({}))).advised, None);
}

#[test]
fn v_33_leaving_the_envelope_out_is_no_way_around_a_commitment() {
    for kind in [Posture::Restricted, Posture::Advisory] {
        let mut world = posture(kind).with_session(json!({ "max_calls": 1 }));
        assert_eq!(world.denied(&read()), Reason::NoEnvelope);
        let other_session = admission::principal::Caller { token: alice().token, ..legacy("mcp-2") };
        assert_eq!(world.denied(&read().by(other_session)), Reason::NoEnvelope);
        assert!(world.ruled(&read().by(mallory())).is_admitted());
        assert!(world.close());
        assert!(world.ruled(&read()).is_admitted(), "once it is closed, the posture says");
    }
}

#[test]
fn v_33_a_caller_with_vap_is_held_to_it_in_every_posture() {
    let mut world = posture(Posture::Advisory);
    assert_eq!(world.denied(&Try::of("crm.read", json!({}))), Reason::NoCommitment);
    let mut world = posture(Posture::Advisory).with_session(json!({ "max_calls": 1 }));
    assert_eq!(world.denied(&Try::of("shell.run", json!({}))), Reason::ScopeEscape);
    assert_eq!(world.denied(&Try::of("crm.read", json!({})).with(json!({}))), Reason::Malformed);
}

#[test]
fn v_33_more_sessions_than_are_known_by_name_are_still_counted() {
    let mut world = posture(Posture::Advisory);
    let ids: Vec<_> = (0..40).map(|i| format!("session-number-{i:04}")).collect();
    for id in &ids {
        let mut message = crate::world::commitment(json!({ "max_calls": 1 }));
        message["session_id"] = id.as_str().into();
        world.commit(&alice(), &message);
    }
    for id in &ids {
        assert_eq!(world.denied(&read()), Reason::NoEnvelope);
        let session = world.sessions.get_mut(id).unwrap().as_mut().unwrap();
        let account = world.accounts.get_mut(session.agreed.account()).unwrap();
        assert!(admission::decide::close(session, account));
    }
    assert!(world.ruled(&read()).is_admitted());
}

#[test]
fn restricted_calls_are_under_the_operators_rules() {
    let mut world = posture(Posture::Restricted);
    world.rules.policy.push(PolicyRule::new("ask", None, None, Then::Confirm).unwrap());
    let ruling = world.ruled(&read());
    assert_eq!(ruling.verdict.verdict, VerdictKind::Clarify);
    let ticket = ruling.ruling.pending.unwrap().ticket;
    let stolen = read().by(mallory()).bringing(&ticket, Some(HumanAnswer::Confirmed));
    assert_eq!(world.denied(&stolen), Reason::InvalidState);
    assert!(world.ruled(&read().bringing(&ticket, Some(HumanAnswer::Confirmed))).is_admitted());
    assert_eq!(world.denied(&read().bringing(&ticket, Some(HumanAnswer::Confirmed))), Reason::InvalidState);
    let decision = world.call(&read().by(legacy("mcp-1")));
    assert!(matches!(decision, CallDecision::Ask { held: None, .. }));
}

#[test]
fn v_38_a_restricted_call_is_not_asked_about_again_for_the_upstreams_question() {
    let mut world = posture(Posture::Restricted);
    world.rules.policy.push(PolicyRule::new("ask", None, None, Then::Confirm).unwrap());
    let question = world.ruled(&read()).ruling.pending.unwrap().ticket;
    let served = world.ruled(&read().bringing(&question, Some(HumanAnswer::Confirmed)));
    let retry = read().bringing(served.ticket.as_ref().unwrap(), None);
    assert!(world.ruled(&retry).is_admitted());
    assert_eq!(world.ruled(&retry).verdict.verdict, VerdictKind::Clarify, "twice is a new call");
}
