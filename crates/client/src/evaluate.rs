//! Policy evaluation without registration: `POST /v1/policy/evaluate`.

use bytes::Bytes;
use serde::Deserialize;

use crate::retry::Backoff;
use crate::{Client, ClientError, RequestBody};

/// Maximum size of a response.
const EVALUATION_BYTES: usize = 1 << 20;

/// The service's prediction for a statement.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Evaluation {
    /// `true` if registration would now return a receipt.
    pub would_admit: bool,
    /// The leaf index, if the statement is registered already.
    pub registered_at: Option<u64>,
    /// The policy rule that admits the statement.
    pub rule: Option<String>,
    /// The policy rule that refuses the statement.
    pub violation: Option<EvaluatedViolation>,
}

/// A violated policy rule, as reported by the service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EvaluatedViolation {
    /// Name of the rule.
    pub rule: String,
    /// Location in the statement.
    pub place: String,
    /// Description of the value found there.
    pub detail: String,
}

impl Client {
    /// Evaluates a statement against the service's policy, without registering it.
    ///
    /// # Errors
    /// [`ClientError`] if the service cannot be reached, or cannot evaluate the statement.
    pub async fn evaluate(&self, message: &Bytes) -> Result<Evaluation, ClientError> {
        let mut backoff = Backoff::within(self.options.patience);
        let url = self.url("v1/policy/evaluate")?;
        let accept = ("application/json", EVALUATION_BYTES);
        let answer =
            self.post_until_taken(&url, &RequestBody::statement(message), accept, &mut backoff).await?;
        let answer = answer.into_resource(accept.0)?;
        serde_json::from_slice(&answer.body).map_err(|error| ClientError::Nonsense(error.to_string()))
    }
}
