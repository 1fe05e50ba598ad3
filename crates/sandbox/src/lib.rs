//! Execution of untrusted programs: no network, no files but the program's own, bounded memory, time and output.
//!
//! A [`Sandbox`] runs one [`Job`] in a fresh guest and reports an [`Outcome`]. A guest that misbehaves is an outcome, not an
//! error; an error means that the sandbox itself failed. Nothing that a caller compares the outcome with enters the guest.
//!
//! | backend | runs | fresh guest | counts fuel |
//! |---|---|---|---|
//! | `Wasm`, with the feature `wasm` | JavaScript functions, in QuickJS-ng compiled to WebAssembly | about 1 ms | yes: same outcome and same fuel on every run |
//! | `Bwrap`, on Linux | Python functions, Z3, cvc5, programs that the job brings | 20 ms, Python 60 ms | no |
//!
//! [`Sandboxes`] tests every backend at start and uses those that isolate. A call that none of them supports is refused: nothing runs
//! without a sandbox. `tools/sandbox-tools` installs what the tests start, `examples/sandbox_times.rs` measures.
//!
//! Not here: what is run and why (the `checks` crate), and the process that the runner lives in
//! (`services/verification`).

#[cfg(target_os = "linux")]
mod bwrap;
mod checks;
mod digest;
mod job;
mod limits;
mod outcome;
mod sandboxes;
#[cfg(feature = "wasm")]
mod wasm;

#[cfg(target_os = "linux")]
pub use bwrap::Bwrap;
pub use job::{Call, Job, Language, Limits};
pub use limits::OOM_SCORE_OF_GUESTS;
pub use outcome::{Ending, Engine, Outcome, SandboxError};
pub use sandboxes::Sandboxes;
#[cfg(feature = "wasm")]
pub use wasm::Wasm;

/// A way to run untrusted programs.
pub trait Sandbox: Send + Sync {
    /// Returns the engine and its version, for `metadata.sandbox_config` of a verification receipt.
    fn engine(&self) -> &Engine;

    /// Returns whether the sandbox can run this call.
    fn supports(&self, call: &Call) -> bool;

    /// Runs the job in a fresh guest and waits for its end.
    fn run(&self, job: &Job) -> Result<Outcome, SandboxError>;

    /// Returns an error if the engine is not the one that [`engine`](Self::engine) describes any more, because a file of it was
    /// replaced.
    fn check_unchanged(&self) -> Result<(), SandboxError> {
        Ok(())
    }

    /// Proves the isolation by running hostile guests, and names the first restriction that is missing.
    fn self_test(&self) -> Result<(), SandboxError>;
}
