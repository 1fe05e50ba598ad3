//! Whatever is sent, it is decided about, and the log takes the record. The world reads every record of every decision.

use admission::decide::CallDecision;
use admission::rules::{PolicyRule, Posture, Then};
use proptest::prelude::*;
use serde_json::{Value, json};
use vap::glob::Pattern;

use crate::world::{Try, World, alice, amendment, commitment, envelope, key, mallory, nobody, signed, world};

/// Where a message is changed.
const PLACES: [&str; 17] = [
    "/vap",
    "/type",
    "/session_id",
    "/goal",
    "/scope/tools_allow",
    "/scope/tools_deny",
    "/budget/max_calls",
    "/budget/deadline",
    "/budget/limits",
    "/principal/agent_id",
    "/intent/rationale",
    "/intent/sensitivity",
    "/call/tool",
    "/call/arguments",
    "/prev_commitment_digest",
    "/signature",
    "/strange",
];

fn values() -> impl Strategy<Value = Value> {
    let texts = ".{0,40}".prop_map(Value::from);
    let names = prop_oneof!["[a-z.*\u{0}\u{202e}]{0,300}", Just("none".into()), Just("unbound:x".into())];
    let numbers = prop_oneof![any::<f64>().prop_map(|n| json!(n)), any::<i64>().prop_map(|n| json!(n))];
    let meters = proptest::collection::btree_map(".{0,12}", 0.0..1e300f64, 0..70).prop_map(|map| json!(map));
    let lists = proptest::collection::vec("[*a-z]{0,9}", 0..300).prop_map(|list| json!(list));
    prop_oneof![
        texts,
        names.prop_map(Value::from),
        numbers,
        meters,
        lists,
        Just(Value::Null),
        Just(json!({}))
    ]
}

fn changed(mut message: Value, changes: &[(usize, Value)]) -> Value {
    for (place, value) in changes {
        let (parent, name) = PLACES[*place].rsplit_once('/').unwrap();
        if let Some(Value::Object(members)) = message.pointer_mut(parent) {
            members.insert(name.to_owned(), value.clone());
        }
    }
    message
}

fn changes() -> impl Strategy<Value = Vec<(usize, Value)>> {
    proptest::collection::vec((0..PLACES.len(), values()), 0..3)
}

fn worlds(posture: usize) -> World {
    let mut world = world();
    world.rules.posture = [Posture::Deny, Posture::Restricted, Posture::Advisory][posture];
    world.rules.restricted.push(Pattern::new("*").unwrap());
    let when = Some(r#"object.get(input.arguments, "ask", false) == true"#);
    world.rules.policy.push(PolicyRule::new("ask", None, when, Then::Confirm).unwrap());
    world.with_session(json!({ "max_calls": 50, "limits": { "usd": 5 } }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_call_is_decided_about(
        posture in 0..3usize,
        changes in changes(),
        tool in "(crm\\.[a-z]{1,4}|.{0,300})",
        arguments in "(\\{\\}|\\{\"ask\":true\\}|.{0,60}|\\{\"n\":[0-9]{1,40}\\})",
        vap in any::<bool>(),
        who in 0..3usize,
    ) {
        let mut world = worlds(posture);
        let message = changed(envelope(&tool, json!({})), &changes);
        let caller = [alice(), mallory(), nobody()][who].clone();
        let attempt = Try { arguments, ..Try::of(&tool, json!({})).by(caller).with(message) };
        let attempt = if vap { attempt } else { attempt.without_vap() };
        let ruling = world.call(&attempt);
        let held = match ruling {
            CallDecision::Admit(permit, _) => {
                prop_assert!(!(vap && who > 0), "a stranger is served");
                permit.reservation().is_some()
            }
            CallDecision::Refuse(_) => false,
            CallDecision::Wait | CallDecision::Ask { .. } => return Ok(()),
        };
        prop_assert_eq!(world.session().running.in_flight().len(), usize::from(held));
    }

    #[test]
    fn any_declaration_is_decided_about(changes in changes(), sign in any::<bool>(), amend in any::<bool>()) {
        let mut world = worlds(0);
        let digest = world.session().agreed.digest().to_string();
        let message = match amend {
            true => amendment(&digest, json!({ "increase_budget": { "add_limits": { "usd": 1 } } })),
            false => commitment(json!({ "max_calls": 5 })),
        };
        let message = changed(message, &changes);
        let message = if sign { signed(&message, &key(1), json!({})) } else { message };
        let before = world.session().clone();
        let ruling = world.commit(&alice(), &message);
        if !ruling.verdict.verdict.is_permit() {
            prop_assert_eq!(&world.session().agreed, &before.agreed);
        }
    }

    #[test]
    fn any_cost_is_settled(cost in "(\\{\"usd\":-?[0-9]{0,40}(\\.[0-9]{0,40})?(e-?[0-9]{1,4})?\\}|.{0,60})") {
        let mut world = worlds(0);
        let before = world.session().running.used("usd");
        world.ran(&Try::of("crm.read", json!({})), Some(&cost));
        prop_assert!(world.session().running.used("usd") >= before);
    }
}
