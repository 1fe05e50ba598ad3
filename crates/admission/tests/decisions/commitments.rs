//! What a commitment must be, and what the operator makes of it: readings V-10, V-15, V-17, V-23.

use admission::effective::ScopeCeiling;
use admission::rules::Posture;
use admission::signature::AgentSubject;
use jiff::SignedDuration;
use serde_json::{Value, json};
use vap::glob::Pattern;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use crate::world::{AGENT, Try, World, alice, by_token, commitment, world};

#[test]
fn v_10_a_budget_bounds_something() {
    for budget in [json!({}), json!({ "limits": {} })] {
        let ruling = world().commit(&alice(), &commitment(budget));
        assert_eq!(ruling.reason, Some(Reason::NoBudget));
    }
}

#[test]
fn v_15_a_deadline_that_has_come_is_no_commitment() {
    let ruling = world().commit(&alice(), &commitment(json!({ "deadline": "2026-11-22T10:00:00+01:00" })));
    assert_eq!(ruling.reason, Some(Reason::DeadlinePassed));
}

#[test]
fn v_17_the_agent_gets_the_commitment_in_force_and_its_digest() {
    let ruling = world().commit(&alice(), &commitment(json!({ "max_calls": 5 })));
    assert_eq!((ruling.verdict.verdict, ruling.reason), (VerdictKind::Served, None));
    let effective = ruling.effective.unwrap();
    let digest = vap::digest::Digest::of(effective.as_bytes());
    assert_eq!(ruling.verdict.accepted_commitment_digest, Some(digest));
    let effective: Value = serde_json::from_str(&effective).unwrap();
    assert_eq!(effective, commitment(json!({ "max_calls": 5 })));
}

#[test]
fn v_23_the_operators_ceiling_reduces_and_adds_and_says_so() {
    let mut world = world();
    world.rules.ceiling.max_calls = Some(10);
    world.rules.ceiling.lasts = Some(SignedDuration::from_hours(1));
    world.rules.ceiling.limits.set("usd", 2u64.into());
    let ruling = world.commit(&alice(), &commitment(json!({ "max_calls": 500, "limits": { "tokens": 7 } })));
    assert_eq!((ruling.verdict.verdict, ruling.reason), (VerdictKind::Downgraded, Some(Reason::Ceiling)));
    let applied = ruling.verdict.downgrade.unwrap().applied_scope.unwrap();
    let deadline = "2026-11-22T10:00:00Z";
    let budget = json!({ "max_calls": 10, "deadline": deadline, "limits": { "tokens": 7, "usd": 2 } });
    assert_eq!(applied["budget"], budget);
}

fn tools(patterns: &[&str]) -> Vec<Pattern> {
    patterns.iter().map(|pattern| Pattern::new(pattern).unwrap()).collect()
}

/// Returns the scope that is applied to a commitment with these patterns.
fn applied(world: &mut World, allow: &[&str], deny: Option<&[&str]>) -> (VerdictKind, Value) {
    let mut wanted = commitment(json!({ "max_calls": 5 }));
    wanted["scope"] = match deny {
        Some(deny) => json!({ "tools_allow": allow, "tools_deny": deny }),
        None => json!({ "tools_allow": allow }),
    };
    let ruling = world.commit(&alice(), &wanted);
    let effective: Value = serde_json::from_str(&ruling.effective.unwrap()).unwrap();
    (ruling.verdict.verdict, effective["scope"].clone())
}

fn under_scope(allow: &[&str], deny: &[&str]) -> World {
    let mut world = world();
    world.rules.ceiling.scope = ScopeCeiling { tools_allow: tools(allow), tools_deny: tools(deny) };
    world
}

#[test]
fn v_23_a_scope_is_reduced_to_the_operators_ceiling() {
    let downgraded = VerdictKind::Downgraded;
    for (ceiling, wanted, scope) in [
        (&["crm.*"][..], &["*"][..], json!(["crm.*"])),
        (&["crm.*", "pay"], &["*"], json!(["crm.*", "pay"])),
        (&["crm.*"], &["crm.read", "mail.*"], json!(["crm.read"])),
        (&["crm.*"], &["*.read", "*.write"], json!(["*.read", "*.write"])),
    ] {
        let expected = if scope == json!(wanted) { VerdictKind::Served } else { downgraded };
        let (verdict, applied) = applied(&mut under_scope(ceiling, &[]), wanted, None);
        assert_eq!((verdict, applied), (expected, json!({ "tools_allow": scope })), "{wanted:?}");
    }
    let (verdict, scope) = applied(&mut under_scope(&[], &["*.purge"]), &["crm.*"], Some(&["pay"]));
    assert_eq!(verdict, downgraded);
    assert_eq!(scope, json!({ "tools_allow": ["crm.*"], "tools_deny": ["pay", "*.purge"] }));
}

