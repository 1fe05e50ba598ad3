//! Whatever happens in whatever order, what was admitted stays within what was agreed.

use std::collections::BTreeMap;

use admission::clarify::HumanAnswer;
use admission::decide::CallDecision;
use admission::rules::{PolicyRule, PrincipalCeiling, Then};
use admission::session::{Meters, ReservationId};
use decimal::Decimal;
use proptest::prelude::*;
use serde_json::json;
use vap::audit::CallStatus;
use vap::glob::Pattern;

use crate::world::{SESSION, Try, World, alice, amendment, key, legacy, signed, world};

/// What a tool costs here: always the same, and the operator knows it.
const COSTS: [(&str, u64); 3] = [("crm.free", 0), ("crm.cheap", 1), ("pay", 7)];

#[derive(Clone, Copy, Debug)]
enum Step {
    Call { tool: usize, needs_answer: bool },
    Answer { which: usize, yes: bool },
    Settle { which: usize, status: usize },
    Raise { calls: u64, usd: u64 },
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..COSTS.len(), any::<bool>()).prop_map(|(tool, needs_answer)| Step::Call { tool, needs_answer }),
        3 => (0..8usize, any::<bool>()).prop_map(|(which, yes)| Step::Answer { which, yes }),
        5 => (0..8usize, 0..4usize).prop_map(|(which, status)| Step::Settle { which, status }),
        1 => (0..3u64, 0..9u64).prop_map(|(calls, usd)| Step::Raise { calls, usd }),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..80)
}

/// What we believe, beside what the gateway counts.
struct Model {
    world: World,
    asking: Vec<(ReservationId, Try)>,
    running: Vec<(ReservationId, usize)>,
    /// Calls and amounts that ran for good.
    calls: u64,
    spent: u64,
}

impl Model {
    fn new() -> Self {
        let mut world = world();
        let costs = COSTS.map(|(tool, cost)| (Pattern::new(tool).unwrap(), usd(cost)));
        world.rules.costs.tools.extend(costs);
        let when = Some(r#"object.get(input.arguments, "needs_answer", false) == true"#);
        world.rules.policy.push(PolicyRule::new("ask", None, when, Then::Confirm).unwrap());
        let ceiling = PrincipalCeiling { max_calls: Some(40), limits: usd(120), window: None };
        world.rules.principal_ceiling = Some(ceiling);
        let caller = legacy("mcp-1");
        let message = crate::world::commitment(json!({ "max_calls": 10, "limits": { "usd": 30 } }));
        world.commit(&caller, &message);
        Model { world, asking: Vec::new(), running: Vec::new(), calls: 0, spent: 0 }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Call { tool, needs_answer } => self.call(tool, needs_answer),
            Step::Answer { which, yes } => self.answer(which, yes),
            Step::Settle { which, status } => self.settle(which, status),
            Step::Raise { calls, usd } => self.raise(calls, usd),
            Step::Restart => self.restart(),
        }
        self.check();
    }

    fn call(&mut self, tool: usize, needs_answer: bool) {
        let attempt = Try::of(COSTS[tool].0, json!({ "needs_answer": needs_answer })).by(legacy("mcp-1"));
        match self.world.call(&attempt) {
            CallDecision::Admit(permit, _) => self.running.extend(permit.reservation().map(|id| (id, tool))),
            CallDecision::Refuse(_) => {}
            CallDecision::Ask { held, .. } => self.asking.push((held.unwrap(), attempt)),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, which: usize, yes: bool) {
        if self.asking.is_empty() {
            return;
        }
        let (held, attempt) = self.asking.remove(which % self.asking.len());
        let answer = Some(if yes { HumanAnswer::Confirmed } else { HumanAnswer::Declined });
        let tool = COSTS.iter().position(|(tool, _)| *tool == attempt.tool).unwrap();
        let ruling = self.world.ruled(&Try { held: Some(held), answer, ..attempt });
        assert!(yes || !ruling.is_admitted());
        self.running.extend(ruling.permit.and_then(|permit| permit.reservation()).map(|id| (id, tool)));
    }

    fn settle(&mut self, which: usize, status: usize) {
        if self.running.is_empty() {
            return;
        }
        let (id, tool) = self.running.remove(which % self.running.len());
        let status =
            [CallStatus::Executed, CallStatus::Errored, CallStatus::Refused, CallStatus::Unknown][status];
        let (name, cost) = COSTS[tool];
        self.world.settle(id, status, name, Some(&json!({ "usd": cost }).to_string()));
        if status != CallStatus::Refused {
            self.calls += 1;
            self.spent += cost;
        }
    }

    fn raise(&mut self, calls: u64, usd: u64) {
        let mut budget = serde_json::Map::new();
        if calls > 0 {
            budget.insert("add_calls".into(), calls.into());
        }
        if usd > 0 {
            budget.insert("add_limits".into(), json!({ "usd": usd }));
        }
        let digest = self.world.session().agreed.digest().to_string();
        let message = amendment(&digest, json!({ "increase_budget": budget }));
        self.world.commit(&legacy("mcp-1"), &signed(&message, &key(1), json!({})));
        self.world.commit(&alice(), &signed(&message, &key(1), json!({})));
    }

    /// The state comes back from its blobs, and the questions that were open are gone.
    fn restart(&mut self) {
        let slot = self.world.sessions.get_mut(SESSION).unwrap();
        let bytes = serde_json::to_vec(slot).unwrap();
        *slot = serde_json::from_slice(&bytes).unwrap();
        let session = slot.as_mut().unwrap();
        let account = self.world.accounts.get_mut(session.agreed.account()).unwrap();
        *account = serde_json::from_slice(&serde_json::to_vec(account).unwrap()).unwrap();
        admission::decide::refund_questions(session, account);
        self.asking.clear();
    }

    fn check(&self) {
        let session = self.world.session();
        let budget = session.agreed.budget();
        let open: BTreeMap<_, _> = self.running.iter().copied().chain(self.tools_of_questions()).collect();
        let reserved: u64 = open.values().map(|tool| COSTS[*tool].1).sum();
        let count = u64::try_from(open.len()).unwrap();
        assert_eq!(session.running.calls(), self.calls + count);
        assert_eq!(session.running.used("usd"), Decimal::from(self.spent + reserved));
        assert!(session.running.calls() <= budget.max_calls.unwrap());
        assert!(session.running.used("usd") <= budget.limits["usd"]);
        assert!(self.calls + count <= 40 && self.spent + reserved <= 120);
    }

    fn tools_of_questions(&self) -> Vec<(ReservationId, usize)> {
        let tool = |attempt: &Try| COSTS.iter().position(|(tool, _)| *tool == attempt.tool).unwrap();
        self.asking.iter().map(|(id, attempt)| (*id, tool(attempt))).collect()
    }
}

fn usd(amount: u64) -> Meters {
    [("usd".to_owned(), Decimal::from(amount))].into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_admitted_never_exceeds_what_was_agreed(steps in steps()) {
        let mut model = Model::new();
        for step in steps {
            model.step(step);
        }
    }
}
