//! Findings of an audit: the name of the violated rule, the row, and the stored value with the expected one.

use std::fmt;

use merkle::{EntryDigest, LeafIndex};
use serde::{Deserialize, Serialize};

use crate::limits::MAX_QUOTE_BYTES;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Rules that a log can violate. The names are part of the output and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum LogRule {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl LogRule {
            /// All rules, in the order of declaration.
            pub const ALL: &'static [LogRule] = &[$(LogRule::$variant,)+];

            /// Returns the rule's name, such as `audit-leaf`.
            pub const fn name(self) -> &'static str {
                match self { $(LogRule::$variant => $name,)+ }
            }
        }
    };
}

rules! {
    /// A row below the head's size is missing or unreadable.
    EntryLost = "audit-entry-lost",
    /// The statement does not hash to the digest in its row.
    StatementDigest = "audit-statement-digest",
    /// The row's digest is not the one that the tree holds at this leaf.
    Leaf = "audit-leaf",
    /// The tile that holds the leaf's hash is missing or too short.
    TileLost = "audit-tile-lost",
    /// The leaves do not yield the committed root.
    Root = "audit-root",
    /// The stored bytes are not a well-formed signed statement.
    Malformed = "audit-malformed",
    /// The stored payload or certificate chain cannot be read, or certificates are gone without an explanation.
    Collateral = "audit-collateral",
    /// The policy in force refuses the admitted entry.
    Refused = "audit-refused",
    /// The entry names a policy other than the one that was in force.
    PolicyNotInForce = "audit-policy-not-in-force",
    /// The policy that was in force cannot be read, so that the entries that it admitted cannot be decided again.
    PolicyLost = "audit-policy-lost",
    /// The entry is admitted by another rule than the one that its row names.
    RuleDiffers = "audit-rule-differs",
    /// The row's facts are not those that the decision finds.
    FactsDiffer = "audit-facts-differ",
    /// A guard that the entry claims is not recorded as claimed by it.
    GuardMissing = "audit-guard-missing",
    /// The look-up by the entry's ID does not lead to the entry.
    LookUp = "audit-look-up",
    /// The look-up by the digest with the other signature encoding does not lead to the entry.
    Twin = "audit-twin",
    /// The entry was committed at a time at which it was not admissible.
    Time = "audit-time",
    /// The time or root of a batch differs from the signed one.
    HeadSigned = "audit-head-signed",
    /// The receipt that the log serves for the entry does not verify.
    Receipt = "audit-receipt",
    /// The history of heads has a gap, a head older or smaller than the one before, or another end than the head.
    History = "audit-history",
    /// The entry follows a freeze, by which the operator ended the log.
    AfterFreeze = "audit-after-freeze",
    /// The log's state row names another newest policy than the log has.
    HeadPolicy = "audit-head-policy",
    /// The statement is gone, and no erasure statement lists it.
    ErasedUnexplained = "audit-erased-unexplained",
    /// The payload is gone, and neither policy nor erasure statement explains it.
    PayloadUnexplained = "audit-payload-unexplained",
}

impl fmt::Display for LogRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A violation of one rule, with its location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditFinding {
    /// The violated rule.
    pub rule: LogRule,
    /// Leaf index, for a finding about an entry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub leaf: Option<u64>,
    /// Entry ID according to the row.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entry: Option<String>,
    /// Batch number, for a finding about a row of the history of heads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub batch: Option<u64>,
    /// Stored and expected value. May repeat untrusted text of a statement: escape it before display.
    pub detail: String,
}

impl AuditFinding {
    /// Creates a finding about an entry.
    pub fn of_entry(rule: LogRule, leaf: LeafIndex, entry: EntryDigest, detail: impl Into<String>) -> Self {
        Self { entry: Some(entry.to_string()), ..Self::of_leaf(rule, leaf, detail) }
    }

    /// Creates a finding about a leaf whose row cannot be read.
    pub fn of_leaf(rule: LogRule, leaf: LeafIndex, detail: impl Into<String>) -> Self {
        Self { leaf: Some(leaf.get()), ..Self::of_log(rule, detail) }
    }

    /// Creates a finding about a batch.
    pub fn of_batch(rule: LogRule, batch: u64, detail: impl Into<String>) -> Self {
        Self { batch: Some(batch), ..Self::of_log(rule, detail) }
    }

    /// Creates a finding about the log as a whole.
    pub fn of_log(rule: LogRule, detail: impl Into<String>) -> Self {
        Self { rule, leaf: None, entry: None, batch: None, detail: detail.into() }
    }
}

impl fmt::Display for AuditFinding {
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

/// Returns a stored text escaped and cut to [`MAX_QUOTE_BYTES`] bytes.
pub(crate) fn quote(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_QUOTE_BYTES);
    let more = if end < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", text[..end].escape_debug())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own_that_says_where_it_comes_from() {
        let names: HashSet<&str> = LogRule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), LogRule::ALL.len());
        assert!(names.iter().all(|name| name.starts_with("audit-")));
    }

    #[test]
    fn a_finding_names_its_row_and_survives_being_kept() {
        let finding = AuditFinding::of_leaf(LogRule::EntryLost, LeafIndex::new(7), "missing");
        assert_eq!(finding.to_string(), "leaf 7: audit-entry-lost: missing");
        let kept = serde_json::to_string(&finding).unwrap();
        assert_eq!(kept, r#"{"rule":"audit-entry-lost","leaf":7,"detail":"missing"}"#);
        assert_eq!(serde_json::from_str::<AuditFinding>(&kept).unwrap(), finding);
    }
}
