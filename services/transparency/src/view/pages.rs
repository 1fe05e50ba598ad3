//! Pages of entries.

use std::ops::Range;

use merkle::LeafIndex;
use store::{Entry, Order, StoreError};

use crate::log::heads::Heads;
use crate::log::state::Log;
use crate::view::entry_view::EntryView;

/// Default number of entries on a page.
pub const DEFAULT_PAGE: usize = 100;

/// Bytes of statements read from the database at one time; bounds the memory of a page.
const CHUNK_BYTES: usize = 8 << 20;

/// Bytes of statements read for a page, after which it ends early.
const PAGE_BYTES: usize = 32 << 20;

/// Entries read at one time before their size is known.
const FIRST_CHUNK: usize = 8;

/// Largest number of entries read at one time.
const LARGEST_CHUNK: usize = 256;

/// Reads a page in chunks, so that few large statements are in memory together. Returns `true` if there is more after
/// it, in the given order.
pub async fn read(
    log: &Log,
    within: Range<u64>,
    order: Order,
    limit: usize,
) -> Result<(Vec<EntryView>, bool), StoreError> {
    let mut left = within.start..log.readable_size().await?.get().min(within.end);
    let mut views = Vec::with_capacity(limit.min(LARGEST_CHUNK));
    let (mut chunk, mut bytes) = (FIRST_CHUNK, 0);
    while views.len() < limit && !left.is_empty() && bytes < PAGE_BYTES {
        let requested = (chunk.min(limit - views.len()) as u64).min(left.end - left.start);
        let entries = take(log, &mut left, order, requested).await?;
        let taken: usize =
            entries.iter().filter_map(|entry| entry.statement.as_ref()).map(bytes::Bytes::len).sum();
        views.extend(entries.iter().map(EntryView::of));
        if (entries.len() as u64) < requested {
            left = 0..0;
        }
        bytes += taken;
        chunk = (CHUNK_BYTES * entries.len() / taken.max(1)).clamp(1, LARGEST_CHUNK);
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
    let (mut views, mut bytes, mut taken) = (Vec::with_capacity(leaves.len()), 0, 0);
    for leaf in leaves {
        if bytes > PAGE_BYTES {
            break;
        }
        if let Some(entry) = log.store.entry(*leaf).await? {
            bytes += entry.statement.as_ref().map_or(0, bytes::Bytes::len);
            views.push(EntryView::of(&entry));
        }
        taken += 1;
    }
    date(log, &mut views).await?;
    Ok((views, taken))
}

/// The views of these entries, in their order, with their commit times.
pub async fn views(log: &Log, leaves: &[LeafIndex]) -> Result<Vec<EntryView>, StoreError> {
    let mut views = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        views.extend(log.store.entry(*leaf).await?.as_ref().map(EntryView::of));
    }
    date(log, &mut views).await?;
    Ok(views)
}

/// Adds its commit time to each entry.
async fn date(log: &Log, views: &mut [EntryView]) -> Result<(), StoreError> {
    let mut by_leaf: Vec<&mut EntryView> = views.iter_mut().collect();
    by_leaf.sort_by_key(|view| view.index);
    let mut heads = Heads::of(&*log.store);
    for view in by_leaf {
        let head = heads.first_with(LeafIndex::new(view.index)).await?;
        view.committed_at(head.map(|head| head.at));
    }
    Ok(())
}
