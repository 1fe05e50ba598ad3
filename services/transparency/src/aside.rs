//! Long computations, where no other task waits for them.
//!
//! A worker that decides about a large statement answers nobody else meanwhile, neither doors nor sequencer: so it
//! hands its other tasks over first. What is small is quicker done in its place.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::limits::INLINE_BYTES;

/// Runs what takes time in proportion to so many bytes.
pub fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    match bytes > INLINE_BYTES && others_can_go_on() {
        true => block_in_place(work),
        false => work(),
    }
}

/// A runtime of one thread has nobody to hand its tasks to.
fn others_can_go_on() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Computes until another task of the same worker has run; answers whether it has.
    async fn waits_for_another(bytes: usize) -> bool {
        let (done, others) = mpsc::channel();
        tokio::spawn(async move {
            tokio::spawn(async move { done.send(()).ok() });
            aside(bytes, || others.recv_timeout(Duration::from_secs(2)).is_ok())
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
        assert_eq!(aside(INLINE_BYTES + 1, || 7), 7);
    }

    #[test]
    fn outside_of_a_runtime_too() {
        assert_eq!(aside(INLINE_BYTES + 1, || 7), 7);
    }
}
