//! Keys of terms, and roots of runs.

use lookup_tree::{Posting, RunSummary, TermKey};
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::vectors::DocumentEdit;

use super::edited;
use super::postings::{RunSource, hex, posting};

/// A term.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyCase {
    kind: u8,
    value: String,
}

/// Returns a term with its key.
pub fn key(case: &KeyCase) -> Value {
    let KeyCase { kind, value } = case;
    json!({ "kind": kind, "value": value, "key": TermKey::of(*kind, value.as_bytes()).to_string() })
}

/// Postings that may be those of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootCase {
    run: RunSource,
    /// Edits of the postings as a list.
    #[serde(default)]
    list: Vec<DocumentEdit>,
}

/// Returns postings with the root of their run.
pub fn root(case: &RootCase) -> Value {
    let list: Vec<String> = case.run.postings().iter().map(hex).collect();
    let list: Vec<String> = super::read(&edited(list.into(), &case.list));
    let postings: Vec<Posting> = list.iter().map(|hex| posting(hex)).collect();
    let summary = RunSummary::of(&postings).ok();
    json!({
        "postings": list,
        "blind": summary.map(|summary| summary.blind),
        "root": summary.map(|summary| summary.root.to_string()),
    })
}
