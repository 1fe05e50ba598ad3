//! A policy that admits what this crate builds.

use merkle::LeafIndex;
use registration::operator::{self, Action};
use registration::policy::statement;
use registration::{OPERATOR_ACTION_CONTENT_TYPE, Policy, PolicyInForce};
use scitt::{SignedStatement, Signer};

use crate::conversations::conversation_type;
use crate::keys::{es256, es384, gateway, operator};
use crate::vap::types;

/// The log's `iss`.
pub const LOG_ISS: &str = "https://log.example";
/// The log's origin.
pub const ORIGIN: &str = "log.example/test";
/// An issuer bound to [`es256`], under [`KID`].
pub const ISSUER: &str = "https://issuer.example";
/// An issuer bound to [`es384`], under [`KID`].
pub const ISSUER_384: &str = "https://issuer-384.example";
/// The kid of both.
pub const KID: &str = "key-1";

/// A gateway bound to [`gateway`], under [`KID`].
pub const GATEWAY: &str = "https://gateway.example";
/// Its one instance, whose receipts that key signs too.
pub const GATEWAY_ID: &str = "gateway:test-1";

/// The policy as an operator would type it: both issuers, the gateway, any did:key and did:jwk; VRF; execution receipts;
/// JSON and text as bytes.
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

/// The same, resolved.
pub fn policy() -> Policy {
    Policy::from_toml(&policy_toml()).expect("the policy is sound")
}

/// The same, as entry 0 of a log.
pub fn policy_in_force() -> PolicyInForce {
    PolicyInForce::new(policy(), LeafIndex::new(0))
}

/// An action of the operator, signed under the policy.
pub fn operator_action(action: &Action) -> SignedStatement {
    let (policy, log) = (policy(), (LOG_ISS, ORIGIN));
    let operators = &policy.contents().operators;
    operator::sign(OPERATOR_ACTION_CONTENT_TYPE, action.payload(), None, log, operators, &operator())
        .expect("the operator is listed")
}

/// Entry 0 of a log: the policy, signed by the operator.
pub fn policy_statement() -> SignedStatement {
    let policy = policy();
    statement::sign(&policy, &policy, &operator()).expect("the operator is listed")
}
