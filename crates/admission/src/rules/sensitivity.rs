//! The sensitivity of a tool: the agent's declaration, but at least the operator's class (reading V-30).

use vap::glob::Pattern;
use vap::message::Sensitivity;

/// The operator's sensitivity classes.
#[derive(Clone, Debug, Default)]
pub struct SensitivityRules {
    /// Classes by tool pattern. All matching entries count; the most sensitive applies.
    pub tools: Vec<(Pattern, Sensitivity)>,
}

impl SensitivityRules {
    /// Returns the more sensitive of the declared class and the operator's; `None` if there is neither.
    #[must_use]
    pub fn of(&self, tool: &str, declared: Option<Sensitivity>) -> Option<Sensitivity> {
        let configured =
            self.tools.iter().filter(|(pattern, _)| pattern.matches(tool)).map(|(_, class)| *class);
        configured.chain(declared).max_by_key(|class| crate::risk::sensitivity(Some(*class)))
    }
}
