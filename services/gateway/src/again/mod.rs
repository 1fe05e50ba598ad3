//! Decisions made again: a recorded session under a configuration ([`replay()`]), and a call that nobody has made ([`explain()`]).
//!
//! The local evidence store keeps in clear what was said, so that admission, which is pure, can be asked again: every message of
//! the session in order, every outcome, and the moment of each. What was decided then is compared with what would be now.
//!
//! The judge and persons are not asked again: what they said is taken as recorded. Where the judge would be asked now and was not
//! then, it is taken to agree with what was decided. Nothing is written, and nothing is sent.

mod annex;
mod explain;
mod replay;
mod session;

use evidence::{StoreError, Stored};

pub use explain::{Began, Explained, Hypothesis, begin, explain};
pub use replay::{Compared, Decided, replay};
pub use session::{Again, Called, Now, Said};

use crate::config::Config;
use crate::gateway::Look;
use crate::limits::REPLAY_PAGE;

/// Why nothing is decided again.
#[derive(Debug, thiserror::Error)]
pub enum AgainError {
    /// The evidence cannot be read.
    #[error("the evidence: {0}")]
    Store(#[from] StoreError),
    /// There is no such session.
    #[error("no records of a session {0}")]
    NoSession(String),
    /// What its first records said was kept as long as it was to be.
    #[error(
        "the records of {0} before {1} are no longer kept (evidence_keep), so it cannot be decided again"
    )]
    Forgotten(String, u64),
    /// What the store holds is not what this program wrote.
    #[error("record {seq} cannot be read: {why}")]
    Record {
        /// Which.
        seq: u64,
        /// Why not.
        why: String,
    },
    /// What was asked about is nothing that can be decided.
    #[error("{0}")]
    Question(String),
}

/// Every record of a session, in order.
///
/// # Errors
/// If the evidence cannot be read, or there is no such session.
pub async fn records(config: &Config, session: &str) -> Result<Vec<Stored>, AgainError> {
    let evidence = Look::at(config).await?;
    let mut all: Vec<Stored> = Vec::new();
    loop {
        let from = all.last().map_or(0, |last| last.record.seq.saturating_add(1));
        let page = evidence.records(session, from, REPLAY_PAGE).await?;
        let complete = page.len() < REPLAY_PAGE;
        all.extend(page);
        if complete {
            break;
        }
    }
    evidence.close().await;
    match all.first().map(|first| first.record.seq) {
        None => Err(AgainError::NoSession(session.to_owned())),
        Some(0) => Ok(all),
        Some(first) => Err(AgainError::Forgotten(session.to_owned(), first)),
    }
}
