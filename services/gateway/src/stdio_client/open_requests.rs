//! The open requests of the client, which it can cancel by their ids, and whose answers may come on any stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::{CancellationToken, DropGuard};

use super::request::is_modern;
use crate::frame::reply::Reply;
use crate::frame::{Frame, RawId, SUBSCRIBE};

/// The requests that are not answered.
#[derive(Clone, Default)]
pub struct OpenRequests(Arc<Mutex<HashMap<RequestKey, OpenRequest>>>);

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

/// Signals that end the wait for the answer to a request.
#[derive(Clone, Default)]
pub struct EndSignals {
    /// Cancelled once the client cancels the request.
    pub cancelled: CancellationToken,
    /// Cancelled once the answer has come on a stream that is not the request's own.
    pub answered: CancellationToken,
    /// Cancelled once that answer has been handed over to the client.
    pub handed_over: CancellationToken,
}

/// The requests with one key: a client must not use the id of an open request again, but it may.
#[derive(Default)]
struct OpenRequest {
    signals: EndSignals,
    count: usize,
    /// `true` if one of them is a subscription, whose answer does not end by itself.
    has_subscription: bool,
}

impl OpenRequests {
    /// Adds a request, and returns its signals, which are also those of all others with its id.
    pub fn open(&self, request: &Frame) -> EndSignals {
        let Some(key) = RequestKey::of(request) else { return EndSignals::default() };
        let mut table = self.lock();
        let open = table.entry(key).or_default();
        open.count += 1;
        open.has_subscription |= request.method() == Some(SUBSCRIBE);
        open.signals.clone()
    }

    /// Removes a request that has ended.
    pub fn close(&self, key: Option<RequestKey>) {
        let Some(key) = key else { return };
        let mut table = self.lock();
        let Some(open) = table.get_mut(&key) else { return };
        open.count -= 1;
        if open.count == 0 {
            table.remove(&key);
        }
    }

    /// Cancels the open request that `notifications/cancelled` names: a modern one, or else a legacy one. Returns whether it
    /// is a modern one.
    pub fn cancel(&self, cancellation: &Frame) -> bool {
        let Some(id) = cancellation.param("requestId").and_then(RawId::read) else { return false };
        let table = self.lock();
        let modern = RequestKey { id: id.clone(), is_modern: true };
        if let Some(open) = table.get(&modern) {
            open.signals.cancelled.cancel();
            return true;
        }
        let legacy = RequestKey { id, is_modern: false };
        if let Some(open) = table.get(&legacy).filter(|_| !is_modern(cancellation)) {
            open.signals.cancelled.cancel();
        }
        false
    }

    /// Notes that a response has come on a stream that is not its request's own, and returns the guard to drop once it has
    /// been handed over to the client. In the modern era no server sends one.
    pub fn answer(&self, response: &Reply) -> Option<DropGuard> {
        let id = response.id().filter(|id| response.answers(id))?;
        let legacy = RequestKey { id: id.clone(), is_modern: false };
        let mut table = self.lock();
        let signals = &mut table.get_mut(&legacy)?.signals;
        // A later request may have the same id.
        std::mem::take(&mut signals.answered).cancel();
        Some(std::mem::take(&mut signals.handed_over).drop_guard())
    }

    /// Ends the open subscriptions.
    pub fn cancel_subscriptions(&self) {
        let table = self.lock();
        let subscriptions = table.values().filter(|open| open.has_subscription);
        subscriptions.for_each(|open| open.signals.cancelled.cancel());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, OpenRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
