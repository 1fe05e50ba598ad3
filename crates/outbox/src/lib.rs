//! The outbox: delivery of signed statements from a service's database to a log, at least once and without a time limit.
//!
//! A statement is signed and durable before it is sent, and sent unchanged, so repeated submissions yield one entry. An
//! [`Outbox`] is the database; a [`Delivery`] is the one task that submits what is pending in it. An answer delivers a
//! statement, refuses it, or decides nothing (`answer`), and is stored as soon as it is known (`round`). A statement that the
//! log refuses for good is marked as refused: it stays in the database and does not block others.
//!
//! Order: statements are posted in the order in which [`Outbox::pending`] returns them. Several may be in progress at once,
//! so that the log may register them in another order. An outbox whose statement must not overtake another one returns it
//! after the delivery of that one.
//!
//! Not here: the content of statements, limits on the backlog, and the transaction that makes a statement durable.

mod answer;
mod delivery;
pub mod limits;
mod log_connection;
mod round;
mod statement;

pub use delivery::Delivery;
pub use log_connection::LogConnection;
pub use statement::{
    DeliveredStatement, LogRefusal, Outbox, PendingStatement, RefusedSubmission, StorageError, UnixSeconds,
};
