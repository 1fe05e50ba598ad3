//! Signals that stop a daemon or make it reload its configuration.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::limits::LOCAL_READ_TIME;

/// Waits for SIGTERM or SIGINT. From the call on these signals no longer end the process, also before the future is
/// polled. Nor does SIGXFSZ: a write beyond the limit of a file's size (`ulimit -f`) fails like one on a full disk, and
/// reading goes on.
///
/// # Panics
/// Panics outside of a tokio runtime.
pub fn stop_signal() -> impl Future<Output = ()> {
    async fn wait(signals: io::Result<Signal>) {
        match signals {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(error) => {
                tracing::error!(%error, "a signal cannot be waited for");
                std::future::pending().await
            }
        }
    }
    // A handler stays when what receives the signal is dropped.
    if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "a write beyond the limit of a file's size would end this process");
    }
    let (terminate, interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async {
        tokio::select! {
            () = wait(terminate) => {}
            () = wait(interrupt) => {}
        }
    }
}

/// Waits until a local client has read its last messages; after `stop`, at most [`LOCAL_READ_TIME`] longer. Returns whether
/// it has.
pub async fn all_read<T>(read: impl Future<Output = T>, stop: impl Future<Output = ()>) -> bool {
    let unread = async {
        stop.await;
        tokio::time::sleep(LOCAL_READ_TIME).await;
    };
    tokio::select! {
        _ = read => true,
        () = unread => false,
    }
}

/// Returns what is notified at each SIGHUP. From the call on SIGHUP no longer ends the process.
///
/// # Errors
/// If the signal cannot be registered.
///
/// # Panics
/// Panics outside of a tokio runtime.
pub fn hangups() -> io::Result<Arc<Notify>> {
    let mut signals = signal(SignalKind::hangup())?;
    let hangup = Arc::new(Notify::new());
    let notified = hangup.clone();
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            notified.notify_one();
        }
    });
    Ok(hangup)
}
