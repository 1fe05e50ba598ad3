//! The `type` of problem details in JSON (RFC 9457, section 3.1.1): the address of the documentation of their code.
//!
//! Not here: the problems themselves, which each daemon has of its own.

/// Address of the documentation of error codes; a code follows it.
const DOCUMENTATION: &str = "https://tabellion.dev/errors/";

/// The address of a code's documentation.
pub fn documentation(code: &str) -> String {
    format!("{DOCUMENTATION}{code}")
}
