//! Fixed signing keys, whose secrets are public.

use scitt::SigningKey;

/// Ed25519 seed of the [`verifier`] of VRF receipts: test 1 of RFC 8032, section 7.1.
pub const VERIFIER: [u8; 32] = [
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44,
    0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
];

/// Ed25519 seed of the log's [`operator`].
pub const OPERATOR: [u8; 32] = [0x0f; 32];

/// Ed25519 seed of the [`gateway`], which signs execution receipts.
pub const GATEWAY_KEY: [u8; 32] = [0x6a; 32];

/// Returns the Ed25519 key with this seed.
pub fn ed25519(seed: [u8; 32]) -> SigningKey {
    SigningKey::from_ed25519_seed(&seed).expect("32 bytes are a key")
}

/// Returns the key of the verifier of agents' work: `did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw`.
pub fn verifier() -> SigningKey {
    ed25519(VERIFIER)
}

/// Returns the key of the gateway, which permits or denies agents' tool calls.
pub fn gateway() -> SigningKey {
    ed25519(GATEWAY_KEY)
}

/// Returns the key of the operator, who signs the log's policies.
pub fn operator() -> SigningKey {
    ed25519(OPERATOR)
}

/// Returns a fixed P-256 key, which signs with ES256.
pub fn es256() -> SigningKey {
    SigningKey::from_pkcs8_pem(include_str!("../keys/es256.pem")).expect("the file holds a key")
}

/// Returns a fixed P-384 key, which signs with ES384.
pub fn es384() -> SigningKey {
    SigningKey::from_pkcs8_pem(include_str!("../keys/es384.pem")).expect("the file holds a key")
}
