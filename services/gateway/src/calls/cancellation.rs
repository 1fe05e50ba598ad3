//! The notification that tells a legacy server of a call that the gateway has given up. In the modern era the end of the
//! connection says it.

use std::sync::Arc;

use http::{HeaderMap, Method};

use crate::frame::{RawId, reply};
use crate::upstream::{ClientName, Exchange, Upstream};

/// A `notifications/cancelled` that has not been sent.
pub struct Cancellation {
    upstream: Arc<dyn Upstream>,
    headers: HeaderMap,
    client: ClientName,
    id: RawId,
}

impl Cancellation {
    /// The cancellation of the call `id`, which this request sends.
    pub fn of(upstream: &Arc<dyn Upstream>, request: &Exchange, id: &RawId) -> Self {
        let (headers, client) = (request.headers.clone(), request.client.clone());
        Self { upstream: upstream.clone(), headers, client, id: id.clone() }
    }

    /// Sends the notification, in the background. The server need not take it.
    pub fn send(self) {
        let Self { upstream, headers, client, id } = self;
        let body = reply::cancelled(&id, "no answer in time");
        tokio::spawn(async move {
            let exchange = Exchange { method: Method::POST, headers, body, client };
            if let Err(error) = upstream.exchange(exchange).await {
                tracing::debug!(%error, "the cancellation of a call could not be sent to the server");
            }
        });
    }
}
