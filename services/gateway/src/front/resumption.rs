//! How often each legacy session came back to resume a stream: answers that are read on without a reader listen for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

/// The count of one session.
pub type Count = Arc<watch::Sender<u64>>;

/// The counts of sessions of which requests are under way; the others need none.
#[derive(Default)]
pub struct Resumptions(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    counts: HashMap<(String, String), Weak<watch::Sender<u64>>>,
    /// At how many the dead ones are thrown out next.
    sweep_at: usize,
}

impl Resumptions {
    /// The count of a session of a route. Without a session nothing can be resumed.
    pub fn of(&self, route: &str, session: Option<&str>) -> Count {
        let Some(session) = session else { return Count::default() };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (route.to_owned(), session.to_owned());
        if let Some(count) = sessions.counts.get(&key).and_then(Weak::upgrade) {
            return count;
        }
        sessions.sweep();
        let count = Count::default();
        sessions.counts.insert(key, Arc::downgrade(&count));
        count
    }

    /// The session came back. True if somebody may have listened.
    pub fn resumed(&self, route: &str, session: &str) -> bool {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = sessions.counts.get(&(route.to_owned(), session.to_owned())).and_then(Weak::upgrade);
        drop(sessions);
        count.map(|count| count.send_modify(|times| *times += 1)).is_some()
    }
}

impl Sessions {
    fn sweep(&mut self) {
        if self.counts.len() >= self.sweep_at {
            self.counts.retain(|_, count| count.strong_count() > 0);
            self.sweep_at = (self.counts.len() * 2).max(64);
        }
    }
}
