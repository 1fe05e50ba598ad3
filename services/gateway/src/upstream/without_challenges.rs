//! An upstream to which the gateway presents its own credential, or that is behind the gateway's own authorization
//! (R-27, mode A).
//!
//! Such a server's authentication challenge must not reach the client, which did not present the credential: the client
//! would log in at an authorization server of the upstream's choosing and send us a token that is not meant for us,
//! again and again. A refused credential is therefore reported as a lost answer, and the reason is logged for the
//! operator.
//!
//! Not here: a server that receives the client's own token (mode B), or one without credential and without
//! authorization at the gateway. Their challenges pass unchanged.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};

use super::{Exchange, SessionHold, Upstream, UpstreamAnswer, UpstreamError};

/// An [`Upstream`] whose authentication challenges are not passed to the client.
pub struct WithoutChallenges(Arc<dyn Upstream>);

impl WithoutChallenges {
    /// Wraps this upstream.
    pub fn new(inner: Arc<dyn Upstream>) -> Self {
        Self(inner)
    }
}

#[async_trait]
impl Upstream for WithoutChallenges {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let mut answer = self.0.exchange(request).await?;
        let challenges = answer.headers.remove(WWW_AUTHENTICATE).is_some();
        let refused = answer.status == StatusCode::UNAUTHORIZED
            || (answer.status == StatusCode::FORBIDDEN && challenges);
        match refused {
            // The server may have executed the request although it refused, so the answer counts as lost.
            true => {
                Err(UpstreamError::Lost(format!("it refuses the gateway's credential ({})", answer.status)))
            }
            false => Ok(answer),
        }
    }

    fn hold(&self, headers: &HeaderMap) -> SessionHold {
        self.0.hold(headers)
    }
}
