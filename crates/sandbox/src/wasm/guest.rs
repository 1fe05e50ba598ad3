//! State of one guest: what it may read, what it has written, and why it was stopped.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::ResourceLimiter;

use crate::Job;

/// The host's side of one instance.
pub(super) struct Guest {
    pub(super) job: Arc<Job>,
    /// File name, function name and arguments, in the order of `engines/quickjs/driver.c`.
    pub(super) inputs: [Vec<u8>; 3],
    pub(super) deadline: Instant,
    pub(super) memory: MemoryBound,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) result: Option<GuestResult>,
}

/// What the driver handed over, as bytes of the guest.
pub(super) enum GuestResult {
    /// A returned value.
    Returned(Vec<u8>),
    /// `undefined`, or another value that JSON does not have.
    ReturnedNothing,
    /// An exception, and the stage that it comes from.
    Failed(Stage, Vec<u8>),
}

/// The stage of a run that an exception comes from, in the order of `engines/quickjs/driver.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The function was not found yet.
    Loading,
    /// The function ran.
    Calling,
    /// Its value was made JSON.
    Returning,
}

impl Stage {
    /// Returns the stage with this number, `None` if there is none.
    pub(super) fn of_number(number: i32) -> Option<Self> {
        [Self::Loading, Self::Calling, Self::Returning].get(usize::try_from(number).ok()?).copied()
    }
}

/// The reason why the host stopped a guest in one of its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    #[error("the guest wrote more than allowed")]
    TooMuchOutput,
    #[error("the guest reached the bound on wall time")]
    OutOfTime,
    #[error("the guest ended with exit code {0}")]
    Exited(i32),
    #[error("the guest passed an unknown stage")]
    UnknownStage,
    #[error("the guest passed an address outside of its memory")]
    BadAddress,
}

/// A bound on linear memory that remembers whether it refused some.
pub(super) struct MemoryBound {
    pub(super) bytes: usize,
    pub(super) refused: bool,
}

impl ResourceLimiter for MemoryBound {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let allowed = desired <= self.bytes;
        self.refused |= !allowed;
        Ok(allowed)
    }

    fn table_growing(&mut self, current: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(current == 0)
    }
}
