//! Exit codes of commands, for scripts.

/// The exit codes, listed in `tabellion help exit-codes`. 3, 4 and 8 are separate from 1 on purpose: a verifier that
/// could not check and one that found a forgery are different results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded, or the verification did.
    Success = 0,
    /// The command failed for a reason without its own code.
    Failure = 1,
    /// Invalid arguments, such as an unknown flag.
    Usage = 2,
    /// A signature, proof, policy or digest is wrong.
    VerificationFailed = 3,
    /// The verification was impossible: a key or the object to verify is missing.
    NotVerified = 4,
    /// The entry, key or file does not exist.
    NotFound = 5,
    /// The service refused the request: policy, format, authorization.
    Refused = 6,
    /// The service is unreachable, timed out, or asked to retry later.
    TryAgain = 7,
    /// The log contradicts itself or its own signatures.
    LogMisbehaviour = 8,
    /// The newest checkpoint is older than the limit.
    Stale = 9,
    /// The target exists with different contents.
    Exists = 10,
    /// The answer of a search is complete but for entries that it names.
    CompleteBut = 11,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
