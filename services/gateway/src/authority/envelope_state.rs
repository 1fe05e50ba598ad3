//! The state of an envelope, as it is stored: its use, and what its calls showed about the costs of tools (R-7, R-48).
//!
//! What a call costs is known after it (V-12). So the expected cost is reserved, and of a tool whose cost is not known, one
//! call is in flight. Each such call may overrun a budget; then the budget denies further calls.
//!
//! Not here: presenters, manifests and ledgers (`roa::usage`), and how VAP reserves (`admission`).

use std::collections::BTreeSet;

use admission::decide::{CallOutcome, CostOnMeter, cost_on};
use admission::rules::{CostRules, Rules};
use admission::session::{Costs, Meters, ShortHash};
use decimal::Decimal;
use roa::capability::Capability;
use roa::denial::{Denial, DenialReason, Dimension};
use roa::registry::Registry;
use roa::text::Text;
use roa::usage::{EnvelopeUse, ExpectedCost, Spending};
use roa::verify::VerifiedChain;
use serde::{Deserialize, Serialize};
use vap::audit::CallStatus;

use crate::limits::PRICED_UNITS;

/// The unit of budgets that count calls (R-7).
const CALLS: &str = "api_calls";

/// The state of a root envelope and of the chains below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeState {
    /// The use of the envelope.
    pub used: EnvelopeUse,
    /// The highest cost of each tool so far, by the unit of a budget.
    costs: Costs,
    /// The tools of the calls in flight whose cost is not known.
    blind: BTreeSet<ShortHash>,
    /// The number of calls of unknown cost that ended with an unknown outcome.
    lost: u32,
}

/// The cost of a call that is to be reserved under an envelope.
#[derive(Clone, Copy, Debug)]
pub struct CallToReserve<'a> {
    /// The operator's costs on the route.
    pub costs: &'a CostRules,
    /// The name of the tool, as the client sees it.
    pub name: &'a str,
    /// The tool in the state of the envelope ([`tool_key`]).
    pub tool: ShortHash,
    /// `true` if the call repeats one that was counted (V-38).
    pub is_counted: bool,
}

/// The amounts that an admitted call reserved under an envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedEnvelope {
    /// The stream of the envelope's state.
    pub stream: String,
    /// The reserved amounts.
    pub spending: Spending,
    /// The tool in the state of the envelope.
    pub tool: ShortHash,
}

/// Reason why a call is not permitted.
#[derive(Clone, Debug)]
pub enum NotReserved {
    /// It is denied.
    Denied(Denial),
    /// Its cost is not known, and another call of its tool has to be settled first.
    Waits,
}

impl From<Denial> for NotReserved {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl EnvelopeState {
    /// Begins the use of the root of a chain.
    pub fn begin(chain: &VerifiedChain, registry: &Registry) -> Self {
        Self {
            used: EnvelopeUse::begin(chain, registry),
            costs: Costs::default(),
            blind: BTreeSet::new(),
            lost: 0,
        }
    }

    /// Reserves the expected cost of a call.
    ///
    /// # Errors
    /// If a budget has no room for it, or its cost is not known and must be. The state is not to be used then.
    pub fn reserve(
        &mut self,
        chain: &VerifiedChain,
        call: CallToReserve<'_>,
    ) -> Result<Spending, NotReserved> {
        let costs = &self.costs;
        let spending = self.used.reserve(chain, |unit| expected_cost(costs, call, unit))?;
        if spending.is_known {
            return Ok(spending);
        }
        if call.costs.denies_blind_calls(self.lost) {
            let detail = match call.costs.strict {
                true => "the cost of the tool is not known, and the chain has a budget",
                false => "the cost of the tool is not known, and too many such calls had an unknown outcome",
            };
            return Err(cost_unknown(detail).into());
        }
        match self.blind.insert(call.tool) {
            true => Ok(spending),
            false => Err(NotReserved::Waits),
        }
    }

