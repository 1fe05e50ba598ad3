//! How long HTTP requests take, by the HTTP conventions of OpenTelemetry in Prometheus's spelling.
//!
//! The labels are the method, the pattern of the route and the status, so that clients cannot make new series. A request is
//! answered when its response begins; the time of a stream is not part of it.
//!
//! Not here: metrics of what the requests ask for, which each daemon has of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Method, StatusCode};
use prometheus::{Error, HistogramVec, IntGauge};

use crate::metrics::MetricRegistry;
use crate::request_span::known;

/// Histogram buckets in seconds, from a response out of memory to a request that timed out.
pub const SECONDS: &[f64] =
    &[0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// The metrics of a daemon's HTTP requests.
#[derive(Debug)]
pub struct HttpMetrics {
    durations: HistogramVec,
    active: IntGauge,
}

impl HttpMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// If the daemon has metrics of the same names.
    pub fn new(registry: &MetricRegistry) -> Result<Self, Error> {
        Ok(Self {
            durations: registry.histograms(
                "http_server_request_duration_seconds",
                "Time to answer a request",
                SECONDS,
                &["http_request_method", "http_route", "http_response_status_code"],
            )?,
            active: registry.gauge("http_server_active_requests", "Requests being answered")?,
        })
    }

    /// Counts a request as active while the guard lives.
    pub fn in_flight(&self) -> InFlight {
        self.active.inc();
        InFlight(self.active.clone())
    }

    /// Records a request after its response. `route` is the pattern that the path matches; empty if it matches none.
    pub fn answered(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let labels = [known(method), route, status.as_str()];
        self.durations.with_label_values(&labels).observe(took.as_secs_f64());
    }
}

/// Guard of an active request.
pub struct InFlight(IntGauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Middleware: serves a request, and records how long it took.
pub async fn measured(State(metrics): State<Arc<HttpMetrics>>, request: Request, next: Next) -> Response {
    let (method, begun) = (request.method().clone(), Instant::now());
    let route: Option<MatchedPath> = request.extensions().get().cloned();
    let in_flight = metrics.in_flight();
    let response = next.run(request).await;
    drop(in_flight);
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    metrics.answered(&method, route, response.status(), begun.elapsed());
    response
}
