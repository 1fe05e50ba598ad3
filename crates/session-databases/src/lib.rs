//! Rows of the SQLite databases in which coding agents keep their sessions: OpenCode since 1.2 (`opencode.db`) and
//! Cursor's composer (`state.vscdb`).
//!
//! The agent may be writing to the database. It is opened read-only and not copied, and all rows are read in one
//! transaction, so that they fit together. Only the tables with sessions are read, and only if they are ordinary tables:
//! a view or a virtual table could compute rows without end.
//!
//! Not here: what the rows say (`translators`).

mod error;
mod read;
mod tables;

pub use error::DatabaseError;
pub use read::{is_database, read};
