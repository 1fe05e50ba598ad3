//! From the database to the log: everything that was committed, at least once and in order, for as long as it takes.
//!
//! A record's statement was signed before it was committed and is sent as it is, so however often it goes there is one
//! entry. What the log refuses for good is put aside ("stuck"): it stays, is counted, and holds up nobody. While more waits
//! than the operator allows, the desk admits nothing new.
//!
//! Not here: what is in a statement ([`notary`](super::notary)).

mod courier;
mod gauge;
mod waiting;

pub(super) use courier::Courier;
pub use gauge::{Backpressure, Gauge, OutboxLimits};
pub use waiting::NoReceipt;
pub(super) use waiting::Waiting;

use client::Client;
use verifier::TrustStore;

/// The log that statements are registered at.
#[derive(Clone, Debug)]
pub struct Log {
    /// Its public URL: what `audit_ref` begins with.
    pub url: String,
    /// A client of it. Its patience bounds one round of submitting, `Retry-After` included.
    pub client: Client,
    /// What receipts are verified with. Without it they are kept, and not believed.
    pub trust: Option<TrustStore>,
}
