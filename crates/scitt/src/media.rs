//! Media types of what this crate reads and writes.

/// Any COSE message: SCRAPI's type for statements and receipts alike.
pub const COSE: &str = "application/cose";
/// The same with its parameter (RFC 9052, section 12.3).
pub const COSE_SIGN1: &str = "application/cose; cose-type=\"cose-sign1\"";
/// A Signed Statement (RFC 9943).
pub const STATEMENT: &str = "application/scitt-statement+cose";
/// A Receipt (RFC 9943).
pub const RECEIPT: &str = "application/scitt-receipt+cose";
/// Concise problem details (RFC 9290).
pub const PROBLEM: &str = "application/concise-problem-details+cbor";
/// Bare CBOR: key sets.
pub const CBOR: &str = "application/cbor";

/// Whether a `Content-Type` may carry a statement or receipt: the type is compared without case, parameters are ignored.
pub fn is_cose(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    [COSE, STATEMENT, RECEIPT].iter().any(|known| essence.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::is_cose;

    #[test]
    fn cose_types_are_known_in_any_case_and_with_parameters() {
        for yes in [super::COSE, super::COSE_SIGN1, super::STATEMENT, "Application/COSE ;x=y"] {
            assert!(is_cose(yes), "{yes}");
        }
        for no in ["", "application/cbor", "application/cose-key", "text/plain"] {
            assert!(!is_cose(no), "{no}");
        }
    }
}
