//! The operator's commands on the admin listener.

pub mod clock_correction;
pub mod effects;
pub mod freezing;
pub mod holds;
pub mod inbox;
pub mod rotation;
pub mod statements;
