//! What an audit may find: a rule's name, the row, and what it says against what it should.

use std::fmt;

use merkle::{EntryDigest, LeafIndex};
use serde::{Deserialize, Serialize};

use crate::limits::MAX_TOLD;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// What can be wrong. The names are part of the output: they are never reworded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Rule {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant,)+];

            /// The rule's name.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name,)+ }
            }
        }
    };
}

rules! {
    /// A row that the head covers is missing or unreadable.
    EntryLost = "audit-entry-lost",
    /// The statement does not hash to the digest beside it.
    StatementDigest = "audit-statement-digest",
    /// The digest is not the one that the tree holds at this leaf.
    Leaf = "audit-leaf",
    /// The tile that holds the leaf's hash is missing or too short.
    TileLost = "audit-tile-lost",
    /// The leaves do not have the root that was committed.
    Root = "audit-root",
    /// The stored bytes are no statement.
    Malformed = "audit-malformed",
    /// What was kept beside the entry cannot be read, or certificates are gone and nothing explains it.
    Collateral = "audit-collateral",
    /// The policy in force refuses what the log admitted.
    Refused = "audit-refused",
    /// The entry names another policy than the one that was in force.
    PolicyNotInForce = "audit-policy-not-in-force",
    /// The policy that was in force cannot be read: what it admitted cannot be decided again.
    PolicyLost = "audit-policy-lost",
    /// Another rule admits it than the one that the entry names.
    RuleDiffers = "audit-rule-differs",
    /// The facts are not those of the statement.
    FactsDiffer = "audit-facts-differ",
    /// A claim that the entry makes is not recorded as its claim.
    GuardMissing = "audit-guard-missing",
    /// The entry's ID does not lead to it.
    LookUp = "audit-look-up",
    /// The other encoding of its signature does not lead to it.
    Twin = "audit-twin",
    /// It was committed at a time at which it was not admitted.
    Time = "audit-time",
    /// The time or root of a batch is not the one that was signed.
    HeadSigned = "audit-head-signed",
    /// The history of heads has a gap, runs back, or does not end in the head.
    History = "audit-history",
    /// The entry follows one by which the operator ended the log.
    AfterFreeze = "audit-after-freeze",
    /// The log's row names another newest policy than the log has.
    HeadPolicy = "audit-head-policy",
    /// The statement is gone, and no entry says that it was erased.
    ErasedUnexplained = "audit-erased-unexplained",
    /// The payload is gone, and neither policy nor erasure explains it.
    PayloadUnexplained = "audit-payload-unexplained",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What is wrong.
    pub rule: Rule,
    /// The row, when it is an entry's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub leaf: Option<u64>,
    /// The entry's ID, as its row gives it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entry: Option<String>,
    /// The row, when it is one of the history of heads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub batch: Option<u64>,
    /// What was found and expected. May repeat text of a statement: to be escaped where it is shown.
    pub detail: String,
}

impl Finding {
    /// Of an entry.
    pub fn of_entry(rule: Rule, leaf: LeafIndex, entry: EntryDigest, detail: impl Into<String>) -> Self {
        Self { entry: Some(entry.to_string()), ..Self::of_leaf(rule, leaf, detail) }
    }

    /// Of a leaf whose row cannot be read.
    pub fn of_leaf(rule: Rule, leaf: LeafIndex, detail: impl Into<String>) -> Self {
        Self { leaf: Some(leaf.get()), ..Self::of_log(rule, detail) }
    }

    /// Of a batch.
    pub fn of_batch(rule: Rule, batch: u64, detail: impl Into<String>) -> Self {
        Self { batch: Some(batch), ..Self::of_log(rule, detail) }
    }

    /// Of the log as a whole.
    pub fn of_log(rule: Rule, detail: impl Into<String>) -> Self {
        Self { rule, leaf: None, entry: None, batch: None, detail: detail.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.leaf, self.batch) {
            (Some(leaf), _) => write!(f, "leaf {leaf}")?,
            (None, Some(batch)) => write!(f, "batch {batch}")?,
            (None, None) => f.write_str("log")?,
        }
        if let Some(entry) = &self.entry {
            write!(f, " ({entry})")?;
        }
        write!(f, ": {}: {}", self.rule, self.detail)
    }
}

/// A stored text as a finding repeats it: escaped, and cut.
pub(crate) fn quote(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TOLD);
    let more = if end < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", text[..end].escape_debug())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own_that_says_where_it_comes_from() {
        let names: HashSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
        assert!(names.iter().all(|name| name.starts_with("audit-")));
    }

    #[test]
    fn a_finding_names_its_row_and_survives_being_kept() {
        let finding = Finding::of_leaf(Rule::EntryLost, LeafIndex::new(7), "missing");
        assert_eq!(finding.to_string(), "leaf 7: audit-entry-lost: missing");
        let kept = serde_json::to_string(&finding).unwrap();
        assert_eq!(kept, r#"{"rule":"audit-entry-lost","leaf":7,"detail":"missing"}"#);
        assert_eq!(serde_json::from_str::<Finding>(&kept).unwrap(), finding);
    }
}
