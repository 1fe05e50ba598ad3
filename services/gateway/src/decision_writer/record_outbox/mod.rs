//! The outbox of the gateway: what delivery to the log ([`outbox`]) means for records, calls and the operator.
//!
//! While the backlog reaches a limit of the operator, the writer admits nothing new.
//!
//! Not here: the content of a statement ([`record_signer`](super::record_signer)), and the delivery itself.

mod receipt_waiters;
mod records;

pub use receipt_waiters::NoReceipt;
pub(super) use receipt_waiters::ReceiptWaiters;
pub(super) use records::RecordOutbox;
