//! The outbox: delivery of every committed record from the database to the log, at least once, in order, without a time
//! limit.
//!
//! A record's statement is signed before it is committed and sent unchanged, so repeated submissions yield one entry. A
//! record that the log refuses for good is marked as stuck: it stays in the outbox, is counted, and does not block
//! others. While the backlog reaches a limit of the operator, the writer admits nothing new.
//!
//! Not here: the content of a statement ([`record_signer`](super::record_signer)).

mod delivery;
mod waiting;

pub(super) use delivery::Delivery;
pub use waiting::NoReceipt;
pub(super) use waiting::ReceiptWaiters;

use client::Client;
use verifier::TrustStore;

/// The log at which statements are registered.
#[derive(Clone, Debug)]
pub struct LogConnection {
    /// The log's public URL, the beginning of each `audit_ref`.
    pub url: String,
    /// The client of the log. Its time limit bounds one round of submitting, `Retry-After` included.
    pub client: Client,
    /// The trust anchors for receipts. Without them, receipts are stored unverified.
    pub trust: Option<TrustStore>,
}
