//! Connections to SQLite, their failures, how a writing connection recovers from them, and statements that share a request
//! to it.
//!
//! After some errors a connection cannot be used again: sqlx counts a transaction that SQLite has rolled back by
//! itself, or the kernel's page cache holds pages marked clean that never reached the disk. The owner of the
//! connection [notes](Doubt::note) such an error, closes the connection, opens another one before the next write,
//! and after an I/O error [settles](settle) whether the last write happened.
//!
//! Not here: SQL of a particular database, and the storage traits (`store-sqlite`, `evidence-sqlite`).

mod connect;
mod doubt;
mod failure;
mod file;
mod limits;
mod look_up;
mod migration;
mod number;
mod script;

pub use connect::{options, pool, readers, writing};
pub use doubt::{Doubt, Repair, probe, settle};
pub use failure::{SqliteFailure, is_constraint};
pub use file::make_file;
pub use limits::BUSY_TIMEOUT;
pub use look_up::select_in;
pub use migration::MigrationFailure;
pub use number::{NegativeNumber, signed, unsigned};
pub use script::{Script, ScriptFailure, Values, portions};
