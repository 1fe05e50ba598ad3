//! Requests of the legacy eras, other than calls, whose own stream has ended before the answer: their server may send it on a
//! stream that the client resumes, or on another one of the session.
//!
//! The tap that waits for the answer is kept, so that the answer has the effect that it would have had on the first stream: a
//! commitment is decided, a list of tools is noted and filtered, a session is known, the call of a task is settled.
//!
//! Not here: calls (`unanswered`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::legacy_session;
use crate::frame::reply::Reply;
use crate::frame::{LooseId, RawId};
use crate::limits::MAX_RESUMABLE_REQUESTS;
use crate::relay::{Over, Passing, Tap};
use crate::upstream::UpstreamError;

/// A route, an MCP session on it, and an id as lenient clients compare it.
type Name = (Arc<str>, String, LooseId);

/// The requests whose answer may come on another stream.
#[derive(Clone)]
pub struct ResumableRequests(Cache<Name, Arc<Mutex<Option<WaitingTap>>>>);

/// The tap that waits for the answer to a request.
struct WaitingTap {
    id: RawId,
    tap: Box<dyn Tap>,
}

impl ResumableRequests {
    /// An empty table, in which a request is kept for `patience` after the end of its own stream.
    pub fn new(patience: Duration) -> Self {
        let all = Cache::builder().max_capacity(MAX_RESUMABLE_REQUESTS).time_to_live(patience);
        Self(all.eviction_policy(EvictionPolicy::lru()).build())
    }

    /// Wraps the tap for the answer to the request `id`: it is kept if the stream ends before the answer. Without a session
    /// no other stream can bring the answer, and the tap is returned as it is.
    pub fn wrap(&self, route: &Arc<str>, caller: &Caller, id: &RawId, tap: Box<dyn Tap>) -> Box<dyn Tap> {
        let Some(session) = legacy_session(caller) else { return tap };
        let name = (route.clone(), session.to_owned(), id.loosely());
        let waiting = Some(WaitingTap { id: id.clone(), tap });
        Box::new(ResumableTap { requests: self.clone(), name, waiting, may_follow: true })
    }

    /// Takes the tap of the request of this session that a response answers, if its own stream has ended before.
    pub fn take(&self, route: &Arc<str>, caller: &Caller, reply: &Reply) -> Option<Box<dyn Tap>> {
        let name = (route.clone(), legacy_session(caller)?.to_owned(), reply.loose_id()?);
        let slot = self.0.get(&name)?;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = slot.take_if(|waiting| reply.answers(&waiting.id))?;
        self.0.invalidate(&name);
        Some(waiting.tap)
    }
}

/// A tap that is kept when it is dropped before the answer.
struct ResumableTap {
    requests: ResumableRequests,
    name: Name,
    /// The tap; it is there until this one is dropped.
    waiting: Option<WaitingTap>,
    /// `true` as long as the answer may follow on another stream.
    may_follow: bool,
}

#[async_trait]
impl Tap for ResumableTap {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Some(waiting) = &mut self.waiting else { return Passing::Withheld };
        if Reply::parse(text.clone()).is_ok_and(|reply| reply.answers(&waiting.id)) {
            self.may_follow = false;
        }
        waiting.tap.message(text).await
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        self.may_follow &= match &how {
            Over::Complete { may_follow } => *may_follow,
            // After the limit of the request its client gets an error.
            Over::Broken(error) => !matches!(error, UpstreamError::Overdue { .. }),
            Over::Abandoned | Over::Resumed | Over::GivenUp(_) => false,
        };
        self.waiting.as_mut()?.tap.over(how).await
    }
}

impl Drop for ResumableTap {
    fn drop(&mut self) {
        if self.may_follow && self.waiting.is_some() {
            let slot = Arc::new(Mutex::new(self.waiting.take()));
            self.requests.0.insert(self.name.clone(), slot);
        }
    }
}
