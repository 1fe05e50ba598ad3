//! Pages of entries.

use std::ops::Range;

use merkle::LeafIndex;
use store::StoreError;

use crate::log::state::Log;
use crate::view::entry_view::EntryView;

/// Default number of entries on a page.
pub const DEFAULT_PAGE: usize = 100;

/// Bytes of statements read from the database at one time; bounds the memory of a page.
const CHUNK_BYTES: usize = 8 << 20;

/// Bytes of statements read for a page, after which it ends early.
pub const PAGE_BYTES: usize = 32 << 20;

/// Entries read at one time before their size is known.
const FIRST_CHUNK: usize = 8;

/// Largest number of entries read at one time.
const LARGEST_CHUNK: usize = 256;

/// Reads a page in chunks, so that few large statements are in memory together. Returns `true` if there is more after
/// it.
pub async fn read(log: &Log, within: Range<u64>, limit: usize) -> Result<(Vec<EntryView>, bool), StoreError> {
    let size = log.readable_size().await?.get().min(within.end);
    let mut views = Vec::with_capacity(limit.min(LARGEST_CHUNK));
    let (mut next, mut chunk, mut bytes) = (within.start, FIRST_CHUNK, 0);
    while views.len() < limit && next < size && bytes < PAGE_BYTES {
        let left = usize::try_from(size - next).unwrap_or(usize::MAX);
        let requested = chunk.min(limit - views.len()).min(left);
        let entries = log.store.entries(LeafIndex::new(next), requested).await?;
        let taken: usize =
            entries.iter().filter_map(|entry| entry.statement.as_ref()).map(bytes::Bytes::len).sum();
        views.extend(entries.iter().map(|entry| EntryView::of(entry, None)));
        if entries.len() < requested {
            return Ok((views, false));
        }
        next += entries.len() as u64;
        bytes += taken;
        chunk = (CHUNK_BYTES * entries.len() / taken.max(1)).clamp(1, LARGEST_CHUNK);
    }
    Ok((views, next < size))
}

/// The views of these entries, in their order.
pub async fn views(log: &Log, leaves: &[LeafIndex]) -> Result<Vec<EntryView>, StoreError> {
    let mut views = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        views.extend(log.store.entry(*leaf).await?.map(|entry| EntryView::of(&entry, None)));
    }
    Ok(views)
}
