//! What the commands `roa` and `registry` share: the time of issue, digests of policies, and failures.

use jiff::Timestamp;
use roa::text::{NotOfForm, Sha256Digest, UtcTime};

use crate::console::{Exit, Failure};

/// Returns the failure for an argument that does not have its form.
pub fn usage(error: &NotOfForm) -> Failure {
    Failure::new(Exit::Usage, "usage", error.to_string())
}

/// Returns the current time, without its fraction of a second.
pub fn now() -> UtcTime {
    let now = Timestamp::now();
    UtcTime::from_unix_seconds(now.as_second()).unwrap_or(UtcTime(now))
}

/// Returns the digest of a policy document: of its canonical form if it is JSON, otherwise of its bytes.
pub fn policy_digest(document: &[u8]) -> Sha256Digest {
    match jose::json::parse_strict(document, jose::json::Limits::default()) {
        Ok(json) => Sha256Digest::of(&jose::jcs::canonical(&json)),
        Err(_) => Sha256Digest::of(document),
    }
}
