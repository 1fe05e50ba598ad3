//! Parallel signature checks on all processors.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use audit::Workers;

/// Minimum number of work items per thread.
const WORTH_A_THREAD: usize = 8;

/// A pool of as many threads as the machine has processors.
pub struct Threads(usize);

impl Threads {
    pub fn all() -> Self {
        Self(thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

impl Workers for Threads {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        let threads = self.0.min(count / WORTH_A_THREAD);
        if threads < 2 {
            return (0..count).for_each(work);
        }
        let next = AtomicUsize::new(0);
        let run = || {
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    n if n < count => work(n),
                    _ => return,
                }
            }
        };
        thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(run)));
            run();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once_however_many_there_are() {
        for count in [0, 1, 7, 16, 100] {
            for threads in [1, 2, 5] {
                let done: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                Threads(threads).each(count, &|n| {
                    done[n].fetch_add(1, Ordering::Relaxed);
                });
                assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1));
            }
        }
    }
}
