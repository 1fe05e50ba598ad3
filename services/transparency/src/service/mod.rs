//! Start, reload and stop of the service.

pub mod policy;
pub mod run;
pub mod startup;
