//! How sensitive a tool is: what the agent says, and never less than what the operator says (reading V-30).

use crate::glob::Pattern;
use crate::message::Sensitivity;

/// The operator's table.
#[derive(Clone, Debug, Default)]
pub struct SensitivityRules {
    /// Every entry that matches counts; the most sensitive wins.
    pub tools: Vec<(Pattern, Sensitivity)>,
}

impl SensitivityRules {
    /// The more sensitive of what was declared and what the operator says; none if neither says anything.
    #[must_use]
    pub fn of(&self, tool: &str, declared: Option<Sensitivity>) -> Option<Sensitivity> {
        let said = self.tools.iter().filter(|(pattern, _)| pattern.matches(tool)).map(|(_, said)| *said);
        said.chain(declared).max_by_key(|class| crate::risk::sensitivity(Some(*class)))
    }
}
