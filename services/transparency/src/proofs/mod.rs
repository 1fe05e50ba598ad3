//! Receipts, the published keys that verify them, and the tiles that prove inclusion.

pub mod published_keys;
pub mod receipts;
pub mod tiles;
