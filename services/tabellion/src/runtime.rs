//! The tokio runtimes of commands, with timers, sockets and signals.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// Creates a runtime with one worker thread for each processor, for services and for commands that use a database.
pub fn multi_threaded() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// Creates a runtime with this number of worker threads.
pub fn with_workers(threads: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// Creates a runtime without worker threads, for commands that do one thing after the other.
pub fn single_threaded() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
