//! The interface to the authentication of clients.

use admission::principal::TokenSubject;
use async_trait::async_trait;
use http::HeaderValue;
use http::request::Parts;

use crate::relay::Response;

/// Authentication of a request, before its body is read.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// Authenticates the sender of a request.
    ///
    /// # Errors
    /// The response to a refused client: 401 or 403 with its challenge, or 503 while the issuer's keys are unreachable.
    async fn admit(&self, head: &Parts) -> Result<Authorized, Box<Response>>;
}

/// The identity of an authenticated client.
#[derive(Clone, Debug, Default)]
pub struct Authorized {
    /// Issuer and subject of the client's token, if it presented one.
    pub token: Option<TokenSubject>,
    /// The thumbprint of the client's certificate, which the front end sets.
    pub certificate: Option<String>,
    /// The `Authorization` header for the upstream: the client's own token in mode B, otherwise none. The
    /// gateway's own credential is added by the upstream.
    pub authorization: Option<HeaderValue>,
}

/// An [`Authorizer`] that accepts every request, and forwards no token.
pub struct AllowAll;

#[async_trait]
impl Authorizer for AllowAll {
    async fn admit(&self, _: &Parts) -> Result<Authorized, Box<Response>> {
        Ok(Authorized::default())
    }
}
