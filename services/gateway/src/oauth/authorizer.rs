//! The implementation of the front end's [`Authorizer`] by [`TokenCheck`].

use async_trait::async_trait;
use axum::response::IntoResponse;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;

use super::{Challenge, TokenCheck};
use crate::front::{Authorized, Authorizer};
use crate::relay::Response;

/// The `Retry-After` value while the issuer's keys are unreachable.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("10");

#[async_trait]
impl Authorizer for TokenCheck {
    async fn admit(&self, head: &Parts) -> Result<Authorized, Box<Response>> {
        match Self::admit(self, &head.headers, Timestamp::now()).await {
            Ok(admitted) => Ok(Authorized {
                token: Some(admitted.subject),
                authorization: admitted.passes,
                certificate: None,
            }),
            Err(challenge) => {
                tracing::debug!(why = challenge.why, status = %challenge.status, "not let in");
                Err(Box::new(answer(&challenge)))
            }
        }
    }
}

/// The response to the client, without the reason of the refusal.
fn answer(challenge: &Challenge) -> Response {
    let mut answer = challenge.status.into_response();
    let headers = answer.headers_mut();
    if let Some(value) =
        challenge.www_authenticate.as_deref().and_then(|text| HeaderValue::from_str(text).ok())
    {
        headers.insert(header::WWW_AUTHENTICATE, value);
    }
    if challenge.status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
