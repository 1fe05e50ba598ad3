//! A server that the gateway has its own credential for, or that is behind the gateway's own door (R-27, mode A).
//!
//! What such a server says about a credential is not for the client, who did not present it: with its challenge, a client
//! would log in at an authorization server of the server's choosing, and send us a token that is not for us, again and
//! again. So a refusal of the credential is an answer that did not come, and the operator reads why.
//!
//! Not here: a server that gets the client's own token (mode B), or one without any credential and any door of ours: what
//! that one says passes as it is.

use std::sync::Arc;

use async_trait::async_trait;
use http::StatusCode;
use http::header::WWW_AUTHENTICATE;

use super::{Answer, Exchange, Upstream, UpstreamError};

/// An upstream whose challenges are ours alone.
pub struct Discreet(Arc<dyn Upstream>);

impl Discreet {
    /// This upstream.
    pub fn new(inner: Arc<dyn Upstream>) -> Self {
        Self(inner)
    }
}

#[async_trait]
impl Upstream for Discreet {
    async fn exchange(&self, request: Exchange) -> Result<Answer, UpstreamError> {
        let mut answer = self.0.exchange(request).await?;
        let challenges = answer.headers.remove(WWW_AUTHENTICATE).is_some();
        let refused = answer.status == StatusCode::UNAUTHORIZED
            || (answer.status == StatusCode::FORBIDDEN && challenges);
        match refused {
            // A server that says so may have done it all the same.
            true => {
                Err(UpstreamError::Lost(format!("it refuses the gateway's credential ({})", answer.status)))
            }
            false => Ok(answer),
        }
    }
}
