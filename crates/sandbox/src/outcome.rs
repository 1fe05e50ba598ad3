//! Outcomes of runs.

use serde::{Deserialize, Serialize};

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How the guest ended.
    pub ending: Ending,
    /// The returned value as JSON text, if a function was called and returned one.
    pub value: Option<String>,
    /// Standard output, at most `limits.output` bytes.
    pub stdout: Vec<u8>,
    /// Standard error, at most `limits.output` bytes.
    pub stderr: Vec<u8>,
    /// Units of work that were used, if the engine counts them.
    pub fuel: Option<u64>,
    /// Wall time in milliseconds.
    pub elapsed_ms: u64,
}

/// How a guest ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The function returned, or the program ended with exit code 0.
    Finished,
    /// The program ended with another exit code.
    Exited(i32),
    /// The function threw; the text is the exception, shortened.
    Threw(String),
    /// The function was not called: its file could not be loaded or does not have it. The text says why, shortened.
    NotLoaded(String),
    /// The function returned a value that is not one JSON text. The text says why, shortened.
    NotJson(String),
    /// The guest used up its fuel.
    OutOfFuel,
    /// The function used up its memory. A program that does ends by itself, with an exit code or a signal.
    OutOfMemory,
    /// The guest reached the bound on wall time.
    OutOfTime,
    /// The guest wrote more than allowed.
    TooMuchOutput,
    /// The guest was ended by a signal or trap, whose name this is.
    Crashed(String),
}

/// An engine and its version, as far as results depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// The value of `metadata.sandbox` (VRF, section 4.2.5): `wasm`, `subprocess` or `none`.
    pub sandbox: String,
    /// The engine's name, such as `quickjs-ng in wasmtime`.
    pub name: String,
    /// The engine's version.
    pub version: String,
    /// SHA-256 digests of the files that make up the engine, such as `("quickjs.wasm", "sha256:…")`.
    pub digests: Vec<(String, String)>,
}

/// A failure of the sandbox itself, not of the guest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The sandbox cannot run calls of this kind.
    #[error("this sandbox cannot run {0}")]
    Unsupported(String),
    /// A restriction is missing, so that the sandbox must not be used.
    #[error("the sandbox does not isolate: {0}")]
    NotIsolated(String),
    /// A file of the engine is not the one that was tested and described.
    #[error("{0} has changed since this process started")]
    Changed(String),
    /// The guest could not be started, or its result could not be read.
    #[error("the sandbox failed: {0}")]
    Failed(String),
}
