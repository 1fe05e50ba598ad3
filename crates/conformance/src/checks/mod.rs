//! The table of all checks, one module per subject.

mod content_types;
mod hostile;
mod keys;
mod problems;
mod receipts;
mod registration;
mod resolution;

use crate::check::ConformanceCheck;

pub use receipts::RECEIPT_VERIFIES;

/// Returns all checks, in the order of the report.
pub fn checks() -> impl Iterator<Item = &'static ConformanceCheck> {
    let subjects = [
        keys::CHECKS,
        registration::CHECKS,
        resolution::CHECKS,
        receipts::CHECKS,
        problems::CHECKS,
        content_types::CHECKS,
        hostile::CHECKS,
    ];
    subjects.into_iter().flatten()
}
