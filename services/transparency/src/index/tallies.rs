//! The counts that a process has cached, and how they go on.
//!
//! A request counts a page of entries itself, so that it is answered fast; the rest is counted in the background, for the
//! next request. A count begins anew `TALLY_AGE` after it was whole, because entries are erased meanwhile; the one before is
//! shown until the new one goes as far.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use registration::LookupKind;
use store::{Indexed, Order, StoreError};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::tally::ReceiptTally;
use super::{Index, term};
use crate::limits::{TALLIES, TALLIES_COUNTING, TALLY_AGE, TALLY_KEPT, TALLY_PAGE, TALLY_PAUSE};

/// The values that all counted entries have.
type Values = Vec<(LookupKind, String)>;

/// A place in the cache. Whoever counts has it locked for one page of entries.
type Slot = Arc<Mutex<CachedTally>>;

/// The cached counts of a process.
pub struct Tallies {
    slots: std::sync::Mutex<HashMap<Values, Slot>>,
    /// A permit for each count that goes on in the background.
    background: Arc<Semaphore>,
}

impl Default for Tallies {
    fn default() -> Self {
        Self { slots: Default::default(), background: Arc::new(Semaphore::new(TALLIES_COUNTING)) }
    }
}

struct CachedTally {
    begun: Instant,
    /// When it first covered all entries that were indexed.
    whole: Option<Instant>,
    form: u32,
    tally: Arc<ReceiptTally>,
    /// The count before it, until this one goes as far.
    before: Option<Arc<ReceiptTally>>,
    /// The task that counts in the background.
    task: Option<AbortHandle>,
}

impl Tallies {
    /// Returns the count of the entries with these values, as far as it went. Counts at most [`TALLY_PAGE`] entries
    /// before, and lets a task count the others.
    pub async fn of(
        &self,
        index: &Arc<Index>,
        values: &[(LookupKind, &str)],
    ) -> Result<Arc<ReceiptTally>, StoreError> {
        let values: Values = values.iter().map(|(kind, value)| (*kind, (*value).to_owned())).collect();
        let slot = self.slot(&values);
        let mut cached = slot.lock().await;
        if !cached.is_counting() {
            cached.count_page(index, &values).await?;
            if !cached.tally.complete
                && let Ok(permit) = self.background.clone().try_acquire_owned()
            {
                let task = tokio::spawn(count_on(Arc::downgrade(index), slot.clone(), values, permit));
                cached.task = Some(task.abort_handle());
            }
        }
        Ok(cached.furthest())
    }

    /// The cache slot of these values. Slots in use stay. Unused ones are removed if they are empty or older than
    /// [`TALLY_KEPT`], and the oldest ones above [`TALLIES`].
    fn slot(&self, values: &Values) -> Slot {
        let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, slot| {
            idle(slot).is_none_or(|cached| cached.tally.entries > 0 && cached.age() < TALLY_KEPT)
        });
        while all.len() > TALLIES {
            let idle = all.iter_mut().filter_map(|(values, slot)| Some((idle(slot)?.begun, values)));
            let idle: Vec<(Instant, &Values)> = idle.collect();
            if idle.len() <= TALLIES {
                break;
            }
            let Some(oldest) = idle.into_iter().min_by_key(|(begun, _)| *begun) else { break };
            let oldest = oldest.1.clone();
            all.remove(&oldest);
        }
        all.entry(values.clone()).or_insert_with(|| Arc::new(Mutex::new(CachedTally::begin(0)))).clone()
    }
}

/// The slot's content, if no request and no task uses it now.
fn idle(slot: &mut Slot) -> Option<&mut CachedTally> {
    Arc::get_mut(slot).map(Mutex::get_mut)
}

/// Counts the entries that are indexed now, page by page, for as long as the log is open.
async fn count_on(index: Weak<Index>, slot: Slot, values: Values, _permit: OwnedSemaphorePermit) {
    let Some(end) = index.upgrade().map(|index| index.indexed().to.get()) else { return };
    loop {
        let Some(index) = index.upgrade() else { return };
        let mut cached = slot.lock().await;
        let counted = cached.count_page(&index, &values).await;
        if let Err(error) = &counted {
            tracing::warn!(%error, "a count stopped before its end; the next request continues it");
        }
        let is_whole = cached.tally.complete || cached.tally.size >= end;
        if is_whole {
            cached.whole.get_or_insert_with(Instant::now);
        }
        if is_whole || counted.is_err() {
            cached.task = None;
            return;
        }
        drop((cached, index));
        sleep(TALLY_PAUSE).await;
    }
}

impl CachedTally {
    fn begin(form: u32) -> Self {
        Self { begun: Instant::now(), whole: None, form, tally: Arc::default(), before: None, task: None }
    }

