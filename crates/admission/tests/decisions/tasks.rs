//! What follows up a task: reading V-37.

use admission::decide::{DecisionContext, FollowUp, RandomInputs, Task, follow_up, unknown_task};
use admission::principal::Principal;
use admission::rules::{PolicyRule, Then};
use vap::reason::Reason;

use crate::world::{World, alice, legacy, mallory, nobody, world};

fn task() -> Task {
    let principal = Principal::of(&alice(), None);
    Task {
        principal,
        session_id: Some("session-0123456789abcdef".into()),
        reservation: None,
        tool: "pay".into(),
    }
}

fn followed(
    world: &World,
    caller: &admission::principal::Caller,
    task: &Task,
    inputs: Option<&str>,
) -> Option<Reason> {
    let context =
        DecisionContext { rules: &world.rules, caller, now: world.now, random: RandomInputs::default() };
    follow_up(&context, task, FollowUp { inputs }).and_then(|ruling| ruling.reason)
}

#[test]
fn v_37_a_task_is_followed_up_by_whoever_created_it() {
    let world = world();
    assert_eq!(followed(&world, &alice(), &task(), None), None);
    assert_eq!(followed(&world, &mallory(), &task(), None), Some(Reason::WrongPrincipal));
    assert_eq!(followed(&world, &nobody(), &task(), None), Some(Reason::WrongPrincipal));
    let legacy_task = Task { principal: Principal::of(&legacy("mcp-1"), None), ..task() };
    assert_eq!(followed(&world, &legacy("mcp-1"), &legacy_task, None), None);
    assert_eq!(followed(&world, &legacy("mcp-2"), &legacy_task, None), Some(Reason::WrongPrincipal));
}

#[test]
fn v_37_a_task_that_nobody_remembers_is_answered_like_anothers() {
    let (world, caller) = (world(), mallory());
    let context = DecisionContext {
        rules: &world.rules,
        caller: &caller,
        now: world.now,
        random: RandomInputs::default(),
    };
    let unknown = unknown_task(&context, "tasks/get");
    let anothers = follow_up(&context, &task(), FollowUp { inputs: None }).unwrap();
    assert_eq!((unknown.reason, unknown.verdict), (anothers.reason, anothers.verdict));
}

#[test]
fn v_37_whoever_did_not_create_a_task_learns_nothing_of_its_session() {
    let world = world();
    let (caller, task) = (mallory(), task());
    let context = DecisionContext {
        rules: &world.rules,
        caller: &caller,
        now: world.now,
        random: RandomInputs::default(),
    };
    let ruling = follow_up(&context, &task, FollowUp { inputs: None }).unwrap();
    assert_eq!(ruling.verdict.session_id, "none");
}

#[test]
fn v_37_what_is_brought_to_a_task_is_under_the_operators_rules() {
    let mut world = world();
    let when = Some("input.arguments.amount > 10");
    world.rules.policy.push(PolicyRule::new("large", None, when, Then::Deny).unwrap());
    assert_eq!(followed(&world, &alice(), &task(), Some(r#"{"amount":10}"#)), None);
    let denied = followed(&world, &alice(), &task(), Some(r#"{"amount":11}"#));
    assert_eq!(denied.unwrap().as_str(), "policy:large");
}
