//! What the operators did, as the log alone tells: who froze it, held an entry for a case and released it.

use std::collections::BTreeMap;

use registration::operator::{Action, Held};
use serde::{Deserialize, Serialize};

use crate::entry::Acted;
use crate::limits::MAX_ACTIONS;

/// An action of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorAction {
    /// The leaf of the statement.
    pub leaf: u64,
    /// `freeze`, `hold` or `release`.
    pub action: String,
    /// The key that signed, as a did:key.
    pub operator: String,
    /// When it was committed, in Unix seconds, if the source tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<u64>,
    /// The entry that is held or released.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entry: Option<String>,
    /// The case for which it is held.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub case: Option<String>,
    /// The reason of a freeze.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// An entry that is held for a case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeldFor {
    /// The entry.
    pub entry: String,
    /// The case.
    pub case: String,
}

/// What the actions so far have come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operators {
    pub(crate) actions: Vec<OperatorAction>,
    /// Actions that are not listed.
    pub(crate) omitted: u64,
    /// The leaf of the statement that ended the log.
    pub(crate) frozen: Option<u64>,
    /// The holds in force, by entry, and the cases of each.
    held: BTreeMap<String, Vec<String>>,
}

impl Operators {
    /// Takes up an admitted action.
    pub(crate) fn take(&mut self, leaf: u64, at: Option<u64>, acted: &Acted) {
        let Acted { action, operator } = acted;
        let (mut entry, mut case, mut reason) = (None, None, None);
        match action {
            Action::Freeze { reason: told } => {
                self.frozen.get_or_insert(leaf);
                reason = Some(told.clone());
            }
            Action::Hold(held) => {
                let cases = self.held.entry(held.entry.to_string()).or_default();
                cases.push(held.case.clone());
                (entry, case) = named(held);
            }
            Action::Release(held) => {
                self.release(held);
                (entry, case) = named(held);
            }
        }
        let (action, operator) = (action.name().to_owned(), operator.clone());
        match self.actions.len() {
            MAX_ACTIONS => self.omitted += 1,
            _ => self.actions.push(OperatorAction { leaf, action, operator, at, entry, case, reason }),
        }
    }

    fn release(&mut self, held: &Held) {
        let entry = held.entry.to_string();
        if let Some(cases) = self.held.get_mut(&entry) {
            cases.retain(|case| *case != held.case);
            if cases.is_empty() {
                self.held.remove(&entry);
            }
        }
    }

    /// The holds in force.
    pub(crate) fn held(&self) -> Vec<HeldFor> {
        let cases = |(entry, cases): (&String, &Vec<String>)| {
            let entry = entry.clone();
            cases
                .clone()
                .into_iter()
                .map(move |case| HeldFor { entry: entry.clone(), case })
                .collect::<Vec<_>>()
        };
        self.held.iter().flat_map(cases).collect()
    }
}

fn named(held: &Held) -> (Option<String>, Option<String>) {
    (Some(held.entry.to_string()), Some(held.case.clone()))
}