    /// Counts the next entries, at most [`TALLY_PAGE`]. From the first one on, if the count cannot be continued.
    async fn count_page(&mut self, index: &Index, values: &Values) -> Result<(), StoreError> {
        let indexed = index.indexed();
        if !self.is_of(indexed) {
            let before = self.is_of_index(indexed).then(|| self.furthest());
            *self = Self { before, task: self.task.take(), ..Self::begin(indexed.form) };
        }
        if self.tally.complete && self.tally.size == indexed.to.get() {
            return Ok(());
        }
        let size = indexed.to.get();
        let terms = values.iter().map(|(kind, value)| term(*kind, value)).collect();
        let page = index.search(terms, self.tally.size..size, Order::OldestFirst, TALLY_PAGE).await?;
        let rows = index.values_of_all(&page.entries).await?;
        let tally = Arc::make_mut(&mut self.tally);
        for rows in &rows {
            tally.add(rows);
        }
        match page.more_after {
            Some(last) => (tally.size, tally.complete) = (last.get() + 1, false),
            None => {
                // If the index was dropped meanwhile, the count ends where the index does.
                let to = page.indexed.to.get();
                (tally.size, tally.complete) = (tally.size.max(size.min(to)), to >= size);
            }
        }
        if tally.complete {
            self.whole.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Returns the count that goes furthest: this one, or the one before it.
    fn furthest(&self) -> Arc<ReceiptTally> {
        self.before.as_ref().filter(|before| before.size > self.tally.size).unwrap_or(&self.tally).clone()
    }

    /// Returns `true` while a task counts in the background; `false` also after it panicked.
    fn is_counting(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// Returns `true` if the count is not to be discarded yet: it goes on, or was whole lately.
    fn is_fresh(&self) -> bool {
        self.is_counting() || self.age() < TALLY_AGE
    }

    /// Returns the time since the count was whole, or else since it began.
    fn age(&self) -> Duration {
        self.whole.unwrap_or(self.begun).elapsed()
    }

    /// Returns `true` if the count can be continued with this index.
    fn is_of(&self, indexed: Indexed) -> bool {
        self.is_fresh() && self.is_of_index(indexed)
    }

    /// Returns `true` if the index was not dropped since, as far as can be seen.
    fn is_of_index(&self, indexed: Indexed) -> bool {
        self.form == indexed.form && self.tally.size <= indexed.to.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Continues the n-th requested count.
    fn counted(tallies: &Tallies, n: usize) {
        let slot = tallies.slot(&vec![(LookupKind::Issuer, format!("{n:04}"))]);
        let mut tally = ReceiptTally::default();
        tally.count_receipt("pass");
        let begun = Instant::now() + Duration::from_millis(n as u64);
        *slot.try_lock().unwrap() = CachedTally { begun, tally: Arc::new(tally), ..CachedTally::begin(1) };
    }

    fn names(tallies: &Tallies) -> Vec<String> {
        let mut names: Vec<String> =
            tallies.slots.lock().unwrap().keys().map(|values| values[0].1.clone()).collect();
        names.sort();
        names
    }

    #[test]
    fn names_that_nobody_has_push_no_count_out() {
        let tallies = Tallies::default();
        for n in 0..TALLIES {
            counted(&tallies, n);
        }
        for n in 0..2 * TALLIES {
            drop(tallies.slot(&vec![(LookupKind::Issuer, format!("junk {n}"))]));
        }
        assert_eq!(names(&tallies).len(), TALLIES + 1, "all that count, and the last one of the junk");
    }

    #[tokio::test]
    async fn a_count_whose_task_panicked_is_not_in_the_background_any_more() {
        let task = tokio::spawn(async { panic!("as if in reading") });
        let cached = CachedTally { task: Some(task.abort_handle()), ..CachedTally::begin(1) };
        assert!(cached.is_counting());
        assert!(task.await.is_err());
        assert!(!cached.is_counting(), "a request counts again");
    }

    #[test]
    fn a_count_that_begins_anew_shows_the_one_before_until_it_goes_as_far() {
        let of_size = |size| {
            let mut tally = ReceiptTally::default();
            tally.size = size;
            Arc::new(tally)
        };
        let mut cached = CachedTally { before: Some(of_size(7)), tally: of_size(6), ..CachedTally::begin(1) };
        assert_eq!(cached.furthest().size, 7);
        cached.tally = of_size(8);
        assert_eq!(cached.furthest().size, 8);
    }

    #[test]
    fn the_oldest_count_that_nobody_goes_on_with_makes_room() {
        let tallies = Tallies::default();
        for n in 0..TALLIES + 2 {
            counted(&tallies, n);
        }
        let busy = tallies.slot(&vec![(LookupKind::Issuer, "0000".into())]);
        counted(&tallies, TALLIES + 2);
        counted(&tallies, TALLIES + 3);
        let left = names(&tallies);
        assert!(left.contains(&"0000".into()), "who counts keeps what it counts");
        assert!(!left.contains(&"0001".into()), "the oldest of the others went");
        assert!(left.contains(&format!("{:04}", TALLIES + 3)));
        drop(busy);
    }
}
