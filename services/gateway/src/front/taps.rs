//! Taps of the front's own: what the gateway adds to capabilities, and responses that come late.

use std::sync::Arc;

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;

use super::{Late, Opening, Route};
use crate::frame::reply::Reply;
use crate::frame::{Kind, RawId};
use crate::relay::{self, Over, Passing, Tap};

/// Looks for the answer to `initialize` or `server/discover`.
pub struct Advertising {
    pub route: Arc<Route>,
    pub opening: Opening,
}

#[async_trait]
impl Tap for Advertising {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else { return Passing::Untouched };
        match self.opening.frame.id().is_some_and(|id| reply.answers(id)) {
            true => changed(&text, self.route.handlers.advertise(&self.opening, text.clone())),
            false => Passing::Untouched,
        }
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}

/// Looks for responses where they are not expected: on a GET stream, and to another request than the one that is answered.
/// Clients match them by id, wherever they come.
pub struct Listening {
    pub route: Arc<Route>,
    pub caller: Caller,
    /// The request that is answered, if one.
    pub own: Option<RawId>,
}

#[async_trait]
impl Tap for Listening {
    async fn message(&mut self, text: Bytes) -> Passing {
        match Reply::parse(text.clone()) {
            Ok(reply) if self.own.as_ref().is_some_and(|own| reply.answers(own)) => Passing::Untouched,
            Ok(reply) if reply.kind() == Kind::Response => {
                let late = Late { caller: &self.caller, message: text };
                self.route.handlers.late(late).await
            }
            Ok(_) => Passing::Untouched,
            // Other readers might see a result in it.
            Err(_) if relay::is_message(&text) => Passing::Withheld,
            Err(_) => Passing::Untouched,
        }
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}

fn changed(before: &Bytes, after: Bytes) -> Passing {
    match *before == after {
        true => Passing::Untouched,
        false => Passing::Replaced(after),
    }
}
