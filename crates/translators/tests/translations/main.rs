//! Translation of session files in the shape of each format. The files in `fixtures` are written for these tests.

#![allow(clippy::unwrap_used)]

mod accounts;
mod attribution;
mod cddl;
mod chains;
mod fixtures;
mod formats;
mod hostile;
mod maximal;
mod parts;
mod redactions;
