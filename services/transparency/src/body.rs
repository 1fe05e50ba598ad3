//! Request bodies: bounded in size and time, per client, and in total.
//!
//! Bytes are reserved from the budget as they arrive, so a client that only announces a large body reserves nothing.
//! The reservation ends when the [`Received`] is dropped. No client gets more than its share, and the first bytes of
//! each body come from a separate pool: slow large bodies exclude neither other clients nor small statements. Callers
//! with a token have a reserve that anonymous callers cannot use up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::doors::{Bucket, Turnstile};
use crate::house::House;
use crate::limits::{
    DISCARD_BYTES, DISCARD_TIME, Limits, SHARE_PART, SMALL_BODIES, SMALL_BODIES_PART, SMALL_BODY_BYTES,
    TOKENS_PART,
};
use crate::problem::Problem;

/// The budget for all bodies in flight together.
pub struct BodyBudget {
    /// Pool for the first bytes of each body.
    small: Arc<Pool>,
    /// Pool for all further bytes.
    large: Arc<Pool>,
    small_bytes: usize,
}

impl BodyBudget {
    /// Creates a budget of `bytes`. A client's share has room for at least one body of `largest` bytes.
    pub fn new(bytes: usize, largest: usize) -> Self {
        let small = bytes / SMALL_BODIES_PART;
        Self {
            small: Pool::new(small, small / SHARE_PART),
            large: Pool::new(bytes, (bytes / SHARE_PART).max(largest).min(bytes)),
            small_bytes: SMALL_BODY_BYTES.min(small / SHARE_PART / SMALL_BODIES),
        }
    }

    /// Reserves `more` bytes for a body of which `before` bytes have arrived; `None` if there is no room.
    fn reserve(&self, client: Bucket, before: usize, more: usize) -> Option<Reserved> {
        let pool = if before + more <= self.small_bytes { &self.small } else { &self.large };
        pool.reserve(client, more)
    }
}

/// A number of bytes that clients share.
struct Pool {
    all: Arc<Semaphore>,
    /// Additional permits for callers with a token.
    reserve: Arc<Semaphore>,
    /// The largest number of bytes one client may reserve.
    share: usize,
    used: Mutex<HashMap<Bucket, usize>>,
}

impl Pool {
    fn new(bytes: usize, share: usize) -> Arc<Self> {
        let semaphore = |bytes: usize| Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self {
            all: semaphore(bytes),
            reserve: semaphore(bytes / TOKENS_PART),
            share,
            used: Mutex::default(),
        })
    }

    fn reserve(self: &Arc<Self>, client: Bucket, bytes: usize) -> Option<Reserved> {
        let count = u32::try_from(bytes).ok()?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = used.get(&client).copied().unwrap_or_default();
        if of_client + bytes > self.share {
            return None;
        }
        let taken = self.all.clone().try_acquire_many_owned(count);
        let taken = match client {
            Bucket::Token(_) => taken.or_else(|_| self.reserve.clone().try_acquire_many_owned(count)),
            _ => taken,
        };
        let permit = taken.ok()?;
        used.insert(client, of_client + bytes);
        Some(Reserved { pool: self.clone(), client, bytes, _permit: permit })
    }

    fn give_back(&self, client: Bucket, bytes: usize) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let left = used.get(&client).copied().unwrap_or_default().saturating_sub(bytes);
        match left {
            0 => used.remove(&client),
            left => used.insert(client, left),
        };
    }
}

/// Bytes reserved for a client, released on drop.
struct Reserved {
    pool: Arc<Pool>,
    client: Bucket,
    bytes: usize,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.pool.give_back(self.client, self.bytes);
    }
}

/// A complete request body with its reservation in the budget.
pub struct Received {
    /// The bytes as received.
    pub bytes: Bytes,
    _reserved: Vec<Reserved>,
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
    /// Drops the bytes and keeps their reservation, which then accounts for copies of them.
    pub fn forget_bytes(&mut self) {
        self.bytes = Bytes::new();
    }

    /// Reads a body of at most `most` bytes.
    pub async fn read(request: Request, house: &House, most: usize) -> Result<Self, Problem> {
        let limits = house.limits.load_full();
        let announced = announced(&request);
        let asks_first = request.headers().contains_key(EXPECT);
        let client = request.extensions().get::<Turnstile>().map_or(Bucket::Crowd, Turnstile::bucket);
        let mut body = request.into_body();
        if announced.is_some_and(|length| length > most as u64) {
            if !asks_first {
                discard(&mut body).await;
            }
            return Err(too_large(most));
        }
        let reading = read(&mut body, house, client, announced, most);
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
    client: Bucket,
    announced: Option<u64>,
    most: usize,
) -> Result<Received, Problem> {
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
        let more = house.bodies.reserve(client, before, data.len());
        reserved.push(more.ok_or_else(|| no_room(&house.limits.load()))?);
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
    Ok(Received { bytes: only.unwrap_or_else(|| bytes.freeze()), _reserved: reserved })
}

/// Reads up to [`DISCARD_BYTES`] for at most [`DISCARD_TIME`], so that a client that is still sending gets the
/// response.
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
