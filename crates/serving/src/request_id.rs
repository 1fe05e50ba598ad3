//! The number of each request: in the header field `X-Request-Id` of its response, and in the log.
//!
//! The listener gives a number to every request that hyper accepts, of every daemon. A number that the client sends is
//! ignored, so that no client can make two requests look like one.

use std::convert::Infallible;
use std::fmt;
use std::time::Instant;

use axum::body::Body;
use axum::response::Response;
use http::{Extensions, HeaderName, HeaderValue, Request, StatusCode};
use tower::{Service, ServiceExt};
use tracing::Instrument;
use uuid::Uuid;

/// Header field with the request's number.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The number of a request: a random UUID. The listener adds it to the extensions of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub Uuid);

impl RequestId {
    /// Returns the number of a request, or a new one for a request that came through no listener.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_else(Self::random)
    }

    fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Passes a request on under a new number, and returns the number with the response, which has it too. Writes a line to the log
/// if `access_log` is set.
pub(crate) async fn numbered<S>(
    service: S,
    mut request: Request<Body>,
    access_log: bool,
) -> Result<(RequestId, Response), Infallible>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    let id = RequestId::random();
    request.extensions_mut().insert(id);
    let mut response = match access_log {
        true => logged(service, request, id).await?,
        false => service.oneshot(request).await?,
    };
    if let Ok(number) = HeaderValue::try_from(id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, number);
    }
    Ok((id, response))
}

/// Passes a request on, and logs its response. The query is not logged: it may hold a secret.
async fn logged<S>(service: S, request: Request<Body>, id: RequestId) -> Result<Response, Infallible>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    let span = tracing::info_span!("request", %id, method = %request.method(), path = request.uri().path());
    let begun = Instant::now();
    let response = service.oneshot(request).instrument(span.clone()).await?;
    span.in_scope(|| log(response.status(), begun.elapsed().as_secs_f64()));
    Ok(response)
}

fn log(status: StatusCode, seconds: f64) {
    let number = status.as_u16();
    match status.is_client_error() || status.is_server_error() {
        true => tracing::info!(status = number, seconds, "answered"),
        false => tracing::debug!(status = number, seconds, "answered"),
    }
}
