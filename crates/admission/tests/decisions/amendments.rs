//! Amendments: readings V-9, V-16 to V-19, V-23, V-29.

use admission::principal::Caller;
use serde_json::{Value, json};
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use crate::world::{Try, World, alice, amendment, key, legacy, signed, world};

fn amended(world: &mut World, additions: Value) -> Option<Reason> {
    let digest = world.session().agreed.digest().to_string();
    let message = signed(&amendment(&digest, additions), &key(1), json!({}));
    world.commit(&alice(), &message).reason
}

#[test]
fn v_9_an_amendment_never_takes_a_deny_away() {
    let mut world = world().with_session(json!({ "max_calls": 9 }));
    assert_eq!(amended(&mut world, json!({ "add_scope": { "tools_allow": ["crm.delete", "*"] } })), None);
    assert_eq!(world.denied(&Try::of("crm.delete", json!({}))), Reason::ScopeEscape);
    world.served(&Try::of("shell.run", json!({})));
}

#[test]
fn v_16_only_what_is_bounded_is_raised_and_something_is_added() {
    let mut world = world().with_session(json!({ "limits": { "usd": 1 } }));
    for (additions, reason) in [
        (json!({ "increase_budget": { "add_limits": { "tokens": 5 } } }), Reason::NoSuchLimit),
        (json!({ "increase_budget": { "add_calls": 5 } }), Reason::NoSuchLimit),
        (json!({ "increase_budget": { "extend_deadline": "2027-01-01T00:00:00Z" } }), Reason::NoSuchLimit),
        (json!({ "add_scope": {} }), Reason::NothingToAdd),
        (json!({ "add_scope": { "tools_allow": [] } }), Reason::NothingToAdd),
    ] {
        assert_eq!(amended(&mut world, additions.clone()), Some(reason), "{additions}");
    }
    assert_eq!(world.session().agreed.budget().limits.len(), 1);
}

#[test]
fn v_17_amendments_form_a_chain_and_an_old_link_does_not_hold_twice() {
    let mut world = world().with_session(json!({ "max_calls": 1 }));
    let first = world.session().agreed.digest().to_string();
    let more = json!({ "increase_budget": { "add_calls": 1 } });
    let message = signed(&amendment(&first, more.clone()), &key(1), json!({}));
    assert_eq!(world.commit(&alice(), &message).reason, None);
    assert_eq!(world.commit(&alice(), &message).reason, Some(Reason::ChainBroken));
    assert_eq!(amended(&mut world, more), None);
    assert_eq!(world.session().agreed.budget().max_calls, Some(3));
}

#[test]
fn v_17_the_agents_own_plan_digest_is_no_link() {
    let mut world = world().with_session(json!({ "max_calls": 1 }));
    let message = amendment("sha256:00ff", json!({ "increase_budget": { "add_calls": 1 } }));
    let message = signed(&message, &key(1), json!({}));
    assert_eq!(world.commit(&alice(), &message).reason, Some(Reason::ChainBroken));
}

#[test]
fn v_18_what_is_denied_has_changed_nothing() {
    let mut world = world().with_session(json!({ "max_calls": 1 }));
    let agreed = world.session().agreed.clone();
    let both =
        json!({ "add_scope": { "tools_allow": ["*"] }, "increase_budget": { "add_limits": { "x": 1 } } });
    assert_eq!(amended(&mut world, both), Some(Reason::NoSuchLimit));
    assert_eq!(world.session().agreed, agreed);
}

#[test]
fn v_19_an_amendment_is_signed_by_the_agent_or_by_an_approver() {
    let mut world = world().with_session(json!({ "max_calls": 1 }));
    let more = json!({ "increase_budget": { "add_calls": 1 } });
    let try_with = |world: &mut World, seed: Option<u8>| {
        let digest = world.session().agreed.digest().to_string();
        let message = amendment(&digest, more.clone());
        let message = seed.map_or(message.clone(), |seed| signed(&message, &key(seed), json!({})));
        world.commit(&alice(), &message).reason
    };
    assert_eq!(try_with(&mut world, None), Some(Reason::SignatureRequired));
    assert_eq!(try_with(&mut world, Some(2)), Some(Reason::UnknownKey));
    assert_eq!(try_with(&mut world, Some(9)), None);
    assert_eq!(try_with(&mut world, Some(1)), None);
}

#[test]
fn v_19_a_signature_alone_is_not_the_principal() {
    let mut world = world();
    let caller = Caller { token: alice().token, ..legacy("mcp-1") };
    world.commit(&caller, &crate::world::commitment(json!({ "max_calls": 1 })));
    let digest = world.session().agreed.digest().to_string();
    let message = amendment(&digest, json!({ "increase_budget": { "add_calls": 1 } }));
    let message = signed(&message, &key(1), json!({}));
    let elsewhere = Caller { mcp_session: Some("mcp-2".into()), ..caller.clone() };
    assert_eq!(world.commit(&elsewhere, &message).reason, Some(Reason::WrongPrincipal));
    assert_eq!(world.commit(&caller, &message).reason, None);
}

#[test]
fn v_23_an_amendment_is_under_the_ceiling_too() {
    let mut world = world();
    world.rules.ceiling.max_calls = Some(3);
    let mut world = world.with_session(json!({ "max_calls": 2 }));
    let digest = world.session().agreed.digest().to_string();
    let message = amendment(&digest, json!({ "increase_budget": { "add_calls": 10 } }));
    let ruling = world.commit(&alice(), &signed(&message, &key(1), json!({})));
    assert_eq!(ruling.verdict.verdict, VerdictKind::Downgraded);
    assert_eq!(world.session().agreed.budget().max_calls, Some(3));
    assert_eq!(ruling.effective.unwrap(), world.session().agreed.text());
}

#[test]
fn v_15_a_session_that_is_over_is_not_prolonged() {
    let mut world = world().with_session(json!({ "deadline": "2026-11-22T09:01:00Z" }));
    let later = json!({ "increase_budget": { "extend_deadline": "2026-11-22T10:00:00Z" } });
    world.pass(60);
    assert_eq!(amended(&mut world, later), Some(Reason::DeadlinePassed));
}

#[test]
fn an_overrun_meter_is_cured_by_raising_it() {
    let mut world = world().with_session(json!({ "limits": { "usd": 1 } }));
    world.ran(&Try::of("crm.read", json!({})), Some(r#"{"usd":3}"#));
    assert_eq!(world.denied(&Try::of("crm.read", json!({}))), Reason::MeterOverrun);
    assert_eq!(amended(&mut world, json!({ "increase_budget": { "add_limits": { "usd": 5 } } })), None);
    world.served(&Try::of("crm.read", json!({})));
}
