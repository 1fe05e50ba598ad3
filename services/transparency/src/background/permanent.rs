//! Entries that are never erased: statements of the operator.
//!
//! They claim a guard of their permanence, by which the rules of an erasure refuse them. The process that erases checks the
//! statements themselves once more: if the database has lost a guard, an erasure must not take a policy, without which the
//! log cannot start.

use std::collections::BTreeSet;

use merkle::LeafIndex;
use registration::operator::{is_operator_rule, is_operator_statement};
use scitt::SignedStatement;
use store::{Entry, EntryStatus, LogReader, StoreError};

/// Returns those of these entries that no erasure may delete.
pub(super) async fn permanent(
    store: &dyn LogReader,
    entries: &[EntryStatus],
) -> Result<BTreeSet<LeafIndex>, StoreError> {
    let mut stay = BTreeSet::new();
    for status in entries.iter().filter(|status| is_operator_rule(&status.rule)) {
        let entry = store.entry(status.entry).await?;
        if entry.is_none_or(|entry| stays(&entry)) {
            stay.insert(status.entry);
        }
    }
    Ok(stay)
}

/// Returns `true` for an operator's statement, and for an unreadable one, since its type is unknown.
fn stays(entry: &Entry) -> bool {
    let statement = entry.statement.clone().and_then(|bytes| SignedStatement::parse(bytes).ok());
    statement.is_none_or(|statement| {
        let named = statement.header().content_type().and_then(|name| name.as_text());
        named.is_some_and(is_operator_statement)
    })
}
