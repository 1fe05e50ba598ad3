//! Limits of this crate, in one place.

/// Number of entries in one page, thus in memory at once.
pub const PAGE: usize = 64;
/// Number of heads that are read at once.
pub const HEADS: usize = 256;
/// Maximum number of findings in an [`AuditReport`](crate::AuditReport); further ones are only counted.
pub const MAX_FINDINGS: usize = 1_000;
/// Maximum number of entries with missing bytes that wait for an explanation; further ones are only counted.
pub const MAX_WAITING: usize = 1_000_000;
/// Maximum number of explanations in an [`AuditReport`](crate::AuditReport); entries explained by others are counted
/// together.
pub const MAX_EXPLANATIONS: usize = 10_000;
/// Maximum number of newer heads that [`Audit::settle`](crate::Audit::settle) reads to explain missing bytes.
pub const MAX_ROUNDS: usize = 8;
/// Maximum number of bytes of a stored text that a finding repeats.
pub const MAX_QUOTE_BYTES: usize = 200;
/// Maximum number of operator actions in an [`AuditReport`](crate::AuditReport); further ones are only counted.
pub const MAX_ACTIONS: usize = 10_000;
/// Maximum length in bytes of a stored [`AuditState`](crate::AuditState): about 14 million entries and claims of an audit
/// from outside.
pub const MAX_AUDIT_STATE_BYTES: u64 = 1 << 30;
