//! The runtime of the sequencer: a thread of its own.
//!
//! For each batch, the sequencer waits several times for the database and the disk. In the runtime of the requests, its
//! task would continue after the signature checks that were due before it, and its sockets would be looked at between
//! two rounds of them; a batch would take several times as long as database and disk need. Only statements from the inbox
//! are decided on this thread, if the policy has changed since they were accepted.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// Runtime with one worker thread. Dropping it ends its tasks.
pub struct SequencerRuntime(Option<Runtime>);

impl SequencerRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system's error if it starts no thread.
    pub fn start() -> io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("sequencer").enable_all().build();
        runtime.map(|runtime| Self(Some(runtime)))
    }

    /// Runs a future on the thread, as well as the tasks that it spawns. Returns `None` if it panics.
    pub async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        self.0.as_ref()?.spawn(future).await.ok()
    }
}

impl Drop for SequencerRuntime {
    /// Does not wait, as async code may not.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
