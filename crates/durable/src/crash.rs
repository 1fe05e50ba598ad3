//! Named points at which a test may abort the process, as a power cut would, or stop it.
//!
//! With the feature `crash-points`, `TABELLION_CRASH_AT=<name>[:n]` aborts at the n-th visit of the point, and
//! `TABELLION_STOP_AT=<name>[:n]` stops the process there until it receives SIGCONT. Without the feature a visit
//! compiles to nothing.

#[cfg(feature = "crash-points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Point and visit that an environment variable names, with the number of visits so far.
    struct CrashOrder {
        variable: &'static str,
        read: OnceLock<Option<(String, u64)>>,
        visits: AtomicU64,
    }

    static CRASH: CrashOrder = CrashOrder::of("TABELLION_CRASH_AT");
    static STOP: CrashOrder = CrashOrder::of("TABELLION_STOP_AT");

    impl CrashOrder {
        const fn of(variable: &'static str) -> Self {
            Self { variable, read: OnceLock::new(), visits: AtomicU64::new(0) }
        }

        /// Returns whether this is the visit that the variable names.
        fn is_due(&self, point: &str) -> bool {
            let order = self.read.get_or_init(|| parse(&std::env::var(self.variable).ok()?));
            let Some((name, nth)) = order else { return false };
            name == point && self.visits.fetch_add(1, Ordering::Relaxed) + 1 == *nth
        }
    }

    /// Aborts or stops the process if `TABELLION_CRASH_AT` or `TABELLION_STOP_AT` names this visit of the point.
    pub fn visit(point: &str) {
        if CRASH.is_due(point) {
            std::process::abort();
        }
        if STOP.is_due(point) {
            let own = std::process::id().to_string();
            let stopped = std::process::Command::new("kill").args(["-STOP", &own]).status();
            assert!(stopped.is_ok_and(|status| status.success()), "the process cannot stop itself");
            // The signal may first reach another thread, and stops this one a moment later.
            std::thread::sleep(std::time::Duration::from_millis(500));
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

/// Does nothing without the feature `crash-points`.
#[cfg(not(feature = "crash-points"))]
pub fn visit(_point: &str) {}
