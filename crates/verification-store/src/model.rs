//! What is stored.

use bytes::Bytes;
use merkle::EntryDigest;

/// The end of a receipt chain, as far as receipts were signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainEnd {
    /// The position of the next receipt.
    pub next: u64,
    /// The entry of the receipt before it; `None` at position 0.
    pub last: Option<EntryDigest>,
    /// The reason why no further receipt may be signed.
    pub halted: Option<String>,
}

/// A request that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// The name of the job, a UUID.
    pub id: String,
    /// The name of the client.
    pub client: String,
    /// The digest of the request's canonical form.
    pub digest: String,
    /// The agent (`sub`), if there is one.
    pub subject: Option<String>,
    /// The request as it was received.
    pub request: Bytes,
    /// The time in Unix seconds.
    pub at: u64,
}

/// A request and what became of it, without the text of the request: see
/// [`begin_checks`](crate::VerificationStore::begin_checks).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredJob {
    /// The name of the job, a UUID.
    pub id: String,
    /// The name of the client.
    pub client: String,
    /// The agent (`sub`), if there is one.
    pub subject: Option<String>,
    /// How often its checks began, and the process ended before them.
    pub unended: u64,
    /// The state.
    pub state: JobState,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// The checks are not finished, or the receipt is not signed.
    Pending,
    /// The checks could not be run, or no receipt signed.
    Failed {
        /// The code of the failure.
        code: String,
        /// The reason in words.
        reason: String,
    },
    /// The receipt is signed.
    Done(StoredReceipt),
}

/// A signed receipt, to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReceipt {
    /// The entry that the statement will be.
    pub id: EntryDigest,
    /// The verifier (`iss`).
    pub issuer: String,
    /// The agent (`sub`).
    pub subject: String,
    /// The position in the chain; `None` outside of any chain.
    pub position: Option<u64>,
    /// The time in Unix seconds.
    pub at: u64,
    /// The receipt in canonical JSON.
    pub receipt: Bytes,
    /// The statement.
    pub statement: Bytes,
}

/// A signed receipt as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReceipt {
    /// The entry that the statement is.
    pub id: EntryDigest,
    /// The agent (`sub`).
    pub subject: String,
    /// The position in the chain; `None` outside of any chain.
    pub position: Option<u64>,
    /// The receipt in canonical JSON.
    pub receipt: Bytes,
    /// The statement.
    pub statement: Bytes,
    /// The log's receipt, once the statement is delivered.
    pub log_receipt: Option<Bytes>,
    /// The reason why the log refuses the statement.
    pub refused: Option<String>,
}

/// A statement that may be sent to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingStatement {
    /// The entry that the statement will be.
    pub id: EntryDigest,
    /// The verifier (`iss`).
    pub issuer: String,
    /// The agent (`sub`).
    pub subject: String,
    /// The position in the chain; `None` outside of any chain.
    pub position: Option<u64>,
    /// The statement.
    pub statement: Bytes,
}

/// A statement that the log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredEntry {
    /// The entry.
    pub id: EntryDigest,
    /// The log's receipt.
    pub receipt: Bytes,
    /// The time in Unix seconds.
    pub at: u64,
}
