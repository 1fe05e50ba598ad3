//! The values of one entry for the index. A damaged or unreadable entry never fails the index: it is logged, and cannot
//! be found by its values.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use merkle::{LeafIndex, TreeSize};
use registration::{COLLATERAL_PAYLOAD, Record};
use scitt::SignedStatement;
use store::{Entry, LogReader, Lookup, StoreError};

/// An entry with its detached payload.
pub struct EntryWithPayload {
    /// The entry's leaf.
    pub index: LeafIndex,
    /// `None` if the statement was erased or is damaged.
    statement: Option<Bytes>,
    /// The detached payload, if it was kept.
    payload: Option<Bytes>,
}

/// Reads the next `count` entries. If some are damaged, the others are read all the same.
pub async fn entries(
    store: &dyn LogReader,
    from: TreeSize,
    count: usize,
) -> Result<Vec<EntryWithPayload>, StoreError> {
    let mut found = Vec::with_capacity(count);
    match store.entries(LeafIndex::new(from.get()), count).await {
        Ok(entries) => {
            for entry in entries {
                found.push(whole(store, entry).await?);
            }
        }
        Err(StoreError::Damaged(_)) => {
            for index in (from.get()..).take(count).map(LeafIndex::new) {
                found.push(one(store, index).await?);
            }
        }
        Err(error) => return Err(error),
    }
    Ok(found)
}

async fn one(store: &dyn LogReader, index: LeafIndex) -> Result<EntryWithPayload, StoreError> {
    match store.entry(index).await {
        Ok(Some(entry)) => whole(store, entry).await,
        Ok(None) | Err(StoreError::Damaged(_)) => {
            tracing::error!(index = index.get(), "an entry is not indexed: it cannot be read");
            Ok(EntryWithPayload { index, statement: None, payload: None })
        }
        Err(error) => Err(error),
    }
}

/// Reads the detached payload of an entry.
pub async fn whole(store: &dyn LogReader, entry: Entry) -> Result<EntryWithPayload, StoreError> {
    let index = entry.index;
    let statement = match entry.verified() {
        Ok(entry) => entry.statement,
        Err(error) => {
            tracing::error!(index = index.get(), %error, "an entry is not indexed");
            None
        }
    };
    let parsed = statement.clone().and_then(|bytes| SignedStatement::parse(bytes).ok());
    let payload = match parsed.is_some_and(|statement| statement.payload().is_none()) {
        true => detached_payload(store, index).await?,
        false => None,
    };
    Ok(EntryWithPayload { index, statement, payload })
}

async fn detached_payload(store: &dyn LogReader, index: LeafIndex) -> Result<Option<Bytes>, StoreError> {
    match store.collateral(index).await {
        Ok(collateral) => {
            Ok(collateral.into_iter().find(|item| item.kind == COLLATERAL_PAYLOAD).map(|item| item.bytes))
        }
        Err(StoreError::Damaged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl EntryWithPayload {
    /// Bytes of statement and payload.
    pub fn bytes(&self) -> usize {
        self.statement.as_ref().map_or(0, Bytes::len) + self.payload.as_ref().map_or(0, Bytes::len)
    }

    /// The entry's rows; none if it was erased.
    pub fn lookups(&self) -> Vec<Lookup> {
        let Some(statement) = &self.statement else { return Vec::new() };
        // A panic in parsing one entry must not prevent the others from being indexed.
        match catch_unwind(AssertUnwindSafe(|| read(statement, self.payload.as_ref()))) {
            Ok(Ok(found)) => {
                found.into_iter().map(|(kind, value)| Lookup { kind, value, entry: self.index }).collect()
            }
            Ok(Err(why)) => {
                tracing::warn!(index = self.index.get(), why, "an entry is not indexed");
                Vec::new()
            }
            Err(_) => {
                tracing::error!(index = self.index.get(), "an entry is not indexed: reading it panicked");
                Vec::new()
            }
        }
    }
}

fn read(statement: &Bytes, payload: Option<&Bytes>) -> Result<Vec<(u8, String)>, String> {
    let statement = SignedStatement::parse(statement.clone()).map_err(|malformed| malformed.to_string())?;
    let payload = statement.payload().or(payload.map(|bytes| &bytes[..]));
    // Without its payload, or under rules that changed since, an entry is indexed by its header only.
    let record = match payload {
        Some(payload) => Record::of(statement.header(), payload).unwrap_or_else(|_| Record::opaque()),
        None => Record::opaque(),
    };
    let found = record.lookups(statement.header(), payload);
    Ok(found.into_iter().map(|lookup| (lookup.kind.number(), lookup.value)).collect())
}

#[cfg(test)]
mod tests {
    use registration::LookupKind;
    use scitt::StatementBuilder;

    use super::*;

    fn said(statement: &[u8], payload: Option<&[u8]>, kind: LookupKind) -> Vec<String> {
        let entry = EntryWithPayload {
            index: LeafIndex::new(7),
            statement: Some(Bytes::copy_from_slice(statement)),
            payload: payload.map(Bytes::copy_from_slice),
        };
        let rows = entry.lookups();
        assert!(rows.iter().all(|row| row.entry == entry.index));
        rows.into_iter().filter(|row| row.kind == kind.number()).map(|row| row.value).collect()
    }

    #[test]
    fn what_is_no_statement_says_nothing() {
        assert_eq!(said(b"", None, LookupKind::Issuer), [""; 0]);
        assert_eq!(said(&[0xff; 100], None, LookupKind::Issuer), [""; 0]);
    }

    #[test]
    fn a_payload_that_breaks_its_rules_leaves_the_header_to_be_found_by() {
        let broken = StatementBuilder::new("{}")
            .content_type("application/vrf+json")
            .kid(testkit::KID)
            .iss(testkit::ISSUER)
            .sub("thing")
            .sign(&testkit::es256())
            .unwrap();
        assert_eq!(said(broken.bytes(), None, LookupKind::Issuer), [testkit::ISSUER]);
        assert_eq!(said(broken.bytes(), None, LookupKind::Subject), ["thing"]);
        assert_eq!(said(broken.bytes(), None, LookupKind::ContentType), ["application/vrf+json"]);
    }

    #[test]
    fn a_receipt_is_found_by_what_it_says() {
        let receipt = testkit::vrf(1);
        assert_eq!(said(receipt.bytes(), None, LookupKind::Verdict), ["pass"]);
        assert_eq!(said(receipt.bytes(), None, LookupKind::Tier), ["0"]);
    }
}
