//! Answers that come another way: a legacy server may end the stream of a call before its answer, and the client fetches
//! the rest with a GET that resumes it. An answer may also come again, when a client resumes a stream that broke.
//!
//! What an admitted call owes is kept here in the meantime, and paid when its answer comes; or `unknown`, when it does not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission::principal::{Caller, Era};
use bytes::Bytes;
use moka::sync::Cache;

use super::additions::Additions;
use super::ending::Ending;
use crate::frame::RawId;
use crate::frame::reply::Reply;
use crate::limits::{MAX_OWED_ANSWERS, MAX_REMEMBERED_ANSWERS};
use crate::relay::Passing;

/// A route, an MCP session there, and an id in it.
type Name = (Arc<str>, String, RawId);

/// Calls without an answer, and answers that may come again.
#[derive(Clone)]
pub struct Unanswered {
    owed: Arc<Mutex<HashMap<Name, Owed>>>,
    given: Cache<Name, Arc<Additions>>,
    patience: Duration,
}

/// What is owed, and which of all that ever was under its name.
struct Owed {
    ending: Ending,
    /// Gone with what is owed: whoever waits to forget it forgets no other.
    alive: Arc<()>,
}

impl Unanswered {
    /// Nothing is owed yet; what will be is waited for so long.
    pub fn new(patience: Duration) -> Self {
        let given = Cache::builder().max_capacity(MAX_REMEMBERED_ANSWERS).time_to_live(patience);
        Self { owed: Arc::default(), given: given.build(), patience }
    }

    /// Keeps what a call owes, for some time.
    pub fn keep(&self, ending: Ending) {
        let Some(name) = name(&ending.route, &ending.caller, &ending.id) else { return };
        let alive = Arc::new(());
        let this = Arc::downgrade(&alive);
        let mut all = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_OWED_ANSWERS {
            return;
        }
        all.insert(name.clone(), Owed { ending, alive });
        drop(all);
        let (owed, patience) = (self.owed.clone(), self.patience);
        tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            let mut all = owed.lock().unwrap_or_else(PoisonError::into_inner);
            if all.get(&name).is_some_and(|owed| std::ptr::eq(Arc::as_ptr(&owed.alive), this.as_ptr())) {
                all.remove(&name);
            }
        });
    }

    /// Remembers what was added to an answer, should it come again.
    pub fn remember(&self, route: &Arc<str>, caller: &Caller, id: &RawId, additions: Additions) {
        if let Some(name) = name(route, caller, id) {
            self.given.insert(name, Arc::new(additions));
        }
    }

    /// A response came on a GET stream.
    pub async fn came(&self, route: &Arc<str>, caller: &Caller, message: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(message) else { return Passing::Untouched };
        let Some(name) = reply.id().and_then(|id| name(route, caller, id)) else {
            return Passing::Untouched;
        };
        let owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        match (owed, self.given.get(&name)) {
            (Some(owed), _) => owed.ending.end(&reply).await,
            (None, Some(additions)) if !reply.is_error() => {
                Passing::Replaced(reply.with_meta(&additions.members(), Additions::dropped()))
            }
            (None, _) => Passing::Untouched,
        }
    }

    /// The session is gone: nothing comes any more.
    pub fn gone(&self, route: &Arc<str>, caller: &Caller) {
        let Some(session) = &caller.mcp_session else { return };
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        owed.retain(|(at, of, _), _| at != route || of != session);
    }
}

/// There is no other way for an answer without a session, and there are no sessions in the modern era.
fn name(route: &Arc<str>, caller: &Caller, id: &RawId) -> Option<Name> {
    let session = caller.mcp_session.clone().filter(|_| caller.era == Era::Legacy)?;
    Some((route.clone(), session, id.clone()))
}
