//! For tests: fixed keys, statement builders, a policy that admits them, and a fixed time.
//!
//! Everything is the same on every run, except signatures of ES256, whose nonce is random. The secrets are public:
//! nothing here may ever be trusted outside a test. A dev-dependency only.

mod keys;
mod policy;
mod statements;

pub use keys::{OPERATOR, VERIFIER, ed25519, es256, es384, operator, verifier};
pub use policy::{
    ISSUER, ISSUER_384, KID, LOG_ISS, ORIGIN, policy, policy_in_force, policy_statement, policy_toml,
};
pub use statements::{AGENT, NOW, opaque, opaque_with, receipt, receipt_json, vrf};
