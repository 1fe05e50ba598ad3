//! Conformance suite for transparency services: SCRAPI (draft-ietf-scitt-scrapi-11), receipts (RFC 9942, RFC 9943),
//! problem details (RFC 9290), content types, and hostile input.
//!
//! A [`Probe`] is one request. The caller sends the one that comes next and records its answer in
//! [`Observations`]; [`next_request`] makes a request from the [`Samples`] and from earlier answers. A
//! [`ConformanceCheck`] is a pure function of the observations, which also note the answers that it misses: so
//! [`next_probe`] knows what a selection of checks needs. [`ConformanceReport`] holds the conclusion of every selected
//! check of [`checks()`], with its specification and section, as JSON and as HTML.
//!
//! The service is not trusted: answers have bounded sizes ([`limits`]), no check panics, and the report escapes what the
//! service wrote.
//!
//! Not here: sending of requests, time and files (`tabellion conformance`).

mod check;
mod checks;
mod exchange;
mod judgement;
pub mod limits;
mod observations;
mod probe;
mod report;
mod requests;
mod samples;
mod table;

pub use check::{ConformanceCheck, RequirementLevel};
pub use checks::checks;
pub use exchange::{ProbeOutcome, ProbeRequest, ProbeResponse};
pub use judgement::{Judgement, Shortfall};
pub use observations::Observations;
pub use probe::{HostileInput, PROBES, Probe};
pub use report::{CheckConclusion, CheckResult, ConformanceReport, ConformanceSummary};
pub use requests::{next_probe, next_request};
pub use samples::Samples;
pub use table::markdown_table;
