//! The description of a job and its result.

use data_encoding::BASE64;
use jose::json::JsonError;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use verification_store::{JobState, StoredJob, StoredReceipt};

/// A job.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobView {
    /// The name of the job, for `GET /jobs/{id}`.
    job: String,
    /// How far the job is.
    state: StateView,
    /// The code of the failure of a failed job.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// The reason of the failure of a failed job.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The result of a job that is done.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    result: Option<ResultView>,
}

/// The state of a job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StateView {
    /// The checks are not finished.
    Pending,
    /// The receipt is signed.
    Done,
    /// The checks could not be run, or no receipt signed.
    Failed,
}

/// The result of a job that is done.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResultView {
    /// The verdict of the receipt: pass, fail, partial or error.
    verdict: String,
    /// The verification receipt (VRF, section 4.1).
    #[schema(value_type = Object)]
    receipt: Value,
    /// The signed statement of the receipt: COSE_Sign1, in base64.
    statement: String,
    /// The entry ID of the statement: SHA-256 in lower-case hex.
    entry: String,
    /// The agent (`sub`).
    subject: String,
    /// The position in the agent's chain of receipts; absent outside of any chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// The URL of the log.
    log: String,
    /// The log's receipt in base64, once the log has answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    scitt_receipt: Option<String>,
    /// The reason why the log refuses the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl JobView {
    /// Describes a job.
    ///
    /// # Errors
    /// If the stored receipt is not JSON.
    pub fn of(job: StoredJob, log: &str) -> Result<Self, JsonError> {
        let (state, failure, result) = match job.state {
            JobState::Pending => (StateView::Pending, None, None),
            JobState::Failed { code, reason } => (StateView::Failed, Some((code, reason)), None),
            JobState::Done(receipt) => (StateView::Done, None, Some(ResultView::of(receipt, log)?)),
        };
        let (code, reason) = failure.unzip();
        Ok(Self { job: job.id, state, code, reason, result })
    }
}

impl ResultView {
    fn of(stored: StoredReceipt, log: &str) -> Result<Self, JsonError> {
        let receipt: Value = jose::json::read_bytes(&stored.receipt)?;
        Ok(Self {
            verdict: receipt["verdict"].as_str().unwrap_or_default().to_owned(),
            receipt,
            statement: BASE64.encode(&stored.statement),
            entry: stored.id.to_string(),
            subject: stored.subject,
            position: stored.position,
            log: log.to_owned(),
            scitt_receipt: stored.log_receipt.map(|receipt| BASE64.encode(&receipt)),
            refused: stored.refused,
        })
    }
}
