//! Messages to a client that are not the awaited answer: answers to other requests, answers with an id that only
//! resembles the awaited one, and notifications with a task's result.
//!
//! Clients match answers by id on any stream, and some take `"1"` for 1. On the stream of a request, and on one that
//! resumes it, the Python SDK takes the first response for the answer, whatever its id. So the gateway's names are
//! removed from such messages (V-5), and a message that some client could take for the answer to an admitted call is
//! withheld.

use std::sync::Arc;

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;

use super::Shared;
use super::additions::Additions;
use crate::frame::reply::Reply;
use crate::frame::{LooseId, RawId};
use crate::relay::{Over, Passing, Tap};
use crate::upstream::text::may_be_message;

/// Prefix of the notifications about tasks.
const TASKS: &str = "notifications/tasks";

/// The part of a notification about a task that is read.
#[derive(Deserialize)]
struct TaskNamed {
    #[serde(rename = "taskId")]
    task_id: String,
}

/// The stream on which a message passes to a caller.
#[derive(Clone)]
pub struct AnswerStream {
    /// The state that all routes share.
    pub shared: Arc<Shared>,
    /// The path of the route.
    pub route: Arc<str>,
    /// The caller that reads the stream.
    pub caller: Caller,
    /// The request that is answered on this stream, if any.
    pub own: Option<RawId>,
    /// `true` if the caller's answers get the gateway's `_meta` members.
    pub annotated: bool,
    /// `true` if the HTTP status is an error: clients take no result from the body.
    pub is_refusal: bool,
    /// `true` if the stream resumes that of a request, which the gateway does not know, and the client may take any response
    /// on it for the answer.
    pub is_resumed: bool,
}

impl AnswerStream {
    /// Handles a message that is not the answer awaited on this stream.
    pub async fn unrelated(&self, reply: &Reply) -> Passing {
        if !reply.may_answer() {
            let is_about_task = reply.method().is_some_and(|method| method.starts_with(TASKS));
            return if is_about_task { self.about_task(reply) } else { Passing::Untouched };
        }
        if self.is_taken_for_own(reply) {
            return Passing::Withheld;
        }
        if let Some(passing) = self.shared.unanswered.take_answer(&self.route, &self.caller, reply).await {
            return passing;
        }
        if let Some(mut tap) = self.resumed_request(reply) {
            return tap.message(reply.text().clone()).await;
        }
        // The server may send the answer to a list on any stream.
        if let Err(why) = self.shared.note_tools(&self.route, reply).await {
            tracing::warn!(%why, "a list of tools is withheld");
            return Passing::Withheld;
        }
        let is_own = |own: &RawId| reply.answers(own);
        let takes_for_own = |own: &RawId| reply.is_mistaken_for_answer(own);
        match &self.own {
            Some(own) if !self.annotated && (is_own(own) || takes_for_own(own)) => Passing::Untouched,
            Some(own) if takes_for_own(own) => Passing::Withheld,
            _ if reply.loose_id() == Some(LooseId::AnyNumber) => Passing::Withheld,
            _ if self.is_resumed && self.shared.unanswered.has_open(&self.route, &self.caller) => {
                Passing::Withheld
            }
            _ => clean(reply),
        }
    }

    /// Returns whether some client takes this response to another request for the answer to its own, since it is on the
    /// stream of that one. The answer to another open call is none here either: that call stays open.
    fn is_taken_for_own(&self, reply: &Reply) -> bool {
        let is_read = self.annotated && !self.is_refusal;
        is_read && self.own.as_ref().is_some_and(|own| !reply.answers(own))
    }

    /// Takes the tap of the request that this response answers, if the request's own stream has ended before. `None` on a
    /// stream that may be that of an open call, for whose answer some client would take the response.
    fn resumed_request(&self, reply: &Reply) -> Option<Box<dyn Tap>> {
        let may_be_of_call = self.is_resumed && self.shared.unanswered.has_open(&self.route, &self.caller);
        match may_be_of_call {
            true => None,
            false => self.shared.resumable.take(&self.route, &self.caller, reply),
        }
    }

    /// Handles a notification about a task, which may contain its result. Those about another caller's task are
    /// withheld, like the answers to requests about it (V-37).
    fn about_task(&self, notification: &Reply) -> Passing {
        let named = || jose::json::read_text::<TaskNamed>(notification.member("params")?).ok();
        let task_id = named().map(|task| task.task_id).unwrap_or_default();
        let (shared, route) = (&self.shared, &self.route);
        if !shared.may_read_about_task(route, &self.caller, task_id.clone()) {
            return Passing::Withheld;
        }
        // On an advisory route it depends on the task whether its messages get the gateway's `_meta` members.
        match self.annotated || shared.tasks.is_annotated(route, task_id) {
            true => clean(notification),
            false => Passing::Untouched,
        }
    }
}

/// Removes the names that are reserved for the gateway from a message.
pub fn clean(reply: &Reply) -> Passing {
    let cleaned = reply.without_gateway_members(Additions::dropped());
    match cleaned == *reply.text() {
        true => Passing::Untouched,
        false => Passing::Replaced(cleaned),
    }
}

/// Withholds a message that cannot be parsed, since other parsers might see a Verdict in it (V-5). Other text passes.
pub fn unreadable(text: &[u8]) -> Passing {
    match may_be_message(text) {
        true => Passing::Withheld,
        false => Passing::Untouched,
    }
}

/// A tap for streams that answer no admitted call, whose messages the caller may believe all the same.
pub struct UnrelatedTap {
    /// The inspected stream.
    pub passage: AnswerStream,
}

#[async_trait]
impl Tap for UnrelatedTap {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else {
            return unreadable(&text);
        };
        match self.passage.own.as_ref().is_some_and(|own| reply.answers(own)) {
            true if self.passage.annotated => clean(&reply),
            true => Passing::Untouched,
            false => self.passage.unrelated(&reply).await,
        }
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}
