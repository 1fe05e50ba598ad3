//! CPU-bound work: on the caller's thread, or on as many threads as the caller provides.

use std::sync::{Mutex, PoisonError};

/// Runs independent pieces of CPU-bound work.
///
/// Implementations may run them in any order and on any threads. This crate starts no thread itself.
pub trait Workers: Send + Sync {
    /// Calls `work` once with each number below `count`, and returns after all calls have returned.
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync));
}

/// [`Workers`] that run one piece of work after the other on the caller's thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Workers for Alone {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(work);
    }
}

/// Applies `work` to each item and returns the results in the order of the items.
pub(crate) fn map<'i, I: Sync, T: Send>(
    workers: &dyn Workers,
    items: &'i [I],
    work: impl Fn(&'i I) -> T + Sync,
) -> Vec<T> {
    let slots: Vec<Mutex<Option<T>>> = items.iter().map(|_| Mutex::new(None)).collect();
    workers.each(items.len(), &|at| {
        let result = work(&items[at]);
        *slots[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    let taken = slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    // Items that the workers left out are computed here, so that there is always one result per item.
    taken.zip(items).map(|(result, item)| result.unwrap_or_else(|| work(item))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lazy;

    impl Workers for Lazy {
        fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
            (0..count).rev().filter(|n| n % 2 == 0).for_each(work);
        }
    }

    #[test]
    fn every_item_gets_its_result_in_order_whatever_the_workers_do() {
        let items: Vec<u64> = (0..9).collect();
        let doubled: Vec<u64> = items.iter().map(|n| n * 2).collect();
        assert_eq!(map(&Alone, &items, |n| n * 2), doubled);
        assert_eq!(map(&Lazy, &items, |n| n * 2), doubled);
    }
}
