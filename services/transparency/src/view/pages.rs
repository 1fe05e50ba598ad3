//! Pages of entries.

use std::ops::Range;

use merkle::LeafIndex;
use store::{Entry, Order, StoreError};

use crate::limits::{ENTRIES_FIRST, ENTRIES_MOST};
use crate::log::entry_reader::{EntryReader, next_chunk, statement_bytes};
use crate::log::heads::Heads;
use crate::log::state::Log;
use crate::view::entry_view::EntryView;

/// Default number of entries on a page.
pub const DEFAULT_PAGE: usize = 100;

/// Bytes of statements read for a page, after which it ends early.
const PAGE_BYTES: usize = 32 << 20;

/// Reads a page in chunks, so that few large statements are in memory together. Returns `true` if there is more after
/// it, in the given order.
pub async fn read(
    log: &Log,
    within: Range<u64>,
    order: Order,
    limit: usize,
) -> Result<(Vec<EntryView>, bool), StoreError> {
    let mut left = within.start..log.readable_size().await?.get().min(within.end);
    let mut views = Vec::with_capacity(limit.min(ENTRIES_MOST));
    let (mut chunk, mut bytes) = (ENTRIES_FIRST, 0);
    while views.len() < limit && !left.is_empty() && bytes < PAGE_BYTES {
        let requested = (chunk.min(limit - views.len()) as u64).min(left.end - left.start);
        let entries = take(log, &mut left, order, requested).await?;
        views.extend(entries.iter().map(EntryView::of));
        if (entries.len() as u64) < requested {
            left = 0..0;
        }
        bytes += entries.iter().map(statement_bytes).sum::<usize>();
        chunk = next_chunk(&entries);
    }
    date(log, &mut views).await?;
    Ok((views, !left.is_empty()))
}

/// Reads the next `count` entries of a range, in this order, and removes them from the range.
async fn take(log: &Log, left: &mut Range<u64>, order: Order, count: u64) -> Result<Vec<Entry>, StoreError> {
    let from = match order {
        Order::OldestFirst => left.start,
        Order::NewestFirst => left.end - count,
    };
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let mut entries = log.store.entries(LeafIndex::new(from), limit).await?;
    match order {
        Order::OldestFirst => left.start += count,
        Order::NewestFirst => {
            left.end = from;
            entries.reverse();
        }
    }
    Ok(entries)
}

/// Reads these entries, in their order, until [`PAGE_BYTES`] are read. Returns their views, with their commit times, and for how
/// many of the leaves that is.
pub async fn read_leaves(log: &Log, leaves: &[LeafIndex]) -> Result<(Vec<EntryView>, usize), StoreError> {
    let (mut views, mut bytes) = (Vec::with_capacity(leaves.len()), 0);
    let mut reader = EntryReader::of(&*log.store, leaves);
    while bytes <= PAGE_BYTES
        && let Some(entry) = reader.next().await?
    {
        bytes += statement_bytes(&entry);
        views.push(EntryView::of(&entry));
    }
    let taken = leaves.len() - reader.left();
    date(log, &mut views).await?;
    Ok((views, taken))
}

/// The views of these entries, in their order, with their commit times.
pub async fn views(log: &Log, leaves: &[LeafIndex]) -> Result<Vec<EntryView>, StoreError> {
    let mut views = Vec::with_capacity(leaves.len());
    let mut reader = EntryReader::of(&*log.store, leaves);
    while let Some(entry) = reader.next().await? {
        views.push(EntryView::of(&entry));
    }
    date(log, &mut views).await?;
    Ok(views)
}

/// Adds time and tree size of its commit to each entry.
async fn date(log: &Log, views: &mut [EntryView]) -> Result<(), StoreError> {
    let mut by_leaf: Vec<&mut EntryView> = views.iter_mut().collect();
    by_leaf.sort_by_key(|view| view.index);
    let mut heads = Heads::of(&*log.store);
    for view in by_leaf {
        let head = heads.first_with(LeafIndex::new(view.index)).await?;
        view.committed_with(head);
    }
    Ok(())
}
