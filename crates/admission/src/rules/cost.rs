//! The costs of calls that the operator configured (readings V-12, V-13).

use crate::limits::BLIND_CALLS;
use crate::session::Meters;
use decimal::Decimal;
use vap::glob::Pattern;

/// The operator's costs of calls, in exact decimals.
#[derive(Clone, Debug, Default)]
pub struct CostRules {
    /// The minimum cost of every call; empty unless configured (reading V-23).
    pub default: Meters,
    /// The costs of calls to matching tools. All matching entries count; the highest amount per meter applies.
    pub tools: Vec<(Pattern, Meters)>,
    /// The maximum cost that one call may declare, per meter.
    pub cap: Meters,
    /// `true` if only tools whose cost is configured may be called in a session with limits, or under a delegation chain with
    /// a budget.
    pub strict: bool,
}

impl CostRules {
    /// Returns the configured cost of a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Meters {
        let mut known = self.default.clone();
        for (_, cost) in self.tools.iter().filter(|(pattern, _)| pattern.matches(tool)) {
            known.raise(cost);
        }
        known
    }

    /// Returns the cost to expect of a call of a tool. `learned` is the highest cost that the tool declared so far.
    #[must_use]
    pub fn expected<'a>(&self, tool: &str, learned: Option<&'a Meters>) -> ExpectedCosts<'a> {
        ExpectedCosts { operator: self.of(tool), learned, strict: self.strict }
    }

    /// Returns whether calls of unknown cost are denied; `lost` of them ended with an unknown outcome.
    #[must_use]
    pub const fn denies_blind_calls(&self, lost: u32) -> bool {
        self.strict || lost >= BLIND_CALLS
    }
}

/// The cost to expect of a call before it is answered: per meter, the higher of the operator's cost and the tool's highest
/// declared cost (reading V-12).
#[derive(Clone, Debug)]
pub struct ExpectedCosts<'a> {
    operator: Meters,
    learned: Option<&'a Meters>,
    strict: bool,
}

impl ExpectedCosts<'_> {
    /// Returns the amounts on the meters for which `wanted` is `true`.
    #[must_use]
    pub fn amounts(&self, wanted: impl Fn(&str) -> bool) -> Meters {
        let mut amounts = self.operator.only(&wanted);
        if let Some(learned) = self.learned {
            amounts.raise(&learned.only(&wanted));
        }
        amounts
    }

    /// Returns the amount on one meter.
    #[must_use]
    pub fn on(&self, meter: &str) -> Decimal {
        self.amounts(|name| name == meter).of(meter)
    }

    /// Returns whether the cost on a meter is known. A declared cost does not count if only tools of configured cost may be
    /// called.
    #[must_use]
    pub fn is_known(&self, meter: &str) -> bool {
        let is_declared = self.learned.is_some_and(|learned| learned.names(meter));
        self.operator.names(meter) || (is_declared && !self.strict)
    }
}
