//! Request bodies: bounded one by one, in time, and all together.
//!
//! Bytes are reserved from the shared budget as they arrive, so a client that only announces a
//! large body holds nothing; the share is given back when the [`Received`] is dropped.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::house::House;
use crate::limits::{DISCARD_BYTES, DISCARD_TIME, Limits};
use crate::problem::Problem;

/// What all bodies in flight may take together.
pub struct BodyBudget(Arc<Semaphore>);

impl BodyBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
    }
}

/// A whole request body and its share of the budget.
pub struct Received {
    /// The bytes as they came.
    pub bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

impl<S> FromRequest<S> for Received
where
    S: AsRef<House> + Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let house = state.as_ref();
        Self::read(request, house, house.statement_bytes()).await
    }
}

impl Received {
    /// Lets go of the bytes and keeps their share, which then pays for copies of them.
    pub fn forget_bytes(&mut self) {
        self.bytes = Bytes::new();
    }

    /// Reads a body of at most so many bytes.
    pub async fn read(request: Request, house: &House, most: usize) -> Result<Self, Problem> {
        let limits = house.limits.load_full();
        let announced = announced(&request);
        let asks_first = request.headers().contains_key(EXPECT);
        let mut body = request.into_body();
        if announced.is_some_and(|length| length > most as u64) {
            if !asks_first {
                discard(&mut body).await;
            }
            return Err(too_large(most));
        }
        let reading = read(&mut body, house, &limits, announced, most);
        match tokio::time::timeout(limits.body_time, reading).await {
            Ok(Ok(received)) => Ok(received),
            Ok(Err(problem)) => {
                if problem.status == StatusCode::PAYLOAD_TOO_LARGE {
                    discard(&mut body).await;
                }
                Err(problem)
            }
            Err(_) => Err(too_slow(&limits)),
        }
    }
}

async fn read(
    body: &mut Body,
    house: &House,
    limits: &Limits,
    announced: Option<u64>,
    most: usize,
) -> Result<Received, Problem> {
    let mut share: Option<OwnedSemaphorePermit> = None;
    let mut bytes = BytesMut::new();
    let mut only: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| cut_short())?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + only.as_ref().map_or(0, Bytes::len) + data.len() > most {
            return Err(too_large(most));
        }
        let more = house.bodies.reserve(data.len()).ok_or_else(|| no_room(limits))?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        // The common case is one frame: keep it as it is, copy nothing.
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
    Ok(Received { bytes: only.unwrap_or_else(|| bytes.freeze()), _share: share })
}

/// Reads on for a moment, so that the answer reaches a client that is still sending.
async fn discard(body: &mut Body) {
    let reading = async {
        let mut seen = 0;
        while let Some(Ok(frame)) = body.frame().await {
            seen += frame.data_ref().map_or(0, Bytes::len);
            if seen > DISCARD_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME, reading).await;
}

fn announced(request: &Request) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
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
