//! The taps of the protocol: they add the gateway's capabilities, and find late responses.

use std::sync::Arc;

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;

use super::{Late, Opening, ServerMessages};
use crate::frame::RawId;
use crate::frame::reply::Reply;
use crate::relay::{Over, Passing, Tap};
use crate::upstream::text::may_be_message;

/// Prefix of the notifications that may contain a task's result.
const TASKS: &str = "notifications/tasks";

/// A tap that finds the answer to `initialize` or `server/discover`.
pub struct Advertising {
    pub handlers: Arc<dyn ServerMessages>,
    pub opening: Opening,
}

#[async_trait]
impl Tap for Advertising {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else { return unreadable(&text) };
        if self.opening.frame.id().is_some_and(|id| reply.answers(id)) {
            return changed(&text, self.handlers.advertise(&self.opening, text.clone()));
        }
        elsewhere(&*self.handlers, (&self.opening.caller, false), &reply).await
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}

/// A tap that finds responses in unexpected places: on a GET stream, or in the answer to another request. Clients match
/// responses by id, wherever they arrive.
pub struct Listening {
    pub handlers: Arc<dyn ServerMessages>,
    pub caller: Caller,
    /// The request that is answered here, if any.
    pub own: Option<RawId>,
    /// `true` for a GET stream that resumes that of a request, on which the client may take any response for the answer.
    pub is_resumed: bool,
}

#[async_trait]
impl Tap for Listening {
    async fn message(&mut self, text: Bytes) -> Passing {
        match Reply::parse(text.clone()) {
            Ok(reply) if self.own.as_ref().is_some_and(|own| reply.answers(own)) => Passing::Untouched,
            Ok(reply) => elsewhere(&*self.handlers, (&self.caller, self.is_resumed), &reply).await,
            Err(_) => unreadable(&text),
        }
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}

/// Handles a message that is not the awaited answer, on a stream of this caller that may be a resumed one.
async fn elsewhere(
    handlers: &dyn ServerMessages,
    (caller, is_resumed): (&Caller, bool),
    reply: &Reply,
) -> Passing {
    let holds_result = || reply.method().is_some_and(|method| method.starts_with(TASKS));
    match reply.may_answer() || holds_result() {
        true => handlers.late(Late { caller, is_resumed, message: reply.text().clone() }).await,
        false => Passing::Untouched,
    }
}

/// Withholds a message that cannot be parsed, because other readers might see a result in it.
fn unreadable(text: &Bytes) -> Passing {
    match may_be_message(text) {
        true => Passing::Withheld,
        false => Passing::Untouched,
    }
}

fn changed(before: &Bytes, after: Bytes) -> Passing {
    match *before == after {
        true => Passing::Untouched,
        false => Passing::Replaced(after),
    }
}
