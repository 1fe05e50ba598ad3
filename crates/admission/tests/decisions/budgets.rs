//! C3: what is reserved before, settled after, and given back: readings V-3, V-11 to V-15.

use admission::decide::{CallDecision, Flag};
use admission::rules::PrincipalCeiling;
use admission::session::Meters;
use decimal::Decimal;
use serde_json::json;
use vap::audit::CallStatus;
use vap::glob::Pattern;
use vap::reason::Reason;

use crate::world::{SESSION, Try, World, alice, commitment, envelope, world};

fn read() -> Try {
    Try::of("crm.read", json!({}))
}

fn usd(limit: &str) -> World {
    let limit: serde_json::Value = serde_json::from_str(limit).unwrap();
    world().with_session(json!({ "limits": { "usd": limit } }))
}

fn used(world: &World) -> String {
    world.session().running.used("usd").to_string()
}

fn amount(text: &str) -> Meters {
    [("usd".to_owned(), Decimal::read(text).unwrap())].into_iter().collect()
}

#[test]
fn v_11_equality_is_no_excess_and_denied_calls_do_not_count() {
    let mut world = world().with_session(json!({ "max_calls": 2 }));
    world.denied(&Try::of("shell.run", json!({})));
    world.ran(&read(), None);
    world.served(&read());
    assert_eq!(world.denied(&read()), Reason::BudgetExceeded);
    assert_eq!(world.session().running.calls(), 2);
}

#[test]
fn v_11_a_hundred_denials_in_a_minute_and_then_none_is_heard() {
    let mut world = world().with_session(json!({ "max_calls": 5 }));
    for _ in 0..100 {
        assert_eq!(world.denied(&Try::of("shell.run", json!({}))), Reason::ScopeEscape);
    }
    assert_eq!(world.denied(&read()), Reason::RateLimited);
    assert_eq!(world.denied(&read().without_vap()), Reason::RateLimited);
    world.pass(59);
    assert_eq!(world.denied(&read()), Reason::RateLimited);
    world.pass(1);
    world.served(&read());
}

#[test]
fn v_12_the_operators_cost_is_reserved_before_the_call() {
    let mut world = usd("1");
    world.rules.costs.tools.push((Pattern::new("crm.*").unwrap(), amount("0.6")));
    world.served(&read());
    assert_eq!(used(&world), "0.6");
    assert_eq!(world.denied(&read()), Reason::BudgetExceeded);
}

