//! What calls cost, as far as the operator knows (readings V-12, V-13).

use crate::glob::Pattern;
use crate::session::Meters;

/// The operator's costs, in exact decimals.
#[derive(Clone, Debug, Default)]
pub struct CostRules {
    /// What a call of any tool costs at least; nothing unless configured (reading V-23).
    pub default: Meters,
    /// What calls of some tools cost: every entry that matches counts, the highest per meter.
    pub tools: Vec<(Pattern, Meters)>,
    /// The most that one call may declare, per meter.
    pub cap: Meters,
    /// Whether a session with limits may only call tools whose cost the operator knows.
    pub strict: bool,
}

impl CostRules {
    /// What the operator knows about the cost of a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Meters {
        let mut known = self.default.clone();
        for (_, cost) in self.tools.iter().filter(|(pattern, _)| pattern.matches(tool)) {
            known.raise(cost);
        }
        known
    }
}
