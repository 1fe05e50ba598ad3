//! `/ui/status`: the state of the service. Why it is not ready, if so, is for its operator (`/readyz`).

use axum::extract::State;
use axum::response::Response;
use explorer::{LatencyRow, StatusPage};

use super::page::{frame, page, state};
use crate::metrics::latency::StageLatency;
use crate::routes::app::App;
use crate::time::rfc3339;

/// The page of the service's state.
pub async fn status(State(app): State<App>) -> Response {
    let (log, metrics) = (&app.log, &app.log.metrics);
    let checked = u64::try_from(metrics.fsck.last_success.get()).ok().filter(|at| *at > 0);
    let status = StatusPage {
        state: state(log).to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        queued: log.sequencer.queue().0 as u64,
        unindexed: metrics.index.lag.get().max(0).cast_unsigned(),
        checked: checked.and_then(rfc3339),
        latencies: metrics.stage_latencies().into_iter().map(row).collect(),
    };
    page(status.html(&frame(log)))
}

fn row(latency: StageLatency) -> LatencyRow {
    let StageLatency { stage, count, median, p99 } = latency;
    LatencyRow { stage: stage.to_owned(), count, median, p99 }
}
