//! Counters of requests and registrations: one process's meters, and the quotas of issuers that all processes share.

pub mod issuer_quota;
pub mod meter;
pub mod rates;
pub mod shared_counter;
pub mod window_clock;
