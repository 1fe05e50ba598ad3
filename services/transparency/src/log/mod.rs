//! The log of a running service: its state, registration, and what is read from its own entries.

pub mod admission;
pub mod bulk_admission;
pub mod content_type;
pub mod decided;
pub mod dry_run;
pub mod entry_reader;
pub mod equivocation;
pub mod erasures;
pub mod failed_write;
pub mod free_space;
pub mod freezing;
pub mod heads;
pub mod open_findings;
pub mod policies;
pub mod recent_entries;
pub mod registration;
pub mod registration_outcome;
pub mod state;
pub mod terms;
pub mod turns;