    /// Settles what a call reserved. After an unknown outcome the reserved amounts stay spent.
    pub fn settle(&mut self, held: &UsedEnvelope, rules: &Rules, outcome: CallOutcome<'_>) {
        let spending = &held.spending;
        if !spending.is_known {
            self.blind.remove(&held.tool);
        }
        match outcome.status {
            CallStatus::Unknown if spending.is_known => {}
            CallStatus::Unknown => self.lost = self.lost.saturating_add(1),
            CallStatus::Refused => self.used.settle(spending, Decimal::ZERO),
            CallStatus::Executed | CallStatus::Errored => self.spend(held, rules, outcome),
        }
    }

    /// Replaces the reserved amounts of a call that ran with its cost, which the next calls of its tool can be expected to
    /// have.
    fn spend(&mut self, held: &UsedEnvelope, rules: &Rules, outcome: CallOutcome<'_>) {
        let UsedEnvelope { spending, tool, .. } = held;
        let Some(unit) = spending.unit.as_ref().map(Text::as_str).filter(|unit| *unit != CALLS) else {
            return;
        };
        let CostOnMeter { amount, is_learned } = cost_on(rules, outcome, unit);
        self.used.settle(spending, amount);
        if is_learned && self.has_room_for(*tool, unit) {
            self.costs.learn(*tool, &Meters::from_iter([(unit.to_owned(), amount)]));
        }
    }

    /// Returns whether one more unit may be kept for a tool: those who delegate choose the units.
    fn has_room_for(&self, tool: ShortHash, unit: &str) -> bool {
        let known = self.costs.of(tool);
        known.is_none_or(|costs| costs.names(unit) || costs.len() < PRICED_UNITS)
    }
}

/// Returns the tool of a capability in the state of an envelope, which tools of several servers can share.
pub fn tool_key(capability: &Capability) -> ShortHash {
    ShortHash::of(&[capability.server().as_bytes(), capability.tool().as_bytes()])
}

/// Returns the denial of a call whose cost is not known.
pub fn cost_unknown(detail: &str) -> Denial {
    Denial::new(DenialReason::BudgetExpansionDenied, "cost_unknown", detail).on(Dimension::Budget)
}

/// Returns the cost to expect in a unit: one for calls that are not counted yet, otherwise that on the meter of this name.
fn expected_cost(costs: &Costs, call: CallToReserve<'_>, unit: &Text) -> ExpectedCost {
    match unit.as_str() {
        CALLS if call.is_counted => ExpectedCost::known(Decimal::ZERO),
        CALLS => ExpectedCost::known(Decimal::from(1)),
        meter => {
            let expected = call.costs.expected(call.name, costs.of(call.tool));
            ExpectedCost { amount: expected.on(meter), is_known: expected.is_known(meter) }
        }
    }
}

#[cfg(test)]
mod tests {
    use admission::limits::BLIND_CALLS;
    use jiff::Timestamp;
    use roa::registry::RegistryDocument;
    use roa::signed::Signed;
    use roa::text::UtcTime;
    use roa::verify::{TimeBounds, verify_chain};
    use scitt::Signer as _;
    use serde_json::json;
    use testkit::agentroa;

    use super::*;
    use crate::annex::DecisionAnnex;

    /// An envelope with a budget of five euros.
    struct World {
        chain: VerifiedChain,
        state: EnvelopeState,
        rules: Rules,
    }

    impl World {
        fn new() -> Self {
            let signed = Signed::<RegistryDocument>::parse(&agentroa::registry(1, |_| ())).unwrap();
            let operators = [agentroa::key_of("operator").public_key().clone()];
            let registry = Registry::open(&signed, &operators).unwrap();
            let chain = agentroa::root(|members| {
                members["authorized_scope"]["budget_ceiling"] = 5.into();
                members["authorized_scope"]["budget_unit"] = "EUR".into();
            });
            let now = UtcTime(Timestamp::now());
            let chain = verify_chain(&chain, &registry, TimeBounds::default(), now).unwrap();
            let state = EnvelopeState::begin(&chain, &registry);
            Self { chain, state, rules: Rules::new("/mcp", "https://gw.example", "") }
        }

