//! Answers of searches, honest and dishonest, and accusations against an index.

mod accusations;
mod attestations;
mod changed;
mod log;
mod outcomes;
