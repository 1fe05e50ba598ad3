//! Named points at which a test may kill the process, as a power cut would.
//!
//! With the feature `crash-points`, `TABELLION_CRASH_AT=<name>[:n]` aborts at the n-th visit of the point, and
//! `TABELLION_STOP_AT=<name>[:n]` stops the process there until it is sent SIGCONT. Without the feature nothing of this is
//! compiled in.

/// A moment at which a crash must lose nothing that was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The batch is ready; nothing of it is in the database.
    BeforeCommit,
    /// The database acknowledged the batch.
    AfterCommit,
    /// The batch is committed, the pin is not raised.
    BeforePin,
    /// The pin was read and may be raised; nothing is written yet.
    InPin,
    /// The pin is raised, nothing is signed.
    BeforeSign,
    /// The head is signed; nobody has seen it.
    AfterSign,
    /// The head is published; nobody was answered.
    BeforeAnswer,
    /// Everybody was answered; the signature is not in the database.
    BeforeKeep,
    /// The lease is held, the epoch not yet raised.
    BeforeTakeOver,
    /// The epoch is raised, nothing is checked.
    AfterTakeOver,
    /// The submission is about to become durable in the inbox.
    BeforeEnqueue,
}

#[cfg(feature = "crash-points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::Point;

    /// What a variable orders, and how often its point was visited.
    struct Order {
        variable: &'static str,
        read: OnceLock<Option<(String, u64)>>,
        visits: AtomicU64,
    }

    static CRASH: Order = Order::of("TABELLION_CRASH_AT");
    static STOP: Order = Order::of("TABELLION_STOP_AT");

    impl Order {
        const fn of(variable: &'static str) -> Self {
            Self { variable, read: OnceLock::new(), visits: AtomicU64::new(0) }
        }

        /// Whether this is the visit that was ordered.
        fn is_due(&self, point: Point) -> bool {
            let order = self.read.get_or_init(|| read(&std::env::var(self.variable).ok()?));
            let Some((name, nth)) = order else { return false };
            name == point.name() && self.visits.fetch_add(1, Ordering::Relaxed) + 1 == *nth
        }
    }

    impl Point {
        fn name(self) -> &'static str {
            match self {
                Self::BeforeCommit => "before-commit",
                Self::AfterCommit => "after-commit",
                Self::BeforePin => "before-pin",
                Self::InPin => "in-pin",
                Self::BeforeSign => "before-sign",
                Self::AfterSign => "after-sign",
                Self::BeforeAnswer => "before-answer",
                Self::BeforeKeep => "before-keep",
                Self::BeforeTakeOver => "before-take-over",
                Self::AfterTakeOver => "after-take-over",
                Self::BeforeEnqueue => "before-enqueue",
            }
        }

        /// Aborts or stops the process if this is the visit that was ordered.
        pub(crate) fn visit(self) {
            if CRASH.is_due(self) {
                std::process::abort();
            }
            if STOP.is_due(self) {
                let own = std::process::id().to_string();
                let stopped = std::process::Command::new("kill").args(["-STOP", &own]).status();
                assert!(stopped.is_ok_and(|status| status.success()), "the process cannot stop itself");
                // The signal may first reach another thread, and stops this one a moment later.
                std::thread::sleep(std::time::Duration::from_millis(500));
            }
        }
    }

    fn read(order: &str) -> Option<(String, u64)> {
        match order.split_once(':') {
            Some((name, nth)) => Some((name.to_owned(), nth.parse().ok()?)),
            None => Some((order.to_owned(), 1)),
        }
    }
}

#[cfg(not(feature = "crash-points"))]
impl Point {
    /// Nothing, in this build.
    pub(crate) fn visit(self) {}
}
