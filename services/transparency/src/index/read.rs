//! What one entry says. Nothing here fails: an entry that cannot be read is not found by what it says, and that is told
//! to the operator.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use registration::{COLLATERAL_PAYLOAD, Record};
use scitt::SignedStatement;
use store::{Entry, LogStore, Lookup, StoreError};

/// The payload that came beside a statement without one, if it was kept.
pub async fn payload_beside(store: &dyn LogStore, entry: &Entry) -> Result<Option<Bytes>, StoreError> {
    let Some(statement) = &entry.statement else { return Ok(None) };
    let detached = SignedStatement::parse(statement.clone()).is_ok_and(|parsed| parsed.payload().is_none());
    if !detached {
        return Ok(None);
    }
    let beside = store.collateral(entry.index).await?;
    Ok(beside.into_iter().find(|item| item.kind == COLLATERAL_PAYLOAD).map(|item| item.bytes))
}

/// The rows of an entry; none of one that was erased.
pub fn lookups(entry: &Entry, payload: Option<&Bytes>) -> Vec<Lookup> {
    let Some(statement) = &entry.statement else { return Vec::new() };
    // A fault of ours in one entry must not keep the others from being found.
    match catch_unwind(AssertUnwindSafe(|| read(statement, payload))) {
        Ok(Ok(found)) => {
            found.into_iter().map(|(kind, value)| Lookup { kind, value, entry: entry.index }).collect()
        }
        Ok(Err(why)) => {
            tracing::warn!(entry = %entry.index, why, "an entry is not indexed");
            Vec::new()
        }
        Err(_) => {
            tracing::error!(entry = %entry.index, "an entry is not indexed: reading it panicked");
            Vec::new()
        }
    }
}

fn read(statement: &Bytes, payload: Option<&Bytes>) -> Result<Vec<(u8, String)>, String> {
    let statement = SignedStatement::parse(statement.clone()).map_err(|malformed| malformed.to_string())?;
    let payload = statement.payload().or(payload.map(|bytes| &bytes[..]));
    // Without its payload, or under rules that changed since, it is still found by its header.
    let record = match payload {
        Some(payload) => Record::of(statement.header(), payload).unwrap_or(Record::Opaque),
        None => Record::Opaque,
    };
    let found = record.lookups(statement.header(), payload);
    Ok(found.into_iter().map(|lookup| (lookup.kind.number(), lookup.value)).collect())
}
