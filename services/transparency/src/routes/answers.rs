//! Domain errors to HTTP: the only module that chooses status, title and wording.
//!
//! The client and the operator see different texts: causes inside the service are logged here, once, and the client
//! gets the request's number.

use std::fmt::Display;

use http::StatusCode;
use merkle::{EntryDigest, LeafIndex};
use registration::policy::{LOG_ENDED, LOG_FULL};
use registration::{Refusal, Untrusted, Violation};
use scitt::Malformed;
use sequencer::Remedy;
use store::{StorageFault, StoreError};

use crate::edge::multipart::{MultipartDefect, MultipartError};
use crate::edge::problem::{Problem, shortened};
use crate::edge::rate_limit::AccessRefusal;
use crate::index::proof::ProofUnavailable;
use crate::log::admission::NotAdmitted;
use crate::log::erasures::ErasureHold;
use crate::log::policies::PolicyUnreadable;
use crate::log::registration_outcome::RegisterError;
use crate::proofs::receipts::ReceiptUnavailable;
use crate::quota::rates::OverRate;

/// SCRAPI's wording, put before the detail of a rejection.
const REJECTED: &str = "Signed Statement not accepted by the current Registration Policy";
/// Default `Retry-After`, in seconds.
const LATER: u64 = 1;
/// `Retry-After` while the service has to recover, in seconds.
const RECOVERY_LATER: u64 = 5;
/// `Retry-After` while a person has to act, in seconds.
const MUCH_LATER: u64 = 30;

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        let detail = format!("The request could not be parsed: {malformed}");
        Problem::malformed("statement-malformed", detail).at_offset(malformed.offset as u64)
    }
}

impl From<MultipartError> for Problem {
    fn from(unreadable: MultipartError) -> Self {
        let detail = format!("The request body could not be taken apart: {unreadable}");
        let code = match unreadable.what {
            MultipartDefect::TooManyParts(_) => "parts-too-many",
            _ => "multipart-malformed",
        };
        let problem = Problem::malformed(code, detail);
        match unreadable.offset {
            Some(offset) => problem.at_offset(offset as u64),
            None => problem,
        }
    }
}

impl From<AccessRefusal> for Problem {
    fn from(refusal: AccessRefusal) -> Self {
        let unauthorized =
            |detail: &'static str| Problem::new(StatusCode::UNAUTHORIZED, "token", "Unauthorized", detail);
        match refusal {
            AccessRefusal::NoToken => unauthorized("A bearer token is required to register here"),
            AccessRefusal::UnknownToken => unauthorized("The bearer token is not known here"),
            AccessRefusal::OverRate(over) => over.into(),
        }
    }
}

impl From<OverRate> for Problem {
    fn from(over: OverRate) -> Self {
        let are = if over.rate.requests.get() == 1 { "is" } else { "are" };
        let detail = format!("Only {} {are} allowed.", over.rate_in_words());
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", "Too Many Requests", detail)
            .retry_after(over.seconds())
    }
}

