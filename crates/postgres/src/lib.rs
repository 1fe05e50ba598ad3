//! Connections to PostgreSQL: settings by role, error classes, schema versions.
//!
//! A store opens sessions by [`Server`] in one of its own [`SessionRole`]s, maps errors by [`PostgresFailure`], and checks the version of its
//! tables by [`DatabaseSchema`]. Before it relies on commits, it calls [`check_durability`]. What a transaction whose commit got no
//! answer means is the store's own matter.
//!
//! Not here: the SQL of a particular store (`store-postgres`, `evidence-postgres`).

mod durability;
mod failure;
mod limits;
mod number;
mod schema;
mod server;
#[cfg(feature = "testing")]
pub mod testing;

pub use durability::check_durability;
pub use failure::{PostgresFailure, code, is_aborted, is_worth_another_try};
pub use limits::UNTESTED;
pub use number::{column, rows};
pub use schema::DatabaseSchema;
pub use server::{Server, SessionRole, close};
