//! What an answer of the log means for a statement.
//!
//! Only a status about the content of the request refuses a statement. Any other failure can come from a proxy, from a page
//! during maintenance, or from a log that does not know the sender, and decides nothing: the statement is submitted again.

use bytes::Bytes;
use client::ClientError;
use http::StatusCode;

use crate::log_connection::LogConnection;
use crate::statement::{DeliveredStatement, LogRefusal, PendingStatement, RefusedSubmission};

/// What an answer of the log means for a statement.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The log has the statement.
    Delivered(DeliveredStatement),
    /// The log refuses the statement; the outbox decides whether permanently.
    Refused(RefusedSubmission),
    /// The statement has to be submitted again, for this reason.
    Undecided(String),
}

impl Answer {
    /// Returns the meaning of an answer that came at `now`, in Unix seconds.
    pub(crate) fn of(
        sent: &PendingStatement,
        answer: Result<Bytes, ClientError>,
        log: &LogConnection,
        now: u64,
    ) -> Self {
        match answer {
            Ok(receipt) => match log.leaf_index(sent.id, &receipt, now) {
                Ok(leaf_index) => {
                    Self::Delivered(DeliveredStatement { sent: sent.clone(), leaf_index, receipt })
                }
                Err(why) => Self::Undecided(why),
            },
            Err(ClientError::Refused { status, problem }) if is_about_content(status) => {
                let refusal =
                    LogRefusal { rule: problem.get_rule().map(str::to_owned), text: problem.to_string() };
                Self::Refused(RefusedSubmission { sent: sent.clone(), refusal })
            }
            Err(error) => Self::Undecided(error.to_string()),
        }
    }
}

/// Returns whether a status is about the content of the request, and not about its address, its sender or the connection.
fn is_about_content(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    )
}

/// Returns whether the log takes nothing at present, so that other statements would get the same answer.
pub(crate) fn is_unavailable(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable(_) => true,
        ClientError::TryAgain { status, .. } => matches!(
            *status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        ),
        _ => false,
    }
}

/// Returns whether the log seems not to offer batches, which are an extension of Tabellion: other logs answer 404, 405, 410
/// or 501.
pub(crate) fn lacks_batches(error: &ClientError) -> bool {
    match error {
        ClientError::NotFound(_) => true,
        ClientError::Refused { status, .. } => {
            matches!(*status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::GONE)
        }
        ClientError::TryAgain { status, .. } => *status == StatusCode::NOT_IMPLEMENTED,
        _ => false,
    }
}

/// Returns whether a refusal is about the content of a batch, such as its size or one of its statements: submitting one by
/// one shows which.
pub(crate) fn is_about_batch(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status, .. } if is_about_content(*status))
}
