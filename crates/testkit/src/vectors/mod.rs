//! Vectors made from their sources: `vectors/sources/<family>/<rule>.toml` describes `vectors/<family>/<rule>/*.json`.
//!
//! `vectors/README.md` explains the format of the sources.

mod document;
mod files;
mod inputs;
mod rules;
mod statement;

pub use document::{ByteEdit, DocumentEdit};
pub use files::{compare, entries, insert, read, root, stem};
pub use inputs::{assert_inputs_match_sources, assert_kind_matches_source, assert_kinds_match_sources};
pub use rules::assert_match_sources;
