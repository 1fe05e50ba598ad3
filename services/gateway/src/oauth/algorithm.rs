//! The signature algorithms of tokens.

/// The signature algorithm of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519, under the older name `EdDSA`.
    EdDsa,
    /// Ed25519, under its name of RFC 9864.
    Ed25519,
}

impl TokenAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 4] = [Self::Rs256, Self::Es256, Self::EdDsa, Self::Ed25519];

    /// The value of `alg`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Ed25519 => "Ed25519",
        }
    }
}
