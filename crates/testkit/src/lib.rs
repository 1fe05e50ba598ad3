//! Test fixtures: fixed keys, statement builders, a policy that admits the statements, and a fixed time.
//!
//! All values are the same in every run, except ES256 signatures, whose nonce is random. The secrets are public: no key of
//! this crate may be trusted outside tests. A dev-dependency only.

pub mod agent;
pub mod agentroa;
mod conversations;
mod executions;
mod keys;
mod mcp_server;
mod names;
mod policy;
mod statements;
mod vap;
pub mod vectors;

pub use conversations::{
    RECORDER, conversation, conversation_builder, conversation_json, conversation_of, conversation_type,
    json_as_cbor, recorder,
};
pub use executions::{aer, aer_json, aer_statement, denied_aer_json, rootless_aer_json};
pub use keys::{GATEWAY_KEY, OPERATOR, VERIFIER, ed25519, es256, es384, gateway, operator, verifier};
pub use mcp_server::{McpRequest, McpResponse, McpServer, Responder};
pub use names::{GATEWAY, GATEWAY_ID, ISSUER, ISSUER_384, KID, LOG_ISS, ORIGIN};
pub use policy::{operator_action, policy, policy_in_force, policy_statement, policy_toml};
pub use statements::{AGENT, NOW, opaque, opaque_with, receipt, receipt_about, receipt_json, vrf};
pub use vap::{
    COMMITMENT, SESSION, audit_json, audit_record, decision_json, jwk_set, jwk_set_json, outcome_json,
    signed_verdict_json, verdict, verdict_json,
};
