//! Who comes in: the seam to the checking of tokens.

use admission::principal::TokenSubject;
use async_trait::async_trait;
use http::HeaderValue;
use http::request::Parts;

use super::Response;

/// Checks who sends a request, before its body is read.
#[async_trait]
pub trait Admits: Send + Sync + 'static {
    /// Who it is.
    ///
    /// # Errors
    /// The answer to whoever stays outside: 401 or 403, with its challenge.
    async fn admit(&self, head: &Parts) -> Result<Admitted, Box<Response>>;
}

/// Who came in.
#[derive(Clone, Debug, Default)]
pub struct Admitted {
    /// Whose token it showed.
    pub token: Option<TokenSubject>,
    /// The thumbprint of its certificate or DPoP key.
    pub certificate: Option<String>,
    /// What the upstream gets as `Authorization`: the client's own token in mode B, else nothing. A credential of the
    /// gateway's own is the upstream's business.
    pub authorization: Option<HeaderValue>,
}

/// Lets everybody in, and no token through.
pub struct OpenDoor;

#[async_trait]
impl Admits for OpenDoor {
    async fn admit(&self, _: &Parts) -> Result<Admitted, Box<Response>> {
        Ok(Admitted::default())
    }
}
