//! Every bound this crate applies, in one place.

/// Entries that are in memory at once.
pub const PAGE: usize = 64;
/// Heads of the history that are read at once.
pub const HEADS: usize = 256;
/// Findings that a report lists; more are only counted.
pub const MAX_FINDINGS: usize = 1_000;
/// Entries without bytes that wait for the statement that explains them; more are only counted.
pub const MAX_WAITING: usize = 1_000_000;
/// Explanations that a report lists by the entry that gives them; more are counted together.
pub const MAX_EXPLANATIONS: usize = 10_000;
/// How often the audit goes on to what was committed meanwhile, to find out why bytes are gone.
pub const MAX_ROUNDS: usize = 8;
/// Characters of a stored text that a finding repeats.
pub const MAX_TOLD: usize = 200;
/// Actions of operators that a report lists; more are only counted.
pub const MAX_ACTIONS: usize = 10_000;
