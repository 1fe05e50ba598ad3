//! Time of registration as far as it is proven, at which the dates and certificates of a statement are judged.
//!
//! The `iat` of a receipt is the time at which the log signed a tree that has the statement. That tree may be larger than
//! the one that the registration made: a log gives receipts of its newest tree for all statements. So `iat` is the latest
//! time at which the statement can have been registered, and the log checked its dates then or earlier:
//!
//! - what ends after `iat` was valid at the registration;
//! - what ended at `iat` or before may have been valid at the registration: the check is not done;
//! - what begins after `iat` was not valid at the registration: the check fails.
//!
//! If nothing proves that a log has the statement, it is judged at the time of the verification, and what ended before has
//! expired.

use crate::receipt::ReceiptReport;
use crate::time::rfc3339;
use crate::to_signed;
use crate::verdict::{Check, CheckName, Code};

/// The latest time of a statement's registration, or the time of the verification if none is proven.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegistrationTime {
    at: i64,
    is_proven: bool,
}

impl RegistrationTime {
    /// Returns the earliest time of the verified receipts, or `now` (Unix seconds) without such a time. The statement is
    /// registered if a receipt is verified, or if a proof to a checkpoint shows it in the tree (`included`).
    pub(crate) fn of(receipts: &[ReceiptReport], included: bool, now: u64) -> Self {
        let verified = || receipts.iter().map(|report| &report.facts).filter(|facts| facts.verified);
        let earliest = verified().filter_map(|facts| facts.iat).min();
        Self {
            at: earliest.unwrap_or_else(|| to_signed(now)),
            is_proven: included || verified().next().is_some(),
        }
    }

    /// Returns the time in Unix seconds.
    pub(crate) fn at(self) -> i64 {
        self.at
    }

    /// Returns `true` if a log is proven to have registered the statement, at this time or earlier.
    pub(crate) fn is_proven(self) -> bool {
        self.is_proven
    }

    /// Returns the check for a statement or certificate that ended at this time or before: not done if the statement may
    /// have been registered before the end, else failed with `code`.
    pub(crate) fn ended(self, name: CheckName, code: Code, end: i64) -> Check {
        let (end, at) = (rfc3339(end), rfc3339(self.at));
        if self.is_proven {
            let detail = format!("ended at {end}, and the receipts show only that it was in the log at {at}");
            return Check::not_done(name, Code::RegistrationTimeUnknown, detail);
        }
        Check::failed(name, code, format!("ended at {end}, before {at}"))
    }
}
