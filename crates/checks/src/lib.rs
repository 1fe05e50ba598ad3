//! Checks of an agent's work: from a request to a verification receipt (VRF, sections 4 and 7).
//!
//! A [`CheckRequest`] names the work (the artifact) and the checks of one tier. [`run_checks`] makes [`Batch`]es of calls
//! of it, has them run by a [`RunJobs`], compares the outcomes, and collects a [`Report`]; [`receipt()`] makes the JSON of
//! section 4.1 of it. The same request has the same report on every machine with the same engines, except for the
//! elapsed time, so that a receipt can be checked by doing its work again.
//!
//! | module | content |
//! |---|---|
//! | [`request`] | the strict reader of requests, and the hashes of their parts |
//! | [`jobs`], [`engines`] | what is asked of a runner, and which engines it has |
//! | [`check`] | the checks of the four tiers |
//! | [`generate`], [`shrink`] | inputs of tier 2 from a seed, and smaller ones |
//! | [`compare`] | equality of JSON values |
//! | [`report`], [`receipt`](mod@receipt) | results, and the receipt about them |
//! | [`difference`] | comparison of two receipts of the same checks |
//!
//! Expected values are never part of a [`Batch`]: code that sees the value that is expected of it could return it.
//!
//! Not here: sandboxes (the `sandbox` crate), the process that runs them (`check-runner`), signing (`registration::vrf`),
//! and the clock: times are arguments.

pub mod check;
pub mod compare;
pub mod difference;
pub mod engines;
pub mod error;
pub mod generate;
pub mod jobs;
pub mod limits;
pub mod receipt;
pub mod report;
pub mod request;
pub mod shrink;
mod text;

pub use check::run_checks;
pub use difference::{ReceiptDifference, differences};
pub use engines::{Engines, Facility};
pub use error::RequestError;
pub use jobs::{Batch, JobEnd, RunChecks, RunError, RunJobs};
pub use receipt::{Stamp, receipt};
pub use report::{Detail, Report, Status};
pub use request::CheckRequest;