impl From<RegisterError> for Problem {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::NotAdmitted(NotAdmitted::Untrusted(untrusted)) => untrusted.into(),
            RegisterError::NotAdmitted(NotAdmitted::Refused(refusal)) => refusal.into(),
            RegisterError::NotAdmitted(NotAdmitted::OverQuota(over)) => over.into(),
            RegisterError::NotAdmitted(NotAdmitted::Held(hold)) => held(&hold),
            RegisterError::NotAdmitted(NotAdmitted::NothingToHold(entry)) => nothing_to_hold(entry),
            RegisterError::NotAdmitted(NotAdmitted::Undecided(undecided)) => {
                let detail = format!("The policy came to no answer in time: {}", undecided.rule);
                Problem::busy("undecided", detail, LATER)
            }
            RegisterError::NotAdmitted(NotAdmitted::Store(error)) => error.into(),
            RegisterError::OutsideWindow(refusal) => (*refusal).into(),
            RegisterError::GuardTaken { refusal, by, forks } => {
                let problem = rejected(if forks { "chain_fork" } else { "policy" }, &refusal.violation);
                match by {
                    Some(by) => problem.about_entry(by.to_string()),
                    None => problem,
                }
            }
            RegisterError::Twin(registered) => twin(registered),
            RegisterError::QueueFull { retry_after } => Problem::busy(
                "queue-full",
                "Too many statements wait to be sequenced; nothing was kept",
                retry_after,
            ),
            RegisterError::InboxFull { issuer_only, retry_after } => inbox_full(issuer_only, retry_after),
            RegisterError::KeepsMoving => {
                let detail = "The log changed while the statement was decided; registering it again is safe";
                Problem::busy("undecided", detail, LATER)
            }
            RegisterError::NoPolicy => {
                Problem::busy("no-policy", "The log has no registration policy yet", LATER)
            }
            RegisterError::Frozen => frozen(),
            RegisterError::Halted { why, remedy } => halted(&why, remedy),
            RegisterError::LowSpace(why) => {
                tracing::debug!(%why, "registration refused: the disk is almost full");
                let detail = "The log's disk is almost full; nothing was stored, and registered statements can still be read";
                Problem::busy("storage-full", detail, RECOVERY_LATER)
            }
            RegisterError::Stopping => Problem::busy("stopping", "The service is restarting", LATER),
            RegisterError::Policy(why) => why.into(),
            RegisterError::Store(error) => Problem::from(&*error),
            RegisterError::NoReceipt(why) => why.into(),
            RegisterError::Internal(why) => internal(&why),
        }
    }
}