#[test]
fn v_12_the_highest_cost_that_a_tool_declared_is_reserved_the_next_time() {
    let mut world = usd("1");
    world.ran(&read(), Some(r#"{"usd":0.3}"#));
    world.ran(&read(), Some(r#"{"usd":0.1}"#));
    world.served(&read());
    assert_eq!(used(&world), "0.7");
    world.served(&read());
    assert_eq!(world.denied(&read()), Reason::BudgetExceeded);
}

#[test]
fn v_12_one_call_of_unknown_cost_is_under_way_and_the_others_wait() {
    let mut world = usd("1");
    let first = world.served(&read());
    assert!(matches!(world.call(&read()), CallDecision::Wait));
    let other = world.served(&Try::of("crm.write", json!({})));
    world.settle(first.reservation(), CallStatus::Executed, "crm.read", Some(r#"{"usd":0.25}"#));
    world.served(&read());
    world.settle(other.reservation(), CallStatus::Executed, "crm.write", None);
    assert_eq!(used(&world), "0.5");
}

#[test]
fn v_12_waiting_changes_nothing() {
    let mut world = usd("1");
    world.served(&read());
    let before = world.session().clone();
    assert!(matches!(world.call(&read()), CallDecision::Wait));
    assert_eq!(*world.session(), before);
}

#[test]
fn v_12_a_first_call_may_overrun_once_and_the_meter_blocks_until_it_is_raised() {
    let mut world = usd("1");
    let settled = world.ran(&read(), Some(r#"{"usd":5}"#));
    assert!(settled.exceeded_reservation && settled.flags.contains(&Flag::Overrun));
    assert_eq!(world.denied(&read()), Reason::MeterOverrun);
    assert_eq!(world.denied(&Try::of("crm.free", json!({}))), Reason::MeterOverrun);
}

#[test]
fn v_12_at_the_very_ceiling_only_what_is_known_to_be_free_is_called() {
    let mut world = usd("1");
    world.ran(&Try::of("crm.free", json!({})), Some(r#"{"usd":0}"#));
    world.ran(&read(), Some(r#"{"usd":1}"#));
    assert_eq!(world.denied(&read()), Reason::BudgetExceeded);
    assert_eq!(world.denied(&Try::of("crm.unknown", json!({}))), Reason::BudgetExceeded);
    world.served(&Try::of("crm.free", json!({})));
}

#[test]
fn v_12_an_unknown_outcome_keeps_the_reservation() {
    let mut world = usd("1");
    world.rules.costs.default = amount("0.6");
    let ruling = world.served(&read());
    world.settle(ruling.reservation(), CallStatus::Unknown, "crm.read", None);
    assert_eq!((used(&world).as_str(), world.session().running.calls()), ("0.6", 1));
    assert_eq!(world.denied(&read()), Reason::BudgetExceeded);
}

#[test]
fn v_12_cancelling_every_call_does_not_make_a_tool_free_for_ever() {
    let mut world = usd("1");
    for _ in 0..3 {
        let ruling = world.served(&read());
        world.settle(ruling.reservation(), CallStatus::Unknown, "crm.read", None);
    }
    assert_eq!(world.denied(&read()), Reason::CostUnknown);
}

#[test]
fn v_12_a_tool_that_only_failed_has_not_told_what_it_costs() {
    let mut world = usd("1");
    for cost in [None, Some(r#"{"eur":1}"#), None] {
        let ruling = world.served(&read());
        assert!(matches!(world.call(&read()), CallDecision::Wait));
        world.settle(ruling.reservation(), CallStatus::Errored, "crm.read", cost);
    }
    world.ran(&read(), None);
    world.served(&read());
    world.served(&read());
}

#[test]
fn v_12_strict_a_tool_of_unknown_cost_is_not_called_in_a_session_with_limits() {
    let mut strict = usd("1");
    strict.rules.costs.strict = true;
    assert_eq!(strict.denied(&read()), Reason::CostUnknown);
    strict.rules.costs.tools.push((Pattern::new("crm.read").unwrap(), amount("0")));
    strict.served(&read());
    let mut unmetered = world().with_session(json!({ "max_calls": 5 }));
    unmetered.rules.costs.strict = true;
    unmetered.served(&read());
}

#[test]
fn v_13_tenths_add_up() {
    let mut world = usd("0.3");
    for _ in 0..3 {
        world.ran(&read(), Some(r#"{"usd":0.1}"#));
    }
    assert_eq!(used(&world), "0.3");
    assert_eq!(world.denied(&read()), Reason::BudgetExceeded);
}

#[test]
fn v_13_what_is_no_cost_is_flagged_and_does_no_harm() {
    for (cost, flag, spent) in [
        (r#"{"usd":"5"}"#, Flag::CostNotANumber, "0"),
        (r#"{"usd":true}"#, Flag::CostNotANumber, "0"),
        (r#"{"usd":NaN}"#, Flag::CostNotANumber, "0"),
        (r#"{"usd":1,"usd":0}"#, Flag::CostNotANumber, "0"),
        (r#"[1]"#, Flag::CostNotANumber, "0"),
        (r#"{"usd":-5}"#, Flag::CostNegative, "0"),
        (r#"{"usd":-0.0}"#, Flag::Overrun, "0"),
    ] {
        let mut world = usd("1");
        let settled = world.ran(&read(), Some(cost));
        let flagged = settled.flags.contains(&flag);
        assert_eq!((flagged, used(&world).as_str()), (flag != Flag::Overrun, spent), "{cost}");
    }
}

#[test]
fn v_13_a_negative_cost_gives_nothing_back() {
    let mut world = usd("1");
    world.ran(&read(), Some(r#"{"usd":0.75}"#));
    world.ran(&Try::of("crm.refund", json!({})), Some(r#"{"usd":-100}"#));
    assert_eq!(used(&world), "0.75");
}

#[test]
fn v_13_the_operators_cap_keeps_a_tool_from_starving_the_session() {
    let mut world = usd("10");
    world.rules.costs.cap = amount("2");
    let settled = world.ran(&read(), Some(r#"{"usd":1e308}"#));
    assert!(settled.flags.contains(&Flag::CostCapped));
    assert_eq!(used(&world), "2");
}

#[test]
fn v_13_a_crowd_of_meters_does_not_hide_the_one_that_is_limited() {
    let mut world = usd("1");
    let crowd: serde_json::Map<_, _> =
        (0..10_000).map(|i| (format!("a{i}"), json!(1))).chain([("usd".into(), json!(0.5))]).collect();
    let settled = world.ran(&read(), Some(&serde_json::to_string(&crowd).unwrap()));
    assert_eq!(used(&world), "0.5");
    assert!(settled.flags.contains(&Flag::CostTooManyMeters));
    assert_eq!(settled.settled.len(), 64);
}

#[test]
fn v_13_a_tool_that_declares_new_meters_for_ever_is_not_remembered_for_them() {
    let mut world = world().with_session(json!({ "max_calls": 1_000, "limits": { "usd": 1e9 } }));
    let mut size = 0;
    for call in 0..200 {
        let fresh: serde_json::Map<_, _> =
            (0..64).map(|i| (format!("{call}-{i}-{}", "x".repeat(200)), json!(1))).collect();
        world.ran(&read(), Some(&serde_json::to_string(&fresh).unwrap()));
        size = size.max(serde_json::to_vec(&world.session().running).unwrap().len());
    }
    assert!(size < 12_000, "{size}");
}

#[test]
fn v_13_no_crowd_of_meters_keeps_an_outcome_off_the_log() {
    let mut world = usd("1");
    world.rules.costs.default = amount("0.25");
    world.rules.costs.default.set("zz", Decimal::from(1u64));
    let crowd: serde_json::Map<_, _> = (0..64).map(|i| (format!("a{i}"), json!(1))).collect();
    let settled = world.ran(&read(), Some(&serde_json::to_string(&crowd).unwrap()));
    assert_eq!((settled.settled.len(), used(&world).as_str()), (64, "0.25"));
    assert!(settled.settled.names("usd") && settled.flags.contains(&Flag::CostTooManyMeters));
}

#[test]
fn v_12_of_a_meter_that_is_limited_only_now_no_tool_has_told_its_cost() {
    let mut world = usd("10");
    world.ran(&read(), Some(r#"{"usd":1,"eur":7}"#));
    let limits = [("eur".to_owned(), Decimal::from(10u64))].into_iter().collect();
    world.rules.principal_ceiling = Some(PrincipalCeiling { max_calls: None, limits, window: None });
    let first = world.served(&read()).reservation();
    assert!(matches!(world.call(&read()), CallDecision::Wait), "its cost in eur is not known");
    world.settle(first, CallStatus::Executed, "crm.read", Some(r#"{"usd":1,"eur":7}"#));
    assert_eq!(world.denied(&read()), Reason::PrincipalCeiling);
}

#[test]
fn v_3_a_principal_is_forgotten_when_its_window_is_over_and_not_before() {
    let mut world = world();
    let limits = amount("1");
    world.rules.principal_ceiling = Some(PrincipalCeiling { max_calls: Some(9), limits, window: Some(60) });
    let mut world = world.with_session(json!({ "max_calls": 5 }));
    world.ran(&read(), Some(r#"{"usd":0.5}"#));
    assert!(world.close());
    let account = |world: &World| world.accounts[world.session().agreed.account()].clone();
    assert!(!account(&world).is_idle(world.now));
    world.pass(60);
    assert!(account(&world).is_idle(world.now));
    world.rules.principal_ceiling.as_mut().unwrap().window = None;
    assert!(account(&world).is_idle(world.now), "it is the window under which it was spent");
}

#[test]
fn v_13_a_cost_finer_than_we_count_is_rounded_up() {
    let mut world = usd("1");
    let settled = world.ran(&read(), Some(r#"{"usd":1e-40}"#));
    assert!(settled.flags.contains(&Flag::CostRounded));
    assert_ne!(used(&world), "0");
}

#[test]
fn a_tool_that_declares_nothing_costs_what_the_operator_says() {
    let mut world = usd("1");
    world.rules.costs.default = amount("0.25");
    world.ran(&read(), None);
    assert_eq!(used(&world), "0.25");
    world.ran(&read(), Some(r#"{"usd":0.1}"#));
    assert_eq!(used(&world), "0.35");
}

#[test]
fn v_14_only_a_call_that_never_left_is_given_back() {
    let mut world = usd("1");
    world.rules.costs.default = amount("1");
    let ruling = world.served(&read());
    world.settle(ruling.reservation(), CallStatus::Refused, "crm.read", Some(r#"{"usd":7}"#));
    assert_eq!((used(&world).as_str(), world.session().running.calls()), ("0", 0));
    let ruling = world.served(&read());
    world.settle(ruling.reservation(), CallStatus::Errored, "crm.read", None);
    assert_eq!((used(&world).as_str(), world.session().running.calls()), ("1", 1));
}

#[test]
fn a_call_is_settled_once() {
    let mut world = usd("1");
    let id = world.served(&read()).reservation();
    world.settle(id, CallStatus::Executed, "crm.read", Some(r#"{"usd":0.5}"#));
    let mut session = world.session().clone();
    let outcome =
        admission::decide::CallOutcome { status: CallStatus::Refused, tool: "crm.read", cost: None };
    let again = admission::decide::settle(&world.rules, &mut session, &mut Default::default(), id, outcome);
    assert_eq!((again, &session), (None, world.session()));
}

#[test]
fn v_15_the_deadline_denies_and_a_call_under_way_is_not_cut() {
    let mut world = world().with_session(json!({ "deadline": "2026-11-22T09:01:00Z" }));
    world.pass(59);
    let ruling = world.served(&read());
    world.pass(1);
    assert_eq!(world.denied(&read()), Reason::DeadlinePassed);
    world.settle(ruling.reservation(), CallStatus::Executed, "crm.read", None);
}

#[test]
fn v_3_new_ids_do_not_mint_budget_where_the_principal_has_a_ceiling() {
    let mut world = world();
    let limits = amount("1");
    world.rules.principal_ceiling = Some(PrincipalCeiling { max_calls: Some(3), limits, window: Some(60) });
    world.rules.costs.default = amount("0.4");
    let mut tries = Vec::new();
    for id in ["one-0123456789abcdef", "two-0123456789abcdef"] {
        let mut message = commitment(json!({ "max_calls": 9 }));
        message["session_id"] = id.into();
        world.commit(&alice(), &message);
        let mut message = envelope("crm.read", json!({}));
        message["session_id"] = id.into();
        tries.push(read().with(message));
    }
    world.served(&tries[0]);
    world.served(&tries[1]);
    assert_eq!(world.denied(&tries[0]), Reason::PrincipalCeiling);
    world.pass(60);
    assert_eq!(world.denied(&tries[1]), Reason::PrincipalCeiling, "two calls are still under way");
    for id in ["one-0123456789abcdef", "two-0123456789abcdef"] {
        let session = world.sessions.get_mut(id).unwrap().as_mut().unwrap();
        let account = world.accounts.get_mut(session.agreed.account()).unwrap();
        let held = session.running.in_flight()[0].id;
        let outcome =
            admission::decide::CallOutcome { status: CallStatus::Executed, tool: "crm.read", cost: None };
        admission::decide::settle(&world.rules, session, account, held, outcome).unwrap();
    }
    world.pass(60);
    world.served(&tries[1]);
}

#[test]
fn a_session_of_any_length_has_a_bounded_state() {
    let mut world = world().with_session(json!({ "max_calls": 1_000_000, "limits": { "usd": 1e9 } }));
    let mut sizes = Vec::new();
    for i in 0..3_000u32 {
        let attempt = Try::of(&format!("crm.tool{}", i % 700), json!({ "i": i }));
        world.ran(&attempt, Some(r#"{"usd":1.25}"#));
        sizes.push(serde_json::to_vec(&world.session().running).unwrap().len());
    }
    assert!(sizes[2_999] < sizes[1_500] + 64, "{} {}", sizes[1_500], sizes[2_999]);
    assert!(sizes[2_999] < 12_000, "{}", sizes[2_999]);
}

#[test]
fn a_session_reads_back_from_its_two_blobs() {
    let mut world = usd("1");
    world.ran(&read(), Some(r#"{"usd":0.5}"#));
    world.served(&Try::of("crm.write", json!({})));
    let session = world.session();
    let agreed = serde_json::from_slice(&serde_json::to_vec(&session.agreed).unwrap()).unwrap();
    let running = serde_json::from_slice(&serde_json::to_vec(&session.running).unwrap()).unwrap();
    assert_eq!(admission::session::Session { agreed, running }, *session);
}

#[test]
fn a_session_ends_when_its_last_call_has() {
    let mut world = usd("1");
    let ruling = world.served(&read());
    assert!(!world.close());
    world.settle(ruling.reservation(), CallStatus::Unknown, "crm.read", None);
    assert!(world.close() && world.close());
    assert!(!world.sessions[SESSION].as_ref().unwrap().is_open());
}
