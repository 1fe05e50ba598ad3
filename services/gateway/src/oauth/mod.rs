//! Who may come in: bearer tokens of one issuer, for one audience.

/// The algorithms of tokens that are accepted: never `none`, never a shared secret.
pub const ALGORITHMS: [&str; 4] = ["RS256", "ES256", "EdDSA", "Ed25519"];
