//! The open requests of the client, which it can cancel by their ids.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

use super::request::is_modern;
use crate::frame::{Frame, RawId, SUBSCRIBE};

/// The requests that are not answered.
#[derive(Default)]
pub struct OpenRequests(HashMap<RequestKey, OpenRequest>);

/// The id of a request in its era: a cancellation concerns one of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    id: RawId,
    is_modern: bool,
}

impl RequestKey {
    /// Returns the key of a request; `None` without an id.
    pub fn of(request: &Frame) -> Option<Self> {
        request.id().map(|id| Self { id: id.clone(), is_modern: is_modern(request) })
    }
}

/// The requests with one key: a client must not use the id of an open request again, but it may.
#[derive(Default)]
struct OpenRequest {
    cancelled: CancellationToken,
    count: usize,
    /// `true` if one of them is a subscription, whose answer does not end by itself.
    has_subscription: bool,
}

impl OpenRequests {
    /// Adds a request, and returns the token that is cancelled with it, and with all others of its id.
    pub fn open(&mut self, request: &Frame) -> CancellationToken {
        let Some(key) = RequestKey::of(request) else { return CancellationToken::new() };
        let open = self.0.entry(key).or_default();
        open.count += 1;
        open.has_subscription |= request.method() == Some(SUBSCRIBE);
        open.cancelled.clone()
    }

    /// Removes a request that has ended.
    pub fn close(&mut self, key: Option<RequestKey>) {
        let Some(key) = key else { return };
        let Some(open) = self.0.get_mut(&key) else { return };
        open.count -= 1;
        if open.count == 0 {
            self.0.remove(&key);
        }
    }

    /// Cancels the open request that `notifications/cancelled` names: a modern one, or else a legacy one. Returns whether it
    /// is a modern one.
    pub fn cancel(&mut self, cancellation: &Frame) -> bool {
        let Some(id) = cancellation.param("requestId").and_then(RawId::read) else { return false };
        let modern = RequestKey { id: id.clone(), is_modern: true };
        if let Some(open) = self.0.get(&modern) {
            open.cancelled.cancel();
            return true;
        }
        let legacy = RequestKey { id, is_modern: false };
        if let Some(open) = self.0.get(&legacy).filter(|_| !is_modern(cancellation)) {
            open.cancelled.cancel();
        }
        false
    }

    /// Ends the open subscriptions.
    pub fn cancel_subscriptions(&self) {
        self.0.values().filter(|open| open.has_subscription).for_each(|open| open.cancelled.cancel());
    }
}
