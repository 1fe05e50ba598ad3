//! The JSON-RPC error in place of an answer that the upstream did not give, or that cannot be passed on.

use std::borrow::Cow;

use bytes::Bytes;

use super::Over;
use crate::frame::{RawId, reply};
use crate::upstream::UpstreamError;

/// JSON-RPC error code: the upstream gave no answer.
pub const UPSTREAM_FAILED: i32 = -31001;

/// The text of the error where no cause is known.
pub const CAUSE_UNKNOWN: &str = "the upstream's answer is lost";

/// Returns the text of the error for an answer that ended in this way: it names a server that did not answer in time.
pub fn cause(how: &Over) -> Cow<'static, str> {
    match how {
        Over::Broken(error @ UpstreamError::Overdue { .. }) => failure_text(error),
        _ => CAUSE_UNKNOWN.into(),
    }
}

/// Returns the text for a client: without the address of the upstream and other internal details.
pub fn failure_text(error: &UpstreamError) -> Cow<'static, str> {
    let words = match error {
        UpstreamError::Overdue { .. } => {
            return format!("{error}; the outcome of the request is unknown").into();
        }
        UpstreamError::NeverSent(_) => "the upstream cannot be reached; the request had no effect",
        UpstreamError::Lost(_) => "the upstream's answer is lost; the outcome of the request is unknown",
        UpstreamError::TimedOut => {
            "the upstream gave no answer in time; the outcome of the request is unknown"
        }
    };
    words.into()
}

/// Returns the error for the request with this id; `None` if there is none or it could not be read.
pub fn lost_answer(id: Option<&RawId>, words: &str) -> Bytes {
    reply::error(id, UPSTREAM_FAILED, words, None)
}
