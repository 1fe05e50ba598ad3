//! Fixed signing keys.

use scitt::SigningKey;

/// The secret of RFC 8032's first test: the verifier of VRF receipts.
pub const VERIFIER: [u8; 32] = [
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44,
    0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
];

/// The secret of the log's operator.
pub const OPERATOR: [u8; 32] = [0x0f; 32];

/// The secret of the gateway that makes execution receipts.
pub const GATEWAY_KEY: [u8; 32] = [0x6a; 32];

/// The Ed25519 key with this secret.
pub fn ed25519(seed: [u8; 32]) -> SigningKey {
    SigningKey::from_ed25519_seed(&seed).expect("32 bytes are a key")
}

/// Who verifies agents' work: `did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw`.
pub fn verifier() -> SigningKey {
    ed25519(VERIFIER)
}

/// Who lets agents' tool calls through, or does not.
pub fn gateway() -> SigningKey {
    ed25519(GATEWAY_KEY)
}

/// Who signs the log's policies.
pub fn operator() -> SigningKey {
    ed25519(OPERATOR)
}

/// A P-256 key.
pub fn es256() -> SigningKey {
    SigningKey::from_pkcs8_pem(include_str!("../keys/es256.pem")).expect("the file holds a key")
}

/// A P-384 key.
pub fn es384() -> SigningKey {
    SigningKey::from_pkcs8_pem(include_str!("../keys/es384.pem")).expect("the file holds a key")
}
