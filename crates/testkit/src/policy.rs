//! A policy that admits the statements of this crate.

use merkle::LeafIndex;
use registration::operator::{self, Action};
use registration::policy_statement as statement;
use registration::{OPERATOR_ACTION_CONTENT_TYPE, Policy, PolicyInForce};
use scitt::{SignedStatement, Signer};

use crate::conversations::conversation_type;
use crate::keys::{es256, es384, gateway, operator};
use crate::names::{GATEWAY, GATEWAY_ID, ISSUER, ISSUER_384, KID, LOG_ISS, ORIGIN};
use crate::vap::types;

/// Returns the policy as TOML: both issuers, the gateway, any `did:key` and `did:jwk`; VRF; execution receipts; VAP;
/// conversation records; JSON and text as opaque payloads.
pub fn policy_toml() -> String {
    let (operator, es256, es384, gateway) = (operator(), es256(), es384(), gateway());
    let did = |key: &dyn Signer| key.public_key().did_key();
    format!(
        r#"
iss = "{LOG_ISS}"
origin = "{ORIGIN}"
revision = 0

[[operator]]
key = "{}"

[[issuer]]
iss = "{ISSUER}"
keys = [{{ key = "{}", kid = "{KID}" }}]

[[issuer]]
iss = "{ISSUER_384}"
keys = [{{ key = "{}", kid = "{KID}" }}]

[[issuer]]
iss = "{GATEWAY}"
keys = [{{ key = "{}", kid = "{KID}" }}]

[did]
key = "open"
jwk = "open"

[[type]]
content_type = "application/vrf+cbor"
issuers = ["did:key:*"]

[[type]]
content_type = "application/vrf+json"
issuers = ["did:key:*"]

[[type]]
content_type = "application/aer+json"
hash_envelope = true

[[type.aer.gateway]]
iss = "{GATEWAY}"
id = "{GATEWAY_ID}"
keys = ["{}"]

[[type]]
content_type = "application/agentroa-chain+json"

[[type]]
content_type = "application/json"
detached = true
hash_envelope = true

[[type]]
content_type = "text/plain"
max_size = 4096
"#,
        did(&operator),
        did(&es256),
        did(&es384),
        did(&gateway),
        did(&gateway)
    ) + &types()
        + conversation_type()
}

/// Returns the parsed [`policy_toml`].
pub fn policy() -> Policy {
    Policy::from_toml(&policy_toml()).expect("the policy is sound")
}

/// Returns the [`policy`] as entry 0 of a log.
pub fn policy_in_force() -> PolicyInForce {
    PolicyInForce::new(policy(), LeafIndex::new(0))
}

/// Returns a statement of the operator's action, signed under the [`policy`].
pub fn operator_action(action: &Action) -> SignedStatement {
    let (policy, log) = (policy(), (LOG_ISS, ORIGIN));
    let operators = &policy.contents().operators;
    operator::sign(OPERATOR_ACTION_CONTENT_TYPE, action.payload(), None, log, operators, &operator())
        .expect("the operator is listed")
}

/// Returns entry 0 of a log: the [`policy`], signed by the [`operator()`].
pub fn policy_statement() -> SignedStatement {
    let policy = policy();
    statement::sign(&policy, &policy, &operator()).expect("the operator is listed")
}
