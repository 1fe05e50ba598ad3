//! Exit codes: what a script learns from a command without reading a word of it.

/// Every way a command can end. 3, 4 and 8 are never merged into 1: a verifier that could not
/// check and one that found a forgery are different news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Did it, or verified it.
    Success = 0,
    /// Failed for a reason that has no code of its own.
    Failure = 1,
    /// Unknown flag, missing argument.
    Usage = 2,
    /// A signature, proof, policy or digest is wrong.
    VerificationFailed = 3,
    /// Nothing to verify with, or nothing to verify.
    NotVerified = 4,
    /// No such entry, key or file.
    NotFound = 5,
    /// The service refused: policy, format, authorization.
    Refused = 6,
    /// Unreachable, timed out, or told to wait: try again.
    TryAgain = 7,
    /// The log contradicts itself or what it signed.
    LogMisbehaviour = 8,
    /// The newest checkpoint is older than the limit.
    Stale = 9,
    /// Exists already, and differs.
    Exists = 10,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
