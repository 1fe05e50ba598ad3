//! The search values of one stored entry. A damaged or unreadable entry never fails the index: it is logged, and blind.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use lookup_tree::BlindCode;
use merkle::{LeafIndex, TreeSize};
use registration::{COLLATERAL_PAYLOAD, SearchValues};
use scitt::{Malformed, SignedStatement};
use store::{Entry, LogReader, StoreError};

use crate::limits::{INDEX_BYTES, INDEX_ENTRIES, INDEX_FIRST};

/// An entry with its detached payload.
pub struct EntryWithPayload {
    /// The entry's leaf.
    pub index: LeafIndex,
    statement: StoredStatement,
    /// The detached payload, if it was kept.
    payload: Option<Bytes>,
}

enum StoredStatement {
    There(Bytes),
    Erased,
    Damaged,
}

/// Reads the search values of entries, as many at one time as fit into [`INDEX_BYTES`].
pub struct ValueReader {
    /// Number of entries read at one time.
    chunk: usize,
}

impl ValueReader {
    pub fn new() -> Self {
        Self { chunk: INDEX_FIRST }
    }

    /// Reads the values of up to `left` entries, and converts them with `of`. They are fewer if they are large, and none
    /// only if `left` is 0.
    pub async fn read<T: Send + 'static>(
        &mut self,
        store: &dyn LogReader,
        from: TreeSize,
        left: usize,
        of: fn(SearchValues) -> T,
    ) -> Result<Vec<T>, StoreError> {
        if left == 0 {
            return Ok(Vec::new());
        }
        let entries = entries(store, from, self.chunk.min(left)).await?;
        let bytes: usize = entries.iter().map(EntryWithPayload::bytes).sum();
        self.chunk = (INDEX_BYTES * entries.len().max(1) / bytes.max(1)).clamp(1, INDEX_ENTRIES);
        // Parsing a long record takes a while, and would block other tasks of this thread.
        let values = move || entries.iter().map(|entry| of(entry.values())).collect();
        Ok(tokio::task::spawn_blocking(values).await.unwrap_or_default())
    }

    /// Reads the values of all entries in a range of leaves like [`read`](Self::read).
    pub async fn read_all<T: Send + 'static>(
        &mut self,
        store: &dyn LogReader,
        leaves: Range<u64>,
        of: fn(SearchValues) -> T,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        let mut next = leaves.start;
        while next < leaves.end {
            let left = usize::try_from(leaves.end - next).unwrap_or(usize::MAX);
            let read = self.read(store, TreeSize::new(next), left, of).await?;
            if read.is_empty() {
                return Err(StoreError::Damaged(format!("the values of entry {next} are missing")));
            }
            next += read.len() as u64;
            all.extend(read);
        }
        Ok(all)
    }
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

/// Reads one entry, also if it is damaged.
pub async fn one(store: &dyn LogReader, index: LeafIndex) -> Result<EntryWithPayload, StoreError> {
    match store.entry(index).await {
        Ok(Some(entry)) => whole(store, entry).await,
        Ok(None) | Err(StoreError::Damaged(_)) => {
            tracing::error!(index = index.get(), "an entry is not indexed: it cannot be read");
            Ok(EntryWithPayload { index, statement: StoredStatement::Damaged, payload: None })
        }
        Err(error) => Err(error),
    }
}

/// Reads the detached payload of an entry.
pub async fn whole(store: &dyn LogReader, entry: Entry) -> Result<EntryWithPayload, StoreError> {
    let index = entry.index;
    let statement = match entry.verified() {
        Ok(entry) => entry.statement.map_or(StoredStatement::Erased, StoredStatement::There),
        Err(error) => {
            tracing::error!(index = index.get(), %error, "an entry is not indexed");
            StoredStatement::Damaged
        }
    };
    let payload = match &statement {
        StoredStatement::There(bytes) => detached_payload(store, index, bytes).await?,
        StoredStatement::Erased | StoredStatement::Damaged => None,
    };
    Ok(EntryWithPayload { index, statement, payload })
}

