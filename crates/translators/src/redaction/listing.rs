//! The list of what was left out of a record (`source.redactions`).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::limits::LISTED_POINTERS;

/// Omissions by rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Redactions(BTreeMap<String, Omissions>);

/// The omissions of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Omissions {
    count: u64,
    /// JSON pointers of the first omissions.
    pointers: Vec<String>,
}

impl Redactions {
    /// Number of omissions.
    pub fn count(&self) -> u64 {
        self.0.values().map(|omissions| omissions.count).sum()
    }

    /// The rules with their numbers of omissions.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(rule, omissions)| (rule.as_str(), omissions.count))
    }

    pub(crate) fn add(&mut self, rule: &str, count: u64, pointer: &str) {
        let omissions = self.0.entry(rule.to_owned()).or_default();
        omissions.count += count;
        if omissions.pointers.len() < LISTED_POINTERS {
            omissions.pointers.push(pointer.to_owned());
        }
    }

    /// Serializes the list: an array of `{rule, count, pointers}`.
    pub(crate) fn to_values(&self) -> Vec<Value> {
        let member = |(rule, omissions): (&String, &Omissions)| {
            let Omissions { count, pointers } = omissions;
            json!({ "rule": rule, "count": count, "pointers": pointers })
        };
        self.0.iter().map(member).collect()
    }
}
