//! Verification as a request: evidence with all that its verification depends on, from text to a verdict.
//!
//! The evidence is an evidence bundle, a Signed or Transparent Statement, or a checkpoint; its first bytes tell which.
//! Keys come only from the trust file in the request ([`VerificationRequest`]), and so does the time. `sdk-core` answers
//! such requests for web pages and SDKs; `tools/browser-verifier` builds it as a WebAssembly module.
//! Rules of content types are checked as `tabellion verify` does (`content-rules`).
//!
//! Not here: the age of a verification (`tabellion verify --max-age`).

mod evidence_verdict;
mod request;

pub use evidence_verdict::EvidenceVerdict;
pub use request::{MAX_REQUEST_BYTES, RefusedRequest, RequestText, VerificationRequest};
