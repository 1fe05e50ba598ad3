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
use http::StatusCode;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::legacy_session;
use crate::frame::reply::Reply;
use crate::frame::{Frame, LooseId, RawId};
use crate::limits::{HELD_RESUMABLE_BYTES, RESUMABLE_REQUEST_BYTES};
use crate::relay::{AnswerForm, Over, Passing, Tap, form, may_be_answer};
use crate::upstream::{UpstreamAnswer, UpstreamError};

/// A route, an MCP session on it, and an id as lenient clients compare it.
type Name = (Arc<str>, String, LooseId);

/// The requests whose answer may come on another stream.
#[derive(Clone)]
pub struct ResumableRequests(Cache<Name, Arc<KeptRequest>>);

/// A request that is kept after the end of its own stream.
struct KeptRequest {
    /// The length of the request, of which its tap may hold all.
    bytes: u32,
    /// `None` once the answer has come.
    waiting: Mutex<Option<WaitingTap>>,
}

/// The tap that waits for the answer to a request.
struct WaitingTap {
    id: RawId,
    tap: Box<dyn Tap>,
}

impl ResumableRequests {
    /// An empty table, in which a request is kept for `patience` after the end of its own stream.
    pub fn new(patience: Duration) -> Self {
        let all = Cache::builder().max_capacity(HELD_RESUMABLE_BYTES).time_to_live(patience);
        let weighed = all.weigher(|_: &Name, request: &Arc<KeptRequest>| {
            request.bytes.saturating_add(RESUMABLE_REQUEST_BYTES)
        });
        Self(weighed.eviction_policy(EvictionPolicy::lru()).build())
    }

    /// Wraps the tap for the answer to a request: it is kept if the stream ends before the response. Without a session no
    /// other stream can bring the response, and after another answer than an event stream or a 202 none does: then the tap
    /// is returned as it is.
    pub fn wrap(
        &self,
        (route, caller): (&Arc<str>, &Caller),
        request: &Frame,
        answer: &UpstreamAnswer,
        tap: Box<dyn Tap>,
    ) -> Box<dyn Tap> {
        let is_stream = form(answer) == AnswerForm::Events;
        if !is_stream && answer.status != StatusCode::ACCEPTED {
            return tap;
        }
        let (Some(session), Some(id)) = (legacy_session(caller), request.id()) else { return tap };
        Box::new(ResumableTap {
            requests: self.clone(),
            name: (route.clone(), session.to_owned(), id.loosely()),
            bytes: u32::try_from(request.text().len()).unwrap_or(u32::MAX),
            waiting: Some(WaitingTap { id: id.clone(), tap }),
            is_stream,
            is_withheld: false,
            may_follow: true,
        })
    }

    /// Takes the tap of the request of this session that a response answers, if its own stream has ended before.
    pub fn take(&self, route: &Arc<str>, caller: &Caller, reply: &Reply) -> Option<Box<dyn Tap>> {
        let name = (route.clone(), legacy_session(caller)?.to_owned(), reply.loose_id()?);
        let request = self.0.get(&name)?;
        let mut waiting = request.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = waiting.take_if(|waiting| reply.answers(&waiting.id))?;
        self.0.invalidate(&name);
        Some(taken.tap)
    }

    /// Removes the requests of a session that has ended.
    pub fn gone(&self, route: &Arc<str>, session: &str) {
        let of_session = self.0.iter().filter(|(name, _)| name.0 == *route && name.1 == session);
        of_session.for_each(|(name, _)| self.0.invalidate(&*name));
    }

    fn keep(&self, name: Name, request: KeptRequest) {
        self.0.insert(name, Arc::new(request));
        // Otherwise others would be forgotten only later, and more than the limit would be held until then.
        self.0.run_pending_tasks();
    }
}

/// A tap that is kept when it is dropped before the answer.
struct ResumableTap {
    requests: ResumableRequests,
    name: Name,
    /// The length of the request.
    bytes: u32,
    /// The tap; it is there until this one is dropped.
    waiting: Option<WaitingTap>,
    /// `true` if the answer is an event stream: its client may ask for the rest of one that breaks off.
    is_stream: bool,
    /// `true` once a response was withheld: at the end of the stream its client gets an error.
    is_withheld: bool,
    /// `true` as long as the response may follow on another stream.
    may_follow: bool,
}

#[async_trait]
impl Tap for ResumableTap {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Some(waiting) = &mut self.waiting else { return Passing::Withheld };
        if Reply::parse(text.clone()).is_ok_and(|reply| reply.answers(&waiting.id)) {
            self.may_follow = false;
        }
        let passing = waiting.tap.message(text.clone()).await;
        self.is_withheld |= passing == Passing::Withheld && may_be_answer(&text);
        passing
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        self.may_follow &= !self.is_withheld
            && match &how {
                Over::Complete { may_follow } => *may_follow,
                // After the limit of the request its client gets an error.
                Over::Broken(error) => self.is_stream && !matches!(error, UpstreamError::Overdue { .. }),
                Over::Abandoned | Over::Resumed | Over::GivenUp(_) => false,
            };
        self.waiting.as_mut()?.tap.over(how).await
    }
}

