//! Media types that this crate reads and writes.

/// Any COSE message: SCRAPI's type for both statements and receipts.
pub const COSE: &str = "application/cose";
/// A COSE_Sign1 message: [`COSE`] with its parameter (RFC 9052, section 12.3).
pub const COSE_SIGN1: &str = "application/cose; cose-type=\"cose-sign1\"";
/// A Signed Statement (RFC 9943).
pub const STATEMENT: &str = "application/scitt-statement+cose";
/// A Receipt (RFC 9943).
pub const RECEIPT: &str = "application/scitt-receipt+cose";
/// Concise problem details (RFC 9290).
pub const PROBLEM: &str = "application/concise-problem-details+cbor";
/// Any CBOR; used for key sets.
pub const CBOR: &str = "application/cbor";

/// Returns `true` if a body with this `Content-Type` may be a statement or receipt. The type is compared
/// case-insensitively, and parameters are ignored.
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
