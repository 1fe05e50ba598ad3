//! The JSON-RPC error in place of an answer that the upstream did not give, or that cannot be passed on.

use bytes::Bytes;

use crate::frame::{RawId, reply};

/// JSON-RPC error code: the upstream gave no answer.
pub const UPSTREAM_FAILED: i32 = -31001;

/// The text of the error where no cause is known.
pub const CAUSE_UNKNOWN: &str = "the upstream's answer is lost";

/// Returns the error for the request with this id; `None` if there is none or it could not be read.
pub fn lost_answer(id: Option<&RawId>, words: &str) -> Bytes {
    reply::error(id, UPSTREAM_FAILED, words, None)
}
