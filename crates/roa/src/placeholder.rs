//! Values that stand in an execution receipt for the root envelope that a call did not have. No envelope and no
//! attestation may use them.

use crate::text::Sha256Digest;

/// The placeholder for the session.
pub const NO_SESSION: &str = "none";
/// The placeholder for the agent.
pub const UNKNOWN_AGENT: &str = "aha:unknown/unknown/unknown";
/// The placeholder for the policy's name.
pub const NO_POLICY: &str = "none";
/// The placeholder for the policy's digest.
pub const NO_POLICY_DIGEST: Sha256Digest = Sha256Digest::from_bytes([0; 32]);
/// The placeholder for the root envelope.
pub const NO_ROOT: &str = "env:0000000000000000";
/// The digest of the empty chain, `[]`.
pub const EMPTY_CHAIN: Sha256Digest = Sha256Digest::from_bytes([
    0x4f, 0x53, 0xcd, 0xa1, 0x8c, 0x2b, 0xaa, 0x0c, 0x03, 0x54, 0xbb, 0x5f, 0x9a, 0x3e, 0xcb, 0xe5, 0xed,
    0x12, 0xab, 0x4d, 0x8e, 0x11, 0xba, 0x87, 0x3c, 0x2f, 0x11, 0x16, 0x12, 0x02, 0xb9, 0x45,
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_no_chain_is_that_of_an_empty_array() {
        assert_eq!(EMPTY_CHAIN, Sha256Digest::of(b"[]"));
    }
}
