//! Operator actions according to the log alone: freezes of the log, and holds and releases of entries.

use std::collections::BTreeMap;

use registration::operator::{Action, Held};
use serde::{Deserialize, Serialize};

use crate::entry::SignedAction;
use crate::limits::MAX_ACTIONS;

/// An admitted operator statement, as listed in [`AuditReport::actions`](crate::AuditReport::actions).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorAction {
    /// Leaf index of the statement.
    pub leaf: u64,
    /// `freeze`, `hold` or `release`.
    pub action: String,
    /// Public key of the signer, as a `did:key`.
    pub operator: String,
    /// Commit time in Unix seconds; `None` if the source does not give it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<u64>,
    /// ID of the held or released entry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entry: Option<String>,
    /// Case of the hold or release.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub case: Option<String>,
    /// Reason of a freeze.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// A hold in force, as listed in [`AuditReport::held`](crate::AuditReport::held).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeldFor {
    /// ID of the held entry.
    pub entry: String,
    /// Case for which the entry is held.
    pub case: String,
}

/// Operator actions so far, and the resulting holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operators {
    pub(crate) actions: Vec<OperatorAction>,
    /// Number of actions that are not listed.
    pub(crate) omitted: u64,
    /// Leaf of the first freeze, which ended the log.
    pub(crate) frozen: Option<u64>,
    /// Cases of the holds in force, by entry ID.
    held: BTreeMap<String, Vec<String>>,
}

impl Operators {
    /// Records an admitted action.
    pub(crate) fn take(&mut self, leaf: u64, at: Option<u64>, acted: &SignedAction) {
        let SignedAction { action, operator } = acted;
        let (mut entry, mut case, mut reason) = (None, None, None);
        match action {
            Action::Freeze { reason: given } => {
                self.frozen.get_or_insert(leaf);
                reason = Some(given.clone());
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

    /// Returns the holds in force, one per entry and case.
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
