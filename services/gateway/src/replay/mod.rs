//! Repeated decisions: the replay of a recorded session under a configuration ([`replay()`]), and the explanation of a
//! hypothetical call ([`explain()`]).
//!
//! The local evidence store keeps the messages in clear, so that `admission`, which is pure, can decide them again:
//! every message of the session in order, every outcome, and the time of each. The recorded decisions are compared with
//! the new ones.
//!
//! Judges and persons are not asked again: their recorded answers are used. If the judge would be asked now and was not
//! asked then, it is presumed to agree with the recorded decision, except where that came from a person. Nothing is
//! written, and nothing is sent.
//!
//! A message of which not everything was kept changes the session in an unknown way, also if it was denied (unless its
//! principal was rate-limited). So no later record of the session is decided again.

mod explain;
mod replayed_session;
mod run;

use evidence::{StoreError, StoredRecord};

pub use explain::{CommitmentResult, Explained, Hypothesis, begin, explain};
pub use replayed_session::{RecordedRounds, ReplayResult, ReplayedSession};
pub use run::{ReplayedDecision, VerdictWords, replay};

use crate::config::Config;
use crate::evidence_store::EvidenceReader;
use crate::limits::REPLAY_PAGE;

/// Errors of replays and explanations.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The evidence cannot be read.
    #[error("the evidence: {0}")]
    Store(#[from] StoreError),
    /// There are no records of this session.
    #[error("no records of a session {0}")]
    NoSession(String),
    /// Records of the session are past their retention time (`evidence_keep`).
    #[error(
        "records of {0} before record {1} are no longer kept (evidence_keep), so it cannot be decided again"
    )]
    Forgotten(String, u64),
    /// The session's key is no longer kept, so that its records cannot be opened.
    #[error("the key of {0} is no longer kept (evidence_keep)")]
    NoKey(String),
    /// A stored record cannot be parsed.
    #[error("record {seq} cannot be read: {why}")]
    Record {
        /// The sequence number of the record.
        seq: u64,
        /// The reason why it cannot be parsed.
        why: String,
    },
    /// The question cannot be decided, for this reason.
    #[error("{0}")]
    Question(String),
}

/// Returns all records of a session that are kept, in order.
///
/// # Errors
/// [`ReplayError::Store`] if the evidence cannot be read, and [`ReplayError::NoSession`] if it has no records of such a
/// session.
pub async fn records(config: &Config, session: &str) -> Result<Vec<StoredRecord>, ReplayError> {
    let evidence = EvidenceReader::at(config).await?;
    let mut all: Vec<StoredRecord> = Vec::new();
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
    match all.is_empty() {
        true => Err(ReplayError::NoSession(session.to_owned())),
        false => Ok(all),
    }
}
