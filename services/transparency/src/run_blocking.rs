//! Long computations on a worker thread, without blocking its other tasks.
//!
//! A worker that decides about a large statement would block its other tasks, the rate limiter's and the sequencer's
//! among them; so it hands them over first (`block_in_place`). Small computations run in place, which is faster.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::limits::INLINE_BYTES;

/// Runs work whose duration is proportional to `bytes`; above [`INLINE_BYTES`], the worker's other tasks move first.
pub fn run_blocking<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    match bytes > INLINE_BYTES && others_can_go_on() {
        true => block_in_place(work),
        false => work(),
    }
}

/// Returns `false` on a single-threaded runtime, where `block_in_place` panics, and outside of a runtime.
fn others_can_go_on() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Computes until another task of the same worker has run; returns whether it has.
    async fn waits_for_another(bytes: usize) -> bool {
        let (done, others) = mpsc::channel();
        tokio::spawn(async move {
            tokio::spawn(async move { done.send(()).ok() });
            run_blocking(bytes, || others.recv_timeout(Duration::from_secs(2)).is_ok())
        })
        .await
        .unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_go_on_beside_a_large_computation() {
        assert!(waits_for_another(INLINE_BYTES + 1).await);
        assert!(!waits_for_another(INLINE_BYTES).await, "what is small is done in its place");
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_computes_in_its_place() {
        assert_eq!(run_blocking(INLINE_BYTES + 1, || 7), 7);
    }

    #[test]
    fn outside_of_a_runtime_too() {
        assert_eq!(run_blocking(INLINE_BYTES + 1, || 7), 7);
    }
}
