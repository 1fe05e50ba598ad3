//! How the vectors are made.

mod chain;
mod declared;
mod message;
#[path = "../../messages/sample.rs"]
#[allow(dead_code)] // Vectors need other samples than tests.
mod sample;
mod signature;
mod verdict;

use crate::Case;

pub fn all() -> Vec<Case> {
    [
        message::cases(),
        declared::arguments(),
        declared::patterns(),
        declared::rules(),
        chain::cases(),
        signature::cases(),
        verdict::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
