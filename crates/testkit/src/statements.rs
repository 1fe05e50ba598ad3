//! Statements that [`policy`](crate::policy()) admits, and parts to build others.

use registration::vrf::VrfStatement;
use scitt::{SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};

use crate::keys::{es256, verifier};
use crate::names::{ISSUER, KID};

/// Fixed current time of the tests in Unix seconds: 2026-11-01T00:00:00Z.
pub const NOW: u64 = 1_793_491_200;
/// Agent whose work is verified.
pub const AGENT: &str = "did:web:agent.example";

/// Returns a JSON statement of [`ISSUER`] about `sub`, signed with ES256.
pub fn opaque(sub: &str, payload: &Value) -> SignedStatement {
    opaque_with(&es256(), ISSUER, KID.as_bytes(), sub, payload)
}

/// Returns a JSON statement of any issuer, signed by `signer`.
pub fn opaque_with(
    signer: &dyn Signer,
    iss: &str,
    kid: &[u8],
    sub: &str,
    payload: &Value,
) -> SignedStatement {
    StatementBuilder::new(payload.to_string())
        .content_type("application/json")
        .kid(kid)
        .iss(iss)
        .sub(sub)
        .sign(signer)
        .expect("a fixed key signs")
}

/// Returns the `n`th VRF statement: the receipt of one passed test, outside any chain.
pub fn vrf(n: u64) -> SignedStatement {
    receipt(n).unchained().sign(&verifier()).expect("the receipt keeps every rule")
}

/// Returns the `n`th VRF statement about [`AGENT`] before it is signed, as the first of a chain.
pub fn receipt(n: u64) -> VrfStatement {
    receipt_about(n, AGENT)
}

/// Returns the `n`th VRF statement about another agent before it is signed, as the first of a chain.
pub fn receipt_about(n: u64, agent: &str) -> VrfStatement {
    VrfStatement::new(receipt_json(n), agent)
}

/// Returns the receipt of one passed test as JSON, with the required members only.
pub fn receipt_json(n: u64) -> Value {
    json!({
        "vrf_version": "1.0",
        "receipt_id": format!("11111111-1111-4111-8111-{:012x}", 0x1111_1111_1111 + n),
        "verified_at": "2026-01-01T00:00:00Z",
        "tier": 0,
        "verdict": "pass",
        "results": { "total": 1, "passed": 1, "failed": 0, "errors": 0 },
        "hashes": { "output": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        "metadata": { "structural": true, "verifier": "v/1" },
    })
}
