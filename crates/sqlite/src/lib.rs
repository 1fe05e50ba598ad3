//! Failures of SQLite, and how a writing connection recovers from them.
//!
//! After some errors a connection cannot be used again: sqlx counts a transaction that SQLite has rolled back by
//! itself, or the kernel's page cache holds pages marked clean that never reached the disk. The owner of the
//! connection [notes](Doubt::note) such an error, closes the connection, opens another one before the next write,
//! and after an I/O error [settles](settle) whether the last write happened.
//!
//! Not here: SQL of a particular database, pools, and the storage traits (`store-sqlite`, `evidence-sqlite`).

mod doubt;
mod failure;
mod file;

pub use doubt::{Doubt, Repair, probe, settle};
pub use failure::{SqliteFailure, is_constraint};
pub use file::make_file;
