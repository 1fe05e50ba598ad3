//! The order of registrations: a decision rests only on a registry that the log had before the decision.
//!
//! A receipt shows that the log had an entry at a time. A receipt that was fetched later shows a later time, so that the
//! time proves nothing if it is after the decision. The order of two entries of one log is always proven.

use roa::text::UtcTime;

use super::registered::Registration;
use crate::console::{Exit, Failure};

/// The reason why a registry was not, or not provably, on the log before a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LateRegistry {
    /// The registry is a later entry than the execution receipt.
    AfterReceipt {
        /// The index of the registry's entry.
        registry: u64,
        /// The index of the receipt's entry.
        receipt: u64,
    },
    /// The registry's receipts show a time after the decision, or none.
    Unproven {
        /// The earliest time.
        at: Option<UtcTime>,
        /// The time of the decision.
        decided: UtcTime,
    },
}

/// Checks that a log had the registry before the decision of an execution receipt.
///
/// # Errors
/// [`LateRegistry`] if that is refuted or not proven.
pub fn check_order(
    registry: &Registration,
    receipt: &Registration,
    decided: UtcTime,
) -> Result<(), LateRegistry> {
    if let (Some(first), Some(second)) = (registry.index, receipt.index)
        && registry.log == receipt.log
        && first > second
    {
        return Err(LateRegistry::AfterReceipt { registry: first.get(), receipt: second.get() });
    }
    match registry.at {
        Some(at) if at <= decided.unix_seconds() => Ok(()),
        at => Err(LateRegistry::Unproven { at: at.and_then(UtcTime::from_unix_seconds), decided }),
    }
}

impl LateRegistry {
    /// Returns the failure of the command.
    pub fn failure(&self) -> Failure {
        match self {
            Self::AfterReceipt { registry, receipt } => Failure::new(
                Exit::VerificationFailed,
                "registry-registered-later",
                "the registry was registered only after the execution receipt",
            )
            .fact("registry", format!("entry {registry}"))
            .fact("receipt", format!("entry {receipt}")),
            Self::Unproven { at, decided } => Failure::new(
                Exit::NotVerified,
                "registry-time-unproven",
                "nothing proves that the log had the registry before the decision",
            )
            .fact("registry", at.map_or_else(|| "no time".to_owned(), String::from))
            .fact("decision", String::from(*decided))
            .hint("use the statement that tabellion registry publish wrote: a receipt of a later day shows that day"),
        }
    }
}

#[cfg(test)]
mod tests {
    use merkle::LeafIndex;

    use super::*;

    const DECIDED: i64 = 1_800_000_000;

    fn registered(log: &str, index: u64, at: Option<i64>) -> Registration {
        Registration { log: Some(log.to_owned()), index: Some(LeafIndex::new(index)), at }
    }

    fn order(registry: &Registration) -> Result<(), LateRegistry> {
        let receipt = registered("log", 7, Some(DECIDED + 5));
        check_order(registry, &receipt, UtcTime::from_unix_seconds(DECIDED).expect("it is in range"))
    }

    #[test]
    fn a_registry_of_an_earlier_entry_and_time_was_registered_before() {
        assert_eq!(order(&registered("log", 6, Some(DECIDED))), Ok(()));
        assert_eq!(order(&registered("other", 900, Some(DECIDED - 1))), Ok(()), "logs count on their own");
    }

    #[test]
    fn a_later_entry_refutes_whatever_time_its_receipt_has() {
        let later = LateRegistry::AfterReceipt { registry: 8, receipt: 7 };
        assert_eq!(order(&registered("log", 8, Some(DECIDED - 1))), Err(later));
    }

    #[test]
    fn a_time_after_the_decision_or_none_proves_nothing() {
        for at in [Some(DECIDED + 1), None] {
            assert!(matches!(order(&registered("log", 6, at)), Err(LateRegistry::Unproven { .. })), "{at:?}");
        }
    }
}
