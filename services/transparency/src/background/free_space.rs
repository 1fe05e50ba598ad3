//! The periodic measurement of free space.

use std::sync::Arc;

use crate::limits::SPACE_CHECK;
use crate::log::state::Log;

/// Measures every [`SPACE_CHECK`] until the service stops.
pub async fn keep_measuring(log: Arc<Log>) {
    let mut every = tokio::time::interval(SPACE_CHECK);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let log = Arc::clone(&log);
        // An error means that the measurement panicked: the last result stays.
        let _ = tokio::task::spawn_blocking(move || log.space.measure(&log.metrics)).await;
    }
}
