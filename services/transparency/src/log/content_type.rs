//! Comparison of content types.

/// Compares media types without parameters and case.
pub fn is_type(name: &str, wanted: &str) -> bool {
    name.split(';').next().is_some_and(|own| own.trim().eq_ignore_ascii_case(wanted))
}
