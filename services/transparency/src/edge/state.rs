//! The state that the middleware and the readers of requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use serving::problem::ErrorDocumentation;
use tokio::sync::Semaphore;

use crate::config::AccessConfig;
use crate::edge::body_budget::BodyBudget;
use crate::edge::rate_limit::AccessControl;
use crate::limits::{BUNDLES_AT_ONCE, FORM_FRAME_BYTES, Limits};
use crate::metrics::Metrics;

/// The state that the layers share.
pub struct EdgeState {
    /// The bounds in force.
    pub limits: ArcSwap<Limits>,
    /// The rate limiter and the table of tokens.
    pub access: Arc<AccessControl>,
    /// The memory budget of request bodies.
    pub bodies: BodyBudget,
    /// A permit for each evidence bundle that is packed.
    pub bundles: Semaphore,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// Where the codes of problems are documented.
    pub error_documentation: ErrorDocumentation,
    /// The origin of the URL that clients use, as browsers write it; `None` if it is not known.
    pub own_origin: Option<String>,
    /// The path of the URL that clients use ([`path_of`]).
    pub public_path: String,
    /// Size of the largest statement that the policy in force admits, in bytes. A larger one is not read.
    pub largest_admitted: Arc<AtomicUsize>,
}

impl EdgeState {
    /// Creates the shared state with these bounds. Codes of problems are documented at the usual address.
    pub fn new(limits: &Limits, access: &AccessConfig, metrics: Arc<Metrics>) -> Self {
        Self {
            access: Arc::new(AccessControl::new(access, limits)),
            bodies: BodyBudget::new(limits.bodies_in_flight_bytes, largest_body(limits), &metrics.body_bytes),
            bundles: Semaphore::new(BUNDLES_AT_ONCE),
            limits: ArcSwap::from_pointee(limits.clone()),
            metrics,
            error_documentation: ErrorDocumentation::default(),
            own_origin: None,
            public_path: String::new(),
            largest_admitted: Arc::new(AtomicUsize::new(usize::MAX)),
        }
    }

    /// The largest statement or detached payload that is read, in bytes.
    pub fn statement_bytes(&self) -> usize {
        let admitted = self.largest_admitted.load(Ordering::Relaxed);
        self.limits.load().statement_bytes.min(admitted).min(self.bodies.largest())
    }

    /// The largest form with a statement and its payload that is read, in bytes.
    pub fn form_bytes(&self) -> usize {
        form_of(self.statement_bytes()).min(self.bodies.largest())
    }

    /// The largest batch that is read, in bytes.
    pub fn batch_bytes(&self) -> usize {
        self.limits.load().batch_bytes.min(self.bodies.largest())
    }

    /// Applies new bounds and access settings to later requests. The size of the budget for bodies does not change, but a
    /// client's share of it has room for the largest body that the new bounds admit.
    pub fn reload(&self, limits: &Limits, access: &AccessConfig) {
        self.limits.store(Arc::new(limits.clone()));
        self.bodies.fit(largest_body(limits));
        self.access.reload(access, limits);
    }
}

/// Returns the origin of a URL as browsers write it: in lower case, without the default port of its scheme.
pub fn origin_of(url: &str) -> Option<String> {
    let url: http::Uri = url.parse().ok()?;
    let (scheme, host) = (url.scheme_str()?, url.host()?);
    let is_default = |port: &u16| matches!((scheme, *port), ("https", 443) | ("http", 80));
    let port = url.port_u16().filter(|port| !is_default(port));
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{scheme}://{host}{port}").to_ascii_lowercase())
}

/// Returns the path of a URL without a slash at its end: empty if the URL names a host alone.
pub fn path_of(url: &str) -> String {
    let url = url.parse::<http::Uri>().unwrap_or_default();
    url.path().trim_end_matches('/').to_owned()
}

/// Size of the largest body that these bounds admit, in bytes.
fn largest_body(limits: &Limits) -> usize {
    form_of(limits.statement_bytes).max(limits.batch_bytes)
}

/// Size of a form whose statement and payload have `part` bytes each.
fn form_of(part: usize) -> usize {
    2 * part + FORM_FRAME_BYTES
}
