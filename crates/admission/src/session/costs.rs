//! The costs that tools declared in a session (reading V-12), or under an AgentROA envelope.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Meters, ShortHash};
use crate::limits::PRICED_TOOLS;

/// The highest declared cost of each tool in a session or under an envelope. For tools beyond [`PRICED_TOOLS`], one shared
/// maximum is kept: without it, an expensive tool would look free again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    tools: BTreeMap<ShortHash, Meters>,
    others: Option<Meters>,
}

impl Costs {
    /// Returns the tool's highest declared cost on the meters limited at that time. For a tool without an entry this is
    /// the shared maximum; `None` if there is none either.
    #[must_use]
    pub fn of(&self, tool: ShortHash) -> Option<&Meters> {
        self.tools.get(&tool).or(self.others.as_ref())
    }

    /// Raises the tool's cost to the declared amounts. The caller passes limited meters only, so that a tool cannot
    /// fill the state with new names.
    pub fn learn(&mut self, tool: ShortHash, cost: &Meters) {
        let known = self.tools.contains_key(&tool);
        let slot = match known || self.tools.len() < PRICED_TOOLS {
            true => self.tools.entry(tool).or_default(),
            false => self.others.get_or_insert_default(),
        };
        slot.raise(cost);
    }
}
