//! [`AwaitedAnswer`]: the error in place of an answer that was withheld from an event stream, or that did not come in time.
//! For a whole body, [`AwaitedRequest::lacks_answer`] tells whether such an error takes its place.

use admission::principal::Era;
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;

use super::lost_answer::{cause, lost_answer};
use super::{Over, Passing, Tap};
use crate::frame::RawId;
use crate::frame::reply::Reply;
use crate::upstream::UpstreamError;
use crate::upstream::text::may_be_message;

/// A request whose answer is awaited.
#[derive(Clone, Copy, Debug)]
pub struct AwaitedRequest<'a> {
    /// The id of the request.
    pub id: &'a RawId,
    /// The era of its client.
    pub era: Era,
}

impl AwaitedRequest<'_> {
    /// Returns whether a server that answers with this status may send the answer on another stream.
    pub fn may_follow(self, status: StatusCode) -> bool {
        self.era == Era::Legacy && may_follow(status)
    }

    /// Returns whether a body holds no answer to the request: a response to another one, or none at all. Whether one that
    /// cannot be read passes is the decision of its tap.
    pub fn lacks_answer(self, body: &Bytes) -> bool {
        !may_be_message(body) || Reply::parse(body.clone()).is_ok_and(|reply| !reply.answers(self.id))
    }
}

/// A tap for the event stream that answers a request. If another tap withholds the answer, or the answer does not come within
/// the time of the request, the stream ends with an error for the request; otherwise its client would wait in vain.
pub struct AwaitedAnswer {
    tap: Box<dyn Tap>,
    id: RawId,
    is_withheld: bool,
    has_passed: bool,
}

impl AwaitedAnswer {
    /// The answer to the request `id`, on a stream that passes through `tap`.
    pub fn new(tap: Box<dyn Tap>, id: RawId) -> Self {
        Self { tap, id, is_withheld: false, has_passed: false }
    }

    fn is_answer(&self, text: &Bytes) -> bool {
        Reply::parse(text.clone()).is_ok_and(|reply| reply.answers(&self.id))
    }
}

#[async_trait]
impl Tap for AwaitedAnswer {
    async fn message(&mut self, text: Bytes) -> Passing {
        let passing = self.tap.message(text.clone()).await;
        match &passing {
            Passing::Withheld => self.is_withheld |= may_be_answer(&text),
            Passing::Untouched => self.has_passed = self.has_passed || self.is_answer(&text),
            Passing::Replaced(text) => self.has_passed = self.has_passed || self.is_answer(text),
        }
        passing
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        let is_overdue = matches!(how, Over::Broken(UpstreamError::Overdue { .. }));
        let is_lost = (self.is_withheld || is_overdue) && !self.has_passed;
        let cause = cause(&how);
        let last = self.tap.over(how).await;
        last.or_else(|| is_lost.then(|| lost_answer(Some(&self.id), &cause)))
    }
}

/// Returns whether a legacy server that answers with this status may send the answer on another stream.
pub(super) fn may_follow(status: StatusCode) -> bool {
    status == StatusCode::ACCEPTED
}

/// Returns whether some client would take this text for the answer to the request of its stream: any response is one to
/// the Python SDK, and a text that cannot be read may be one.
pub fn may_be_answer(text: &Bytes) -> bool {
    Reply::parse(text.clone()).map_or(true, |reply| reply.may_answer())
}