/// Reads the detached payload of a statement; `None` if the statement has its payload, or the log has not kept it.
pub async fn detached_payload(
    store: &dyn LogReader,
    index: LeafIndex,
    statement: &Bytes,
) -> Result<Option<Bytes>, StoreError> {
    if !is_detached(statement) {
        return Ok(None);
    }
    match store.collateral(index).await {
        Ok(collateral) => {
            Ok(collateral.into_iter().find(|item| item.kind == COLLATERAL_PAYLOAD).map(|item| item.bytes))
        }
        Err(StoreError::Damaged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_detached(statement: &Bytes) -> bool {
    SignedStatement::parse(statement.clone()).is_ok_and(|statement| statement.is_detached())
}

impl EntryWithPayload {
    /// Bytes of statement and payload.
    pub fn bytes(&self) -> usize {
        let statement = match &self.statement {
            StoredStatement::There(statement) => statement.len(),
            StoredStatement::Erased | StoredStatement::Damaged => 0,
        };
        statement + self.payload.as_ref().map_or(0, Bytes::len)
    }

    /// The entry's search values. One that was erased, or cannot be read, has only a blind code.
    pub fn values(&self) -> SearchValues {
        let statement = match &self.statement {
            StoredStatement::There(statement) => statement,
            StoredStatement::Erased => return SearchValues::blind(BlindCode::Erased),
            StoredStatement::Damaged => return SearchValues::blind(BlindCode::Unreadable),
        };
        // A panic in parsing one entry must not prevent the others from being indexed.
        match catch_unwind(AssertUnwindSafe(|| read(statement, self.payload.as_ref()))) {
            Ok(Ok(values)) => values,
            Ok(Err(why)) => {
                tracing::warn!(index = self.index.get(), %why, "an entry is not indexed");
                SearchValues::blind(BlindCode::Unreadable)
            }
            Err(_) => {
                tracing::error!(index = self.index.get(), "an entry is not indexed: reading it panicked");
                SearchValues::blind(BlindCode::Unreadable)
            }
        }
    }
}

fn read(statement: &Bytes, payload: Option<&Bytes>) -> Result<SearchValues, Malformed> {
    let statement = SignedStatement::parse(statement.clone())?;
    Ok(SearchValues::of_statement(&statement, payload.map(|bytes| &bytes[..])))
}

#[cfg(test)]
mod tests {
    use registration::LookupKind;
    use scitt::StatementBuilder;

    use super::*;

    fn values_of(statement: &[u8], payload: Option<&[u8]>, kind: LookupKind) -> Vec<String> {
        let entry = EntryWithPayload {
            index: LeafIndex::new(7),
            statement: StoredStatement::There(Bytes::copy_from_slice(statement)),
            payload: payload.map(Bytes::copy_from_slice),
        };
        let values = entry.values().lookups;
        values.into_iter().filter(|row| row.kind == kind).map(|row| row.value).collect()
    }

    #[test]
    fn what_is_no_statement_says_nothing() {
        assert_eq!(values_of(b"", None, LookupKind::Issuer), [""; 0]);
        assert_eq!(values_of(&[0xff; 100], None, LookupKind::Issuer), [""; 0]);
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
        assert_eq!(values_of(broken.bytes(), None, LookupKind::Issuer), [testkit::ISSUER]);
        assert_eq!(values_of(broken.bytes(), None, LookupKind::Subject), ["thing"]);
        assert_eq!(values_of(broken.bytes(), None, LookupKind::ContentType), ["application/vrf+json"]);
    }

    #[test]
    fn a_receipt_is_found_by_what_it_says() {
        let receipt = testkit::vrf(1);
        assert_eq!(values_of(receipt.bytes(), None, LookupKind::Verdict), ["pass"]);
        assert_eq!(values_of(receipt.bytes(), None, LookupKind::Tier), ["0"]);
    }
}
