//! Batch registration: several statements in one request (`POST /v1/entries/batch`). A Tabellion extension, not part of
//! SCRAPI.
//!
//! A batch is an optimization: statements whose result stays open (202, 429, server errors) are registered one by one,
//! so that each has the same result as alone.

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use http::StatusCode;
use reqwest::Url;
use scitt::{Problem, SignedStatement};
use serde::Deserialize;
use verifier::TrustStore;

use crate::multipart::RequestBody;
use crate::retry::Backoff;
use crate::wire::{MAX_ANSWER_BYTES, error_of, problem_in_json};
use crate::{Client, ClientError, RegisteredStatement};

/// Maximum number of statements in one batch.
pub const BATCH_STATEMENTS: usize = 256;

/// A statement and its encoding as sent, including certificates in the unprotected header.
pub type BatchMessage<'m> = (&'m SignedStatement, &'m Bytes);

#[derive(Deserialize)]
struct BatchAnswer {
    results: Vec<BatchItem>,
}

#[derive(Deserialize)]
struct BatchItem {
    status: u16,
    location: Option<String>,
    receipt: Option<String>,
    problem: Option<serde_json::Value>,
}

impl Client {
    /// Registers up to [`BATCH_STATEMENTS`] statements in one request and verifies each receipt. One result for each
    /// statement.
    ///
    /// # Errors
    /// If the service rejects the batch as a whole; the results of its statements are then unknown.
    pub async fn register_batch(
        &self,
        messages: &[BatchMessage<'_>],
        trust: &TrustStore,
        now: u64,
    ) -> Result<Vec<Result<RegisteredStatement, ClientError>>, ClientError> {
        let (results, url) = self.post_batch(messages.iter().map(|(_, message)| &message[..])).await?;
        let mut outcomes = Vec::with_capacity(results.len());
        for (message, part) in messages.iter().zip(results) {
            outcomes.push(self.conclude(message, part, &url, trust, now).await);
        }
        Ok(outcomes)
    }

    /// Submits up to [`BATCH_STATEMENTS`] statements in one request and returns the unverified receipts. For callers
    /// with their own queue: a statement whose result stays open has the error
    /// [`StillRunning`](ClientError::StillRunning) or [`TryAgain`](ClientError::TryAgain).
    ///
    /// # Errors
    /// As [`register_batch`](Self::register_batch).
    pub async fn submit_batch(
        &self,
        messages: &[Bytes],
    ) -> Result<Vec<Result<Bytes, ClientError>>, ClientError> {
        let (results, url) = self.post_batch(messages.iter().map(|message| &message[..])).await?;
        Ok(results.into_iter().map(|part| part.receipt(&url)).collect())
    }

    /// Sends a batch; returns one result for each message, and the URL of the response.
    async fn post_batch<'m>(
        &self,
        messages: impl ExactSizeIterator<Item = &'m [u8]>,
    ) -> Result<(Vec<BatchItem>, Url), ClientError> {
        let sent = messages.len();
        let body = RequestBody::batch(messages)?;
        let mut backoff = Backoff::within(self.patience());
        let (url, json) = (self.url("v1/entries/batch")?, ("application/json", MAX_ANSWER_BYTES));
        let answer = self.post_until_taken(&url, &body, json, &mut backoff).await?.into_resource(json.0)?;
        let nonsense = |why: String| ClientError::Nonsense(format!("v1/entries/batch: {why}"));
        let BatchAnswer { results } =
            serde_json::from_slice(&answer.body).map_err(|error| nonsense(error.to_string()))?;
        match results.len() == sent {
            true => Ok((results, answer.url)),
            false => Err(nonsense(format!("{} results for {sent} parts", results.len()))),
        }
    }

    async fn conclude(
        &self,
        (statement, message): &BatchMessage<'_>,
        part: BatchItem,
        url: &Url,
        trust: &TrustStore,
        now: u64,
    ) -> Result<RegisteredStatement, ClientError> {
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

impl BatchItem {
    /// The receipt of a 201 result; otherwise the error.
    fn receipt(self, url: &Url) -> Result<Bytes, ClientError> {
        let status = StatusCode::from_u16(self.status)
            .map_err(|_| ClientError::Nonsense(format!("status {} in a batch", self.status)))?;
        let location = || self.location.as_deref().and_then(|location| url.join(location).ok());
        match (status, self.receipt.as_deref().map(|text| BASE64URL_NOPAD.decode(text.as_bytes()))) {
            (StatusCode::CREATED, Some(Ok(receipt))) => Ok(receipt.into()),
            (StatusCode::ACCEPTED, _) => Err(ClientError::StillRunning(location().unwrap_or(url.clone()))),
            (status, _) if status.is_success() => {
                Err(ClientError::Nonsense(format!("status {status} without a receipt in a batch")))
            }
            (status, _) => Err(error_of(status, problem(status, self.problem.as_ref()))),
        }
    }
}

fn problem(status: StatusCode, members: Option<&serde_json::Value>) -> Box<Problem> {
    let fallback = || Problem::new(status.canonical_reason().unwrap_or("Unknown status"), status.as_str());
    Box::new(members.and_then(problem_in_json).unwrap_or_else(fallback))
}
