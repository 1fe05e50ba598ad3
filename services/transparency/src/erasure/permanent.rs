//! Entries that are never erased: the operator's statements, recognized by their content type.
//!
//! Statements of the operator claim a guard of permanence, by which the rules of an erasure refuse them. A log older
//! than that guard has policies without it, and could not start without them. So this module does not rely on the
//! guard.

use std::collections::BTreeSet;

use merkle::LeafIndex;
use registration::Answers;
use registration::erasure::{Erasure, permanent_guard};
use registration::operator::{is_operator_rule, is_operator_statement};
use scitt::SignedStatement;
use store::{Entry, LogStore, Standing, StoreError};

/// Returns those of these entries that no erasure may delete.
pub(super) async fn permanent(
    store: &dyn LogStore,
    entries: &[Standing],
) -> Result<BTreeSet<LeafIndex>, StoreError> {
    let mut stay = BTreeSet::new();
    for standing in entries.iter().filter(|standing| is_operator_rule(&standing.rule)) {
        let entry = store.entry(standing.entry).await?;
        if entry.is_none_or(|entry| stays(&entry)) {
            stay.insert(standing.entry);
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

/// Adds the guard of permanence to the answers for each permanent entry that an erasure names, also where an old log
/// lacks it.
pub(crate) async fn put_permanent(
    store: &dyn LogStore,
    erasure: &Erasure,
    answers: &mut Answers,
) -> Result<(), StoreError> {
    let named: Vec<_> =
        erasure.entries.iter().filter_map(|entry| Some((*entry, answers.entry(entry)?))).collect();
    let leaves: Vec<LeafIndex> = named.iter().map(|(_, leaf)| *leaf).collect();
    let stay = permanent(store, &store.standing(&leaves).await?).await?;
    for (entry, leaf) in named.into_iter().filter(|(_, leaf)| stay.contains(leaf)) {
        answers.put_guard(permanent_guard(&entry), leaf);
    }
    Ok(())
}
