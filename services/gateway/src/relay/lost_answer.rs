//! The JSON-RPC error in place of an answer that the upstream did not give, or that cannot be passed on.

use bytes::Bytes;

use super::Over;
use crate::frame::{RawId, reply};
use crate::upstream::UpstreamError;

/// JSON-RPC error code: the upstream gave no answer.
pub const UPSTREAM_FAILED: i32 = -31001;

/// Returns the error for the request with this id, whose answer ended in this way; `None` if there is no id or it could not
/// be read.
pub fn lost_answer(id: Option<&RawId>, how: &Over) -> Bytes {
    let words = match how {
        Over::Broken(error @ UpstreamError::Overdue { .. }) => {
            format!("{error}; the outcome of the request is unknown")
        }
        _ => "the upstream's answer is lost".to_owned(),
    };
    reply::error(id, UPSTREAM_FAILED, &words, None)
}
