//! Many statements in one request (`POST /v1/entries/batch`): Tabellion's own, not SCRAPI's.
//!
//! A batch is a faster way to do the same: what it leaves open (accepted for later, turned away for now) is registered
//! one by one, so that each statement ends as it would have ended alone.

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use http::StatusCode;
use reqwest::Url;
use scitt::{Problem, SignedStatement};
use serde::Deserialize;
use verifier::TrustStore;

use crate::multipart::Body;
use crate::retry::Backoff;
use crate::wire::{MAX_ANSWER_BYTES, error_of, problem_in_json};
use crate::{Client, ClientError, Registered};

/// Statements that one batch may hold.
pub const BATCH_STATEMENTS: usize = 256;

/// A statement and what is sent for it: certificates in its unprotected header included.
pub type Message<'m> = (&'m SignedStatement, &'m Bytes);

#[derive(Deserialize)]
struct Results {
    results: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    status: u16,
    location: Option<String>,
    receipt: Option<String>,
    problem: Option<serde_json::Value>,
}

impl Client {
    /// Registers up to [`BATCH_STATEMENTS`] statements in one request, and verifies each receipt: one result for each.
    ///
    /// # Errors
    /// If the service does not take batches, or this one as a whole; nothing is known then about any statement.
    pub async fn register_batch(
        &self,
        messages: &[Message<'_>],
        trust: &TrustStore,
        now: u64,
    ) -> Result<Vec<Result<Registered, ClientError>>, ClientError> {
        let body = Body::batch(messages.iter().map(|(_, message)| &message[..]))?;
        let mut backoff = Backoff::within(self.patience());
        let (url, json) = (self.url("v1/entries/batch")?, ("application/json", MAX_ANSWER_BYTES));
        let answer = self.post_until_taken(&url, &body, json, &mut backoff).await?;
        let nonsense = |why: String| ClientError::Nonsense(format!("v1/entries/batch: {why}"));
        let Results { results } =
            serde_json::from_slice(&answer.body).map_err(|error| nonsense(error.to_string()))?;
        if results.len() != messages.len() {
            return Err(nonsense(format!("{} results for {} parts", results.len(), messages.len())));
        }
        let mut outcomes = Vec::with_capacity(results.len());
        for (message, part) in messages.iter().zip(results) {
            outcomes.push(self.conclude(message, part, &answer.url, trust, now).await);
        }
        Ok(outcomes)
    }

    async fn conclude(
        &self,
        (statement, message): &Message<'_>,
        part: Part,
        url: &Url,
        trust: &TrustStore,
        now: u64,
    ) -> Result<Registered, ClientError> {
        let status = StatusCode::from_u16(part.status)
            .map_err(|_| ClientError::Nonsense(format!("status {} in a batch", part.status)))?;
        let receipt = part.receipt.and_then(|text| BASE64URL_NOPAD.decode(text.as_bytes()).ok());
        let location = part.location.and_then(|location| url.join(&location).ok());
        match (status, receipt, location) {
            (StatusCode::CREATED, Some(receipt), Some(location)) => {
                self.verified(statement, location, receipt.into(), trust, now)
            }
            (StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::TOO_MANY_REQUESTS, ..) => {
                self.register_message(statement, message, trust, now).await
            }
            (status, ..) if status.is_server_error() => {
                self.register_message(statement, message, trust, now).await
            }
            (status, ..) => Err(error_of(status, problem(status, part.problem.as_ref()))),
        }
    }
}

fn problem(status: StatusCode, members: Option<&serde_json::Value>) -> Box<Problem> {
    let fallback = || Problem::new(status.canonical_reason().unwrap_or("Unknown status"), status.as_str());
    Box::new(members.and_then(problem_in_json).unwrap_or_else(fallback))
}