        /// Reserves the cost of a call of the tool `read` of a server, or returns what stands against it.
        fn reserve(&mut self, server: &str) -> Result<UsedEnvelope, &'static str> {
            let tool = tool_key(&Capability::new(server, "read").unwrap());
            let call = CallToReserve { costs: &self.rules.costs, name: "read", tool, is_counted: false };
            match self.state.reserve(&self.chain, call) {
                Ok(spending) => Ok(UsedEnvelope { stream: String::new(), spending, tool }),
                Err(NotReserved::Waits) => Err("waits"),
                Err(NotReserved::Denied(denial)) => Err(denial.code),
            }
        }

        fn settle(&mut self, held: &UsedEnvelope, status: CallStatus, cost: Option<&str>) {
            let outcome = CallOutcome { status, tool: "read", cost };
            self.state.settle(held, &self.rules, outcome);
        }
    }

    #[test]
    fn one_call_of_each_tool_is_in_flight_until_its_cost_is_known() {
        let mut world = World::new();
        let first = world.reserve("crm").unwrap();
        assert_eq!(world.reserve("crm").unwrap_err(), "waits");
        world.reserve("docs").unwrap();
        world.settle(&first, CallStatus::Executed, Some(r#"{"EUR":2}"#));
        let second = world.reserve("crm").unwrap();
        assert_eq!((second.spending.amount, second.spending.is_known), (Decimal::from(2), true));
        assert_eq!(world.reserve("crm").unwrap_err(), "spent");
    }

    #[test]
    fn a_failed_call_shows_the_cost_of_its_tool_in_a_unit_only_if_the_tool_declared_one_in_it() {
        let costs = [(None, false), (Some(r#"{"USD":1}"#), false), (Some(r#"{"EUR":1}"#), true)];
        for (cost, is_known) in costs {
            let mut world = World::new();
            let failed = world.reserve("crm").unwrap();
            world.settle(&failed, CallStatus::Errored, cost);
            assert_eq!(world.reserve("crm").unwrap().spending.is_known, is_known, "{cost:?}");
        }
    }

    #[test]
    fn a_call_that_was_not_sent_lets_the_next_one_of_its_tool_go() {
        let mut world = World::new();
        let refused = world.reserve("crm").unwrap();
        world.settle(&refused, CallStatus::Refused, None);
        assert!(!world.reserve("crm").unwrap().spending.is_known);
    }

    #[test]
    fn calls_of_unknown_cost_are_denied_once_several_had_an_unknown_outcome() {
        let mut world = World::new();
        for _ in 0..BLIND_CALLS {
            let lost = world.reserve("crm").unwrap();
            world.settle(&lost, CallStatus::Unknown, None);
        }
        assert_eq!(world.reserve("crm").unwrap_err(), "cost_unknown");
        world.rules.costs.default.set("EUR", Decimal::from(1));
        world.reserve("crm").unwrap();
    }

    #[test]
    fn a_call_of_unknown_cost_is_settled_after_a_crash_from_the_annex_of_its_decision() {
        let mut world = World::new();
        let held = world.reserve("crm").unwrap();
        let annex = json!({ "envelope": held }).to_string();
        let annex: DecisionAnnex = jose::json::read_text(&annex).unwrap();
        world.settle(&annex.envelope.unwrap(), CallStatus::Unknown, None);
        world.reserve("crm").unwrap();
    }

    #[test]
    fn a_stored_state_is_read_as_it_was() {
        let mut world = World::new();
        let first = world.reserve("crm").unwrap();
        world.settle(&first, CallStatus::Executed, Some(r#"{"EUR":2}"#));
        world.reserve("docs").unwrap();
        let stored = serde_json::to_vec(&world.state).unwrap();
        let read: EnvelopeState = jose::json::read_bytes(&stored).unwrap();
        assert_eq!(read, world.state);
    }
}
