//! Answers that come another way: a legacy server may end the stream of a call before its answer, and the client fetches
//! the rest with a GET that resumes it. An answer may also come again, when a client resumes a stream that broke.
//!
//! What an admitted call owes is kept here in the meantime, and paid when its answer comes; or `unknown`, when it does not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use admission::principal::Caller;
use bytes::Bytes;
use moka::sync::Cache;

use super::additions::Additions;
use super::ending::Ending;
use crate::frame::RawId;
use crate::frame::reply::Reply;
use crate::limits::{LATE_ANSWER_TIME, MAX_REMEMBERED_ANSWERS};
use crate::relay::Passing;

/// An MCP session and an id in it.
type Name = (String, String);

/// Calls without an answer, and answers that may come again.
#[derive(Clone)]
pub struct Unanswered {
    owed: Arc<Mutex<HashMap<Name, Ending>>>,
    given: Cache<Name, Arc<Additions>>,
}

impl Default for Unanswered {
    fn default() -> Self {
        let given = Cache::builder().max_capacity(MAX_REMEMBERED_ANSWERS).time_to_live(LATE_ANSWER_TIME);
        Self { owed: Arc::default(), given: given.build() }
    }
}

impl Unanswered {
    /// Keeps what a call owes, for some time.
    pub fn keep(&self, ending: Ending) {
        let Some(name) = name(&ending.caller, &ending.id) else { return };
        self.owed.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), ending);
        let owed = self.owed.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LATE_ANSWER_TIME).await;
            owed.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        });
    }

    /// Remembers what was added to an answer, should it come again.
    pub fn remember(&self, caller: &Caller, id: &RawId, additions: Additions) {
        if let Some(name) = name(caller, id) {
            self.given.insert(name, Arc::new(additions));
        }
    }

    /// A response came on a GET stream.
    pub async fn came(&self, caller: &Caller, message: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(message) else { return Passing::Untouched };
        let Some(name) = reply.id().and_then(|id| name(caller, id)) else { return Passing::Untouched };
        let owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        match (owed, self.given.get(&name)) {
            (Some(ending), _) => ending.end(&reply).await,
            (None, Some(additions)) if !reply.is_error() => {
                Passing::Replaced(reply.with_meta(&additions.members(), Additions::dropped()))
            }
            (None, _) => Passing::Untouched,
        }
    }

    /// The session is gone: nothing comes any more.
    pub fn gone(&self, caller: &Caller) {
        let Some(session) = &caller.mcp_session else { return };
        self.owed.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _), _| of != session);
    }
}

/// There is no other way for an answer without a session.
fn name(caller: &Caller, id: &RawId) -> Option<Name> {
    Some((caller.mcp_session.clone()?, id.text().to_owned()))
}
