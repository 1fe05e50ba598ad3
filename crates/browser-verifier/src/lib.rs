//! The verifier for web pages and other hosts of WebAssembly: a request in JSON gives a verdict in JSON.
//!
//! The program of this crate reads one request from standard input, writes the answer to standard output and ends. As a
//! WASI preview 1 module it runs in a browser under a few dozen lines of JavaScript, in Node.js and in every WASI
//! runtime; each verification has an instance of its own. `tools/browser-verifier` builds the module.
//!
//! The evidence is an evidence bundle, a Signed or Transparent Statement, or a checkpoint; its first bytes tell which.
//! Keys come only from the trust file in the request ([`VerificationRequest`]), and so does the time.
//!
//! Not here: rules of content types, which `tabellion verify` checks in addition.

mod answer;
mod request;

pub use answer::answer;
pub use request::{MAX_REQUEST_BYTES, RefusedRequest, VerificationRequest};
