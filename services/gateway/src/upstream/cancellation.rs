//! The notification that tells a legacy server of a request that the gateway has given up. In the modern era the end of the
//! connection says it.

use std::sync::Arc;

use http::{HeaderMap, Method};
use tokio::time::timeout;

use super::{ClientName, Exchange, Upstream, UpstreamError};
use crate::frame::reply;
use crate::limits::CANCELLATION_TIME;

/// A `notifications/cancelled` that has not been sent.
pub struct Cancellation {
    upstream: Arc<dyn Upstream>,
    headers: HeaderMap,
    client: ClientName,
    /// The raw JSON of the request's id.
    id: String,
}

impl Cancellation {
    /// The cancellation of the request with this id (as raw JSON), which this exchange sends.
    pub fn of(upstream: &Arc<dyn Upstream>, request: &Exchange, id: &str) -> Self {
        let (headers, client) = (request.headers.clone(), request.client.clone());
        Self { upstream: upstream.clone(), headers, client, id: id.to_owned() }
    }

    /// Sends the notification, in the background. The server need not take it.
    pub fn send(self) {
        let Self { upstream, headers, client, id } = self;
        let body = reply::cancelled(&id, "no answer in time");
        tokio::spawn(async move {
            let exchange = Exchange { method: Method::POST, headers, body, client, time_limit: None };
            let sent = timeout(CANCELLATION_TIME, upstream.exchange(exchange)).await;
            if let Err(error) = sent.unwrap_or(Err(UpstreamError::TimedOut)) {
                tracing::debug!(%error, "the cancellation of a request could not be sent to the server");
            }
        });
    }
}