impl From<Untrusted> for Problem {
    fn from(untrusted: Untrusted) -> Self {
        let violation = untrusted.violation();
        match untrusted {
            Untrusted::Algorithm(_) | Untrusted::Incomplete(scitt::Incomplete::Algorithm) => {
                let detail = "Signed Statement contained a non supported algorithm";
                titled("signature-algorithm", "Bad Signature Algorithm", detail, &violation)
            }
            Untrusted::PayloadMissing => titled(
                "payload-missing",
                "Payload Missing",
                "Signed Statement payload must be present",
                &violation,
            ),
            Untrusted::PayloadTwice => rejected("payload-twice", &violation),
            _ => rejected("not-authenticated", &violation),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.violation.rule.as_str() {
            LOG_FULL => LOG_FULL,
            LOG_ENDED => LOG_ENDED,
            _ => "policy",
        };
        rejected(code, &refusal.violation)
    }
}

impl From<ReceiptUnavailable> for Problem {
    fn from(why: ReceiptUnavailable) -> Self {
        match why {
            ReceiptUnavailable::NotSignedYet(_) => {
                Problem::busy("not-signed-yet", "The receipt is not ready yet", LATER)
            }
            ReceiptUnavailable::Store(why)
            | ReceiptUnavailable::Proof(crate::proofs::tiles::ProofFailure::Store(why)) => why.into(),
            ReceiptUnavailable::Proof(_) | ReceiptUnavailable::Signature(_) => damaged(&why),
        }
    }
}

impl From<ProofUnavailable> for Problem {
    fn from(why: ProofUnavailable) -> Self {
        match why {
            ProofUnavailable::NoIndex => {
                let detail = "The log's policy has no [index]: the log commits to no search index, and proves no answer";
                Problem::new(StatusCode::NOT_FOUND, "index-head-missing", "Not Found", detail)
            }
            ProofUnavailable::NoHead { retry_after } => {
                let detail = "The log has not committed to its search index yet";
                Problem::busy("index-head-missing", detail, retry_after)
            }
            ProofUnavailable::Outdated { retry_after } => {
                let detail = "Entries were erased since the log last committed to its search index; the next head proves the answer";
                Problem::busy("index-head-outdated", detail, retry_after)
            }
            ProofUnavailable::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Unavailable(_)
            | StoreError::Refused(_)
            | StoreError::InUse(_)
            | StoreError::NoLog(_) => unavailable(&error),
            StoreError::Storage(fault, _) => storage_fails(*fault, &error),
            StoreError::Frozen => frozen(),
            StoreError::Damaged(_) => damaged(&error),
        }
    }
}

impl From<PolicyUnreadable> for Problem {
    fn from(why: PolicyUnreadable) -> Self {
        match why {
            PolicyUnreadable::Store(error) => error.into(),
            PolicyUnreadable::NotAPolicy { .. } => damaged(&why),
        }
    }
}

fn held(hold: &ErasureHold) -> Problem {
    let detail = format!("Entry {} is on hold for the case {}: it cannot be erased", hold.entry, hold.case);
    Problem::new(StatusCode::CONFLICT, "entry-held", "On Hold", detail).about_entry(hold.entry.to_string())
}

fn nothing_to_hold(entry: LeafIndex) -> Problem {
    let detail = format!("Entry {entry} was erased: nothing of it can be held");
    Problem::new(StatusCode::CONFLICT, "nothing-to-hold", "Nothing to Hold", detail)
}

fn twin(registered: EntryDigest) -> Problem {
    let detail =
        format!("{REJECTED}: another encoding of the same signature is registered, as entry {registered}");
    Problem::rejected("signature-twin", detail).by_rule("signature-twin").about_entry(registered.to_string())
}

fn rejected(code: &'static str, violation: &Violation) -> Problem {
    titled(code, "Rejected", REJECTED, violation)
}

fn titled(code: &'static str, title: &'static str, words: &str, violation: &Violation) -> Problem {
    let detail = format!("{words}: {}", violation.detail);
    Problem::new(StatusCode::BAD_REQUEST, code, title, detail)
        .by_rule(violation.rule.as_str())
        .at_place(shortened(&violation.place.to_string()))
}

fn inbox_full(issuer_only: bool, retry_after: u64) -> Problem {
    let detail = match issuer_only {
        true => {
            "Too many statements of this issuer are accepted and not yet in the log; registering again is safe"
        }
        false => "Too many statements are accepted and not yet in the log; registering again is safe",
    };
    Problem::busy("inbox-full", detail, retry_after)
}

/// The problem for a frozen log: 403, not 503, since a later retry cannot succeed.
fn frozen() -> Problem {
    let detail =
        "This log is frozen: no more entries are added; registered statements can still be read and proven";
    Problem::new(StatusCode::FORBIDDEN, "log-frozen", "Log Frozen", detail)
}

/// The problem for stopped sequencing. Clients retry `sequencing-stopped`, and do not retry `log-halted`.
fn halted(why: &str, remedy: Remedy) -> Problem {
    tracing::warn!(why, "registration refused: sequencing stopped");
    match remedy {
        Remedy::Retry => {
            let detail = "Sequencing stopped until its cause ends, and then continues by itself; registered statements can still be read";
            Problem::busy("sequencing-stopped", detail, RECOVERY_LATER)
        }
        Remedy::Operator | Remedy::Restart => {
            let detail =
                "Sequencing stopped and the operator must act; registered statements can still be read";
            Problem::busy("log-halted", detail, MUCH_LATER)
        }
    }
}

fn unavailable(cause: &dyn Display) -> Problem {
    tracing::warn!(%cause, "the database did not answer");
    Problem::busy(
        "database-unavailable",
        "The log's database does not answer; registering again is safe",
        LATER,
    )
}

/// The problem for failing storage: 503 that names the fault, since the same request can succeed later.
fn storage_fails(fault: StorageFault, cause: &dyn Display) -> Problem {
    tracing::warn!(%cause, "the storage of the database fails");
    let (code, detail) = match fault {
        StorageFault::Full => {
            ("storage-full", "The log's disk is full; registering again is safe once there is space")
        }
        StorageFault::Io => {
            ("storage-failing", "The log's disk fails with I/O errors; registering again is safe")
        }
        StorageFault::ReadOnly => (
            "storage-read-only",
            "The log's storage is a read-only file system or server; registering again is safe",
        ),
    };
    Problem::busy(code, detail, RECOVERY_LATER)
}

/// The problem for a damaged database: 500, not 503, since the operator must repair it before a retry can succeed.
fn damaged(cause: &dyn Display) -> Problem {
    tracing::error!(%cause, "the database is damaged");
    let detail = "The log's database contradicts itself; the operator finds the details in the service's messages under this \
                  instance, and must repair it";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "database-damaged", "Internal Server Error", detail)
}

fn internal(cause: &dyn Display) -> Problem {
    tracing::error!(%cause, "a request failed");
    Problem::internal()
}
