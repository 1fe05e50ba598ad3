//! The end of the log, as its entries state it.

use merkle::LeafIndex;
use registration::operator::freeze_guard;
use store::{GuardKey, LogReader, StoreError};

/// The leaf of the statement that ended the log for ever; `None` also for a log that was frozen to move.
pub async fn frozen_by(store: &dyn LogReader) -> Result<Option<LeafIndex>, StoreError> {
    let key = GuardKey(freeze_guard().as_bytes().to_vec());
    Ok(store.guards(&[key]).await?.into_iter().next().flatten())
}
