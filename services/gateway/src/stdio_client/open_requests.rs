//! The open requests of the modern era, which the client can cancel by their ids.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

use super::request::is_modern;
use crate::frame::{Frame, RawId, SUBSCRIBE};

/// The modern requests that are not answered.
#[derive(Default)]
pub struct OpenRequests(HashMap<RawId, OpenRequest>);

/// The requests with one id: a client must not use the id of an open request again, but it may.
#[derive(Default)]
struct OpenRequest {
    cancelled: CancellationToken,
    count: usize,
    /// `true` if one of them is a subscription, whose answer does not end by itself.
    has_subscription: bool,
}

impl OpenRequests {
    /// Adds a request, and returns the token that ends it, with all others of its id. The one of a legacy request is never
    /// cancelled, since its server receives the client's cancellation.
    pub fn open(&mut self, request: &Frame) -> CancellationToken {
        match request.id().filter(|_| is_modern(request)) {
            Some(id) => {
                let open = self.0.entry(id.clone()).or_default();
                open.count += 1;
                open.has_subscription |= request.method() == Some(SUBSCRIBE);
                open.cancelled.clone()
            }
            None => CancellationToken::new(),
        }
    }

    /// Removes a request that has ended.
    pub fn close(&mut self, id: Option<RawId>) {
        let Some(id) = id else { return };
        let Some(open) = self.0.get_mut(&id) else { return };
        open.count -= 1;
        if open.count == 0 {
            self.0.remove(&id);
        }
    }

    /// Ends the open request that `notifications/cancelled` names. Returns false if it names none.
    pub fn cancel(&mut self, cancellation: &Frame) -> bool {
        let named = cancellation.param("requestId").and_then(RawId::read);
        let open = named.and_then(|id| self.0.get(&id));
        if let Some(open) = open {
            open.cancelled.cancel();
        }
        open.is_some()
    }

    /// Ends the open subscriptions.
    pub fn cancel_subscriptions(&self) {
        self.0.values().filter(|open| open.has_subscription).for_each(|open| open.cancelled.cancel());
    }
}
