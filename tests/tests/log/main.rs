//! The transparency service over HTTP.
#![allow(clippy::unwrap_used)]

mod conformance;
mod erasure;
mod explorer;
mod hostile_requests;
mod http_cache;
mod inbox;
mod key_rotation;
mod log_end;
mod operators;
mod proofs;
mod proven_searches;
mod proxy_answers;
mod quotas;
mod relying_parties;
mod reverse_proxy;
mod scrapi;
mod search_answers;
mod searching;
mod sessions;
mod streams;
mod tail;
mod telemetry;
mod verify_page;
mod vrf_chains;
mod vrf_issuers;
