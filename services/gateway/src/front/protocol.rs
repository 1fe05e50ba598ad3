//! The interface between the front end and the protocol of an endpoint.

use std::net::IpAddr;

use async_trait::async_trait;
use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use serving::network::client_network;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::refusal::RequestRefusal;
use super::{Authorized, headers, intake};
use crate::relay::Response;
use crate::upstream::fields::accepts;
use crate::upstream::{ClientName, Exchange};

/// A protocol over HTTP, such as MCP or A2A.
#[async_trait]
pub trait Protocol: Send + Sync + 'static {
    /// Checks the head of a request before its sender is authenticated.
    ///
    /// # Errors
    /// The response to a request that the protocol does not have.
    fn check(&self, head: &Parts) -> Result<(), RequestRefusal>;

    /// Answers the request of an authenticated sender.
    async fn answer(&self, request: AuthorizedRequest) -> Response;
}

/// A request whose sender is authenticated, with its body unread.
pub struct AuthorizedRequest {
    /// Method, target and headers.
    pub head: Parts,
    /// The sender's identity.
    pub authorized: Authorized,
    /// The end of the listener.
    pub draining: Draining,
    pub(super) body: Body,
    pub(super) body_bytes: usize,
    pub(super) address: IpAddr,
}

/// The end of a listener: what its stop waits for, and what ends at once.
#[derive(Clone, Default)]
pub struct Draining {
    /// Tasks that go on after their client disconnected. A stop waits for them.
    pub tasks: TaskTracker,
    /// Cancelled by a stop: streams without an end of their own end.
    pub stop: CancellationToken,
}

impl Draining {
    /// Ends endless streams, and waits for the tasks.
    pub async fn finish(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Logs that a stop did not wait for all tasks.
    pub fn give_up(&self) {
        tracing::warn!(calls = self.tasks.len(), "the outcome of calls was not waited for");
    }
}

impl AuthorizedRequest {
    /// Reads the body: one JSON message.
    ///
    /// # Errors
    /// [`RequestRefusal`] if the body is not declared as JSON, is too long, or does not arrive.
    pub async fn message(&mut self) -> Result<Bytes, RequestRefusal> {
        let network = client_network(self.address);
        let counted = (!network.is_loopback()).then_some(network);
        let body = std::mem::take(&mut self.body);
        intake::read(&self.head.headers, body, self.body_bytes, counted).await
    }

    /// Returns whether the client accepts an event stream as an answer.
    pub fn reads_events(&self) -> bool {
        accepts(&self.head.headers, "text/event-stream")
    }

    /// Returns the request for the upstream, with this body and without a limit of time.
    pub fn exchange(&self, body: Bytes) -> Exchange {
        let headers = headers::to_upstream(&self.head.headers, self.authorized.authorization.clone());
        let (method, client) = (self.head.method.clone(), self.client_name());
        Exchange { method, headers, body, client, time_limit: None }
    }

    fn client_name(&self) -> ClientName {
        match &self.authorized.token {
            Some(token) => ClientName::Token(token.iss.clone(), token.sub.clone()),
            None if self.address.to_canonical().is_loopback() => ClientName::LocalProxy,
            None => ClientName::Address(client_network(self.address)),
        }
    }
}
