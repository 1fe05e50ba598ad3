//! The open requests of the modern era, which the client can cancel by their ids.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

use super::request::is_modern;
use crate::frame::{Frame, RawId};

/// The modern requests that are not answered.
#[derive(Default)]
pub struct OpenRequests(HashMap<RawId, CancellationToken>);

impl OpenRequests {
    /// Adds a request, and returns the token that ends it. The one of a legacy request is never cancelled, since its
    /// server receives the client's cancellation. A client must not use the id of an open request again; if it does, one
    /// cancellation ends both.
    pub fn open(&mut self, request: &Frame) -> CancellationToken {
        match request.id().filter(|_| is_modern(request)) {
            Some(id) => self.0.entry(id.clone()).or_default().clone(),
            None => CancellationToken::new(),
        }
    }

    /// Removes a request that has ended.
    pub fn close(&mut self, id: Option<RawId>) {
        if let Some(id) = id {
            self.0.remove(&id);
        }
    }

    /// Ends the open request that `notifications/cancelled` names. Returns false if it names none.
    pub fn cancel(&mut self, cancellation: &Frame) -> bool {
        let named = cancellation.param("requestId").and_then(RawId::read);
        let open = named.and_then(|id| self.0.remove(&id));
        if let Some(token) = &open {
            token.cancel();
        }
        open.is_some()
    }
}
