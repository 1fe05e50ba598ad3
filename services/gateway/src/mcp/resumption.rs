//! Counts of how often each legacy session resumed a stream. Answers that are still read after their client
//! disconnected wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

/// The count of one session's resumptions.
pub type ResumptionCount = Arc<watch::Sender<u64>>;

/// The counts of sessions with requests in flight; other sessions need none.
#[derive(Default)]
pub struct Resumptions(Mutex<ResumptionTable>);

#[derive(Default)]
struct ResumptionTable {
    counts: HashMap<(String, String), Weak<watch::Sender<u64>>>,
    /// The number of counts at which unused ones are removed next.
    sweep_at: usize,
}

impl Resumptions {
    /// The count of a session on a route. Without a session nothing can be resumed, and the count stays 0.
    pub fn of(&self, route: &str, session: Option<&str>) -> ResumptionCount {
        let Some(session) = session else { return ResumptionCount::default() };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (route.to_owned(), session.to_owned());
        if let Some(count) = sessions.counts.get(&key).and_then(Weak::upgrade) {
            return count;
        }
        sessions.sweep();
        let count = ResumptionCount::default();
        sessions.counts.insert(key, Arc::downgrade(&count));
        count
    }

    /// Counts a resumption of the session. Returns true if a request in flight may be waiting for it.
    pub fn resumed(&self, route: &str, session: &str) -> bool {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = sessions.counts.get(&(route.to_owned(), session.to_owned())).and_then(Weak::upgrade);
        drop(sessions);
        count.map(|count| count.send_modify(|times| *times += 1)).is_some()
    }
}

impl ResumptionTable {
    fn sweep(&mut self) {
        if self.counts.len() >= self.sweep_at {
            self.counts.retain(|_, count| count.strong_count() > 0);
            self.sweep_at = (self.counts.len() * 2).max(64);
        }
    }
}
