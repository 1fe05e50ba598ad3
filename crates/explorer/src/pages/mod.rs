//! The pages: a model and its rendering in each module.

pub mod alarms;
pub mod chain;
pub mod checkpoints;
pub mod consistency;
pub mod delegation;
pub mod entry;
pub mod growth;
pub mod home;
pub mod issuer;
pub mod policy;
pub mod problem;
pub mod proof;
pub mod search;
pub mod session;
pub mod status;
