//! What the tools of a session turned out to cost (reading V-12).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Mark, Meters};
use crate::limits::PRICED_TOOLS;

/// The highest cost that each tool declared in this session. Of more tools than are told apart, the highest of all the
/// others is remembered together: forgetting would make a dear tool look free again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    tools: BTreeMap<Mark, Meters>,
    others: Option<Meters>,
}

impl Costs {
    /// The highest cost that the tool declared, on each meter that was limited then; none if no call of it has settled.
    #[must_use]
    pub fn of(&self, tool: Mark) -> Option<&Meters> {
        self.tools.get(&tool).or(self.others.as_ref())
    }

    /// Remembers what a call declared on the meters that are limited; a name that nobody limits is not remembered.
    pub fn learn(&mut self, tool: Mark, cost: &Meters) {
        let known = self.tools.contains_key(&tool);
        let slot = match known || self.tools.len() < PRICED_TOOLS {
            true => self.tools.entry(tool).or_default(),
            false => self.others.get_or_insert_default(),
        };
        slot.raise(cost);
    }
}
