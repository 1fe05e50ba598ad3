//! Request bodies: bounded in size and time, per client, and in total.
//!
//! Bytes are reserved from the budget as they arrive, so a client that only announces a large body reserves nothing.
//! The reservation ends when the [`ReceivedBody`] is dropped. No client gets more than its share, and the first bytes of
//! each body come from a separate pool: slow large bodies exclude neither other clients nor small statements. Callers
//! with a token have a reserve that anonymous callers cannot use up.
//!
//! Not here: what a client still sends of a body that is refused (`serving`).

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use serving::content_coding::is_coded;

use crate::edge::body_budget::ReservedBytes;
use crate::edge::problem::{CONTENT_CODING, Problem};
use crate::edge::rate_limit::RequestCharge;
use crate::edge::state::EdgeState;
use crate::limits::Limits;
use crate::quota::meter::RateBucket;

/// A complete request body with its reservation in the budget.
pub struct ReceivedBody {
    /// The bytes as received.
    pub bytes: Bytes,
    _reserved: Vec<ReservedBytes>,
}

impl<S> FromRequest<S> for ReceivedBody
where
    S: AsRef<EdgeState> + Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let edge = state.as_ref();
        Self::read(request, edge, edge.statement_bytes()).await
    }
}

impl ReceivedBody {
    /// Drops the bytes and keeps their reservation, which then accounts for copies of them.
    pub fn forget_bytes(&mut self) {
        self.bytes = Bytes::new();
    }

    /// Reads a body of at most `most` bytes.
    pub async fn read(request: Request, edge: &EdgeState, most: usize) -> Result<Self, Problem> {
        if is_coded(request.headers()) {
            return Err(coded());
        }
        let limits = edge.limits.load_full();
        let announced = announced(&request);
        let client =
            request.extensions().get::<RequestCharge>().map_or(RateBucket::Unknown, RequestCharge::bucket);
        if announced.is_some_and(|length| length > most as u64) {
            return Err(too_large(most));
        }
        let mut body = request.into_body();
        let reading = read(&mut body, edge, client, announced, most);
        tokio::time::timeout(limits.body_time, reading).await.unwrap_or_else(|_| Err(too_slow(&limits)))
    }
}

async fn read(
    body: &mut Body,
    edge: &EdgeState,
    client: RateBucket,
    announced: Option<u64>,
    most: usize,
) -> Result<ReceivedBody, Problem> {
    let mut reserved = Vec::new();
    let mut bytes = BytesMut::new();
    let mut only: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| cut_short())?;
        let Ok(data) = frame.into_data() else { continue };
        let before = bytes.len() + only.as_ref().map_or(0, Bytes::len);
        if before + data.len() > most {
            return Err(too_large(most));
        }
        let more = edge.bodies.reserve(client, before, data.len());
        reserved.push(more.ok_or_else(|| no_room(&edge.limits.load()))?);
        // The common case is one frame: keep it without a copy.
        match only.take() {
            None if bytes.is_empty() => only = Some(data),
            None => bytes.extend_from_slice(&data),
            Some(first) => {
                bytes.reserve(announced.unwrap_or(0).min(most as u64) as usize);
                bytes.extend_from_slice(&first);
                bytes.extend_from_slice(&data);
            }
        }
    }
    Ok(ReceivedBody { bytes: only.unwrap_or_else(|| bytes.freeze()), _reserved: reserved })
}

fn announced(request: &Request) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn coded() -> Problem {
    let detail = "The request body has a content coding; it is accepted without one";
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, CONTENT_CODING, "Unsupported Media Type", detail)
}

fn too_large(most: usize) -> Problem {
    let detail = format!("The request body is larger than {most} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Content Too Large", detail)
}

fn too_slow(limits: &Limits) -> Problem {
    let detail = format!("The request body did not arrive within {} seconds", limits.body_time.as_secs_f32());
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body-timeout", "Request Timeout", detail)
}

fn cut_short() -> Problem {
    Problem::malformed("body-cut-short", "The request body ended before it was complete")
}

fn no_room(limits: &Limits) -> Problem {
    Problem::busy(
        "bodies-in-flight",
        "The service is reading as many statements as it has room for",
        limits.retry_after.into(),
    )
}
