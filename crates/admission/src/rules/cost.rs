//! The costs of calls that the operator configured (readings V-12, V-13).

use crate::session::Meters;
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
    /// `true` if a session with limits may only call tools whose cost is configured.
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
}
