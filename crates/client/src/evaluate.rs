//! What would become of a statement: `POST /v1/policy/evaluate`. Nothing is registered.

use bytes::Bytes;
use serde::Deserialize;

use crate::retry::Backoff;
use crate::{Body, Client, ClientError};

/// Bytes of an answer.
const EVALUATION_BYTES: usize = 1 << 20;

/// What a service says would become of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Evaluation {
    /// Whether registering it now would be answered with a receipt.
    pub would_admit: bool,
    /// The leaf that holds it already.
    pub registered_at: Option<u64>,
    /// The rule that admits.
    pub rule: Option<String>,
    /// The rule that refuses.
    pub violation: Option<Violation>,
}

/// A rule that a statement breaks, as the service tells it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Violation {
    /// The rule.
    pub rule: String,
    /// Where.
    pub place: String,
    /// What was found there.
    pub detail: String,
}

impl Client {
    /// What would become of a statement.
    ///
    /// # Errors
    /// If the service cannot be reached, or cannot say.
    pub async fn evaluate(&self, message: &Bytes) -> Result<Evaluation, ClientError> {
        let mut backoff = Backoff::within(self.options.patience);
        let url = self.url("v1/policy/evaluate")?;
        let accept = ("application/json", EVALUATION_BYTES);
        let answer = self.post_until_taken(&url, &Body::statement(message), accept, &mut backoff).await?;
        serde_json::from_slice(&answer.body).map_err(|error| ClientError::Nonsense(error.to_string()))
    }
}