impl Drop for ResumableTap {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take().filter(|_| self.may_follow) {
            let request = KeptRequest { bytes: self.bytes, waiting: Mutex::new(Some(waiting)) };
            self.requests.keep(self.name.clone(), request);
        }
    }
}

#[cfg(test)]
mod tests {
    use admission::principal::Era;
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;
    use crate::upstream::answer;

    /// A tap that withholds every message, or none.
    struct Plain {
        withholds: bool,
    }

    #[async_trait]
    impl Tap for Plain {
        async fn message(&mut self, _: Bytes) -> Passing {
            if self.withholds { Passing::Withheld } else { Passing::Untouched }
        }

        async fn over(&mut self, _: Over) -> Option<Bytes> {
            None
        }
    }

    /// The requests of the session `s`.
    struct OneSession {
        requests: ResumableRequests,
        route: Arc<str>,
        caller: Caller,
    }

    impl OneSession {
        fn new() -> Self {
            let caller = Caller {
                era: Era::Legacy,
                token: None,
                certificate: None,
                mcp_session: Some("s".into()),
                is_session_issued: true,
                route: "/mcp".into(),
            };
            let requests = ResumableRequests::new(Duration::from_secs(600));
            Self { requests, route: "/mcp".into(), caller }
        }

        /// The tap for an answer to the request `id`, whose parameter has this length.
        fn tap(&self, id: usize, length: usize, answer: &UpstreamAnswer, withholds: bool) -> Box<dyn Tap> {
            let text = "x".repeat(length);
            let request =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{"x":"{text}"}}}}"#);
            let request = Frame::parse(request.into()).unwrap();
            let at = (&self.route, &self.caller);
            self.requests.wrap(at, &request, answer, Box::new(Plain { withholds }))
        }

        /// Whether the request `id` is kept. It is not kept any longer.
        fn takes(&self, id: usize) -> bool {
            self.requests.take(&self.route, &self.caller, &Reply::parse(response(id)).unwrap()).is_some()
        }
    }

    fn response(id: usize) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into()
    }

    fn whole() -> UpstreamAnswer {
        answer::json(StatusCode::OK, Bytes::new())
    }

    fn stream() -> UpstreamAnswer {
        let mut stream = whole();
        stream.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        stream
    }

    fn broken() -> Over {
        Over::Broken(UpstreamError::Lost("broken off".into()))
    }

    #[test]
    fn the_requests_that_are_kept_are_bounded_by_their_length() {
        let session = OneSession::new();
        let many = usize::try_from(HELD_RESUMABLE_BYTES >> 20).unwrap() + 1;
        for id in 0..many {
            drop(session.tap(id, 1 << 20, &stream(), false));
        }
        assert!(!session.takes(0), "it was used least recently");
        assert!(session.takes(many - 1));
    }

    #[test]
    fn the_end_of_a_session_ends_the_wait_for_its_answers() {
        let session = OneSession::new();
        drop(session.tap(1, 1, &stream(), false));
        session.requests.gone(&session.route, "other");
        assert!(session.takes(1));
        drop(session.tap(1, 1, &stream(), false));
        session.requests.gone(&session.route, "s");
        assert!(!session.takes(1));
    }

    #[tokio::test]
    async fn a_stream_that_breaks_off_may_be_resumed_and_another_answer_may_not() {
        let session = OneSession::new();
        let mut accepted = whole();
        accepted.status = StatusCode::ACCEPTED;
        for (answer, is_kept) in [(stream(), true), (whole(), false), (accepted, false)] {
            let mut tap = session.tap(1, 1, &answer, false);
            tap.over(broken()).await;
            drop(tap);
            assert_eq!(session.takes(1), is_kept, "{} {:?}", answer.status, answer.headers);
        }
    }

    #[tokio::test]
    async fn a_request_with_a_withheld_response_is_not_kept_since_its_client_gets_an_error() {
        let session = OneSession::new();
        for (withholds, is_kept) in [(false, true), (true, false)] {
            let mut tap = session.tap(1, 1, &stream(), withholds);
            tap.message(response(2)).await;
            tap.over(Over::Complete { may_follow: true }).await;
            drop(tap);
            assert_eq!(session.takes(1), is_kept);
        }
    }

    #[tokio::test]
    async fn a_request_with_a_withheld_response_is_kept_if_its_client_is_gone_before_the_error() {
        let session = OneSession::new();
        let mut tap = session.tap(1, 1, &stream(), true);
        assert_eq!(tap.message(response(2)).await, Passing::Withheld);
        drop(tap);
        assert!(session.takes(1));
    }
}
