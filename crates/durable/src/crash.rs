//! Named points at which a test may abort the process, as a power cut would.
//!
//! With the feature `crash-points`, `TABELLION_CRASH_AT=<name>[:n]` aborts at the n-th visit of the point. Without the
//! feature a visit compiles to nothing.

#[cfg(feature = "crash-points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static ORDER: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static VISITS: AtomicU64 = AtomicU64::new(0);

    /// Aborts the process if `TABELLION_CRASH_AT` names this visit of the point.
    pub fn visit(point: &str) {
        let order = ORDER.get_or_init(|| parse(&std::env::var("TABELLION_CRASH_AT").ok()?));
        if let Some((name, nth)) = order
            && name == point
            && VISITS.fetch_add(1, Ordering::Relaxed) + 1 == *nth
        {
            std::process::abort();
        }
    }

    fn parse(order: &str) -> Option<(String, u64)> {
        match order.split_once(':') {
            Some((name, nth)) => Some((name.to_owned(), nth.parse().ok()?)),
            None => Some((order.to_owned(), 1)),
        }
    }
}

#[cfg(feature = "crash-points")]
pub use armed::visit;

/// Does nothing in this build.
#[cfg(not(feature = "crash-points"))]
pub fn visit(_point: &str) {}