#[test]
fn a_scope_of_which_the_ceiling_leaves_nothing_is_denied() {
    let ruling = under_scope(&["mail.*"], &[]).commit(&alice(), &commitment(json!({ "max_calls": 5 })));
    assert_eq!(ruling.reason, Some(Reason::ScopeEscape));
}

#[test]
fn the_ceiling_of_an_agent_holds_for_its_sessions_only() {
    for (agent, verdict) in [(AGENT, VerdictKind::Downgraded), ("did:example:other", VerdictKind::Served)] {
        let mut world = world();
        let scope = ScopeCeiling { tools_allow: tools(&["crm.read"]), ..ScopeCeiling::default() };
        world.rules.ceiling.agents.push((agent.to_owned(), scope));
        let ruling = world.commit(&alice(), &commitment(json!({ "max_calls": 5 })));
        assert_eq!(ruling.verdict.verdict, verdict, "{agent}");
    }
}

#[test]
fn the_ceiling_of_an_agent_holds_without_an_envelope_where_the_token_proves_the_agent() {
    let mut world = world();
    world.rules.posture = Posture::Restricted;
    world.rules.restricted = tools(&["*"]);
    let known = AgentSubject {
        agent_id: "did:example:bot".into(),
        issuer: "https://as.example".into(),
        subject: "bot".into(),
    };
    world.rules.keyring = world.rules.keyring.clone().with_subjects(vec![known]);
    let scope = ScopeCeiling { tools_allow: tools(&["crm.read"]), ..ScopeCeiling::default() };
    world.rules.ceiling.agents.push(("did:example:bot".to_owned(), scope));
    let call = |tool| Try::of(tool, json!({})).by(by_token("bot")).without_vap();
    assert!(world.ruled(&call("crm.read")).is_admitted());
    assert_eq!(world.denied(&call("crm.write")), Reason::ScopeEscape);
    world.rules.posture = Posture::Advisory;
    let advised = world.ruled(&call("crm.write")).ruling.advised.unwrap();
    assert_eq!((advised.verdict, advised.reason), (VerdictKind::Denied, Some(Reason::ScopeEscape)));
}

#[test]
fn each_call_is_checked_against_the_ceiling_in_force() {
    let mut world = under_scope(&["crm.*"], &[]);
    applied(&mut world, &["*.read"], None);
    world.served(&Try::of("crm.read", json!({})));
    assert_eq!(
        world.denied(&Try::of("mail.read", json!({}))),
        Reason::ScopeEscape,
        "both patterns must match"
    );
    world.rules.ceiling.scope.tools_deny = tools(&["crm.read"]);
    assert_eq!(world.denied(&Try::of("crm.read", json!({}))), Reason::ScopeEscape, "lowered since");
}

#[test]
fn v_23_what_stays_below_the_ceiling_is_served() {
    let mut world = world();
    world.rules.ceiling.max_calls = Some(10);
    let ruling = world.commit(&alice(), &commitment(json!({ "max_calls": 10 })));
    assert_eq!((ruling.verdict.verdict, ruling.reason), (VerdictKind::Served, None));
}

#[test]
fn the_gateways_own_meters_are_nobody_elses() {
    let ruling = world().commit(&alice(), &commitment(json!({ "limits": { "vap.judge": 5 } })));
    assert_eq!(ruling.reason, Some(Reason::OutOfRange));
}

#[test]
fn a_record_has_room_for_every_meter_of_a_commitment() {
    let limits = |n: u32| (0..n).map(|i| (format!("m{i}"), json!(1))).collect::<serde_json::Map<_, _>>();
    let ruling = world().commit(&alice(), &commitment(json!({ "limits": limits(62) })));
    assert_eq!(ruling.reason, None);
    let ruling = world().commit(&alice(), &commitment(json!({ "limits": limits(63) })));
    assert_eq!(ruling.reason, Some(Reason::OutOfRange));
}
