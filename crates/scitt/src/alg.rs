//! Supported signature algorithms, each bound to one curve.
//!
//! COSE has two families of identifiers: the polymorphic ones of RFC 9053 (-7, -8, -35, -36), which most deployed peers
//! still emit, and the fully specified ones of RFC 9864 (-9, -19, -51, -52). Both are read and written. RFC 9053 would
//! let ES256 sign with P-521 and EdDSA with Ed448; here an algorithm has exactly one curve, so that a key is never used
//! with an algorithm that it was not made for.
//!
//! Not here: hash algorithms of hash envelopes and certificate thumbprints. RSA, Ed448, Brainpool curves and the
//! post-quantum identifiers are not supported: messages that name them are refused.

use std::fmt;

pub use jose::jwk::Curve;

/// A signature algorithm of the COSE registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// EdDSA (-8), with Ed25519 only.
    EdDsa,
    /// Ed25519 (-19), RFC 9864.
    Ed25519,
    /// ES256 (-7), with P-256 only.
    Es256,
    /// ESP256 (-9), RFC 9864.
    Esp256,
    /// ES384 (-35), with P-384 only.
    Es384,
    /// ESP384 (-51), RFC 9864.
    Esp384,
    /// ES512 (-36), with P-521 only.
    Es512,
    /// ESP512 (-52), RFC 9864.
    Esp512,
}

impl Algorithm {
    /// All supported algorithms.
    pub const ALL: [Self; 8] = [
        Self::EdDsa,
        Self::Ed25519,
        Self::Es256,
        Self::Esp256,
        Self::Es384,
        Self::Esp384,
        Self::Es512,
        Self::Esp512,
    ];

    /// Returns the algorithm with this COSE identifier, or `None` if it is not supported.
    pub fn from_cose(id: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.to_cose() == id)
    }

    /// Returns the identifier in the COSE Algorithms registry.
    pub const fn to_cose(self) -> i64 {
        match self {
            Self::EdDsa => -8,
            Self::Ed25519 => -19,
            Self::Es256 => -7,
            Self::Esp256 => -9,
            Self::Es384 => -35,
            Self::Esp384 => -51,
            Self::Es512 => -36,
            Self::Esp512 => -52,
        }
    }

    /// Returns the registered name, such as `ES256`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Ed25519 => "Ed25519",
            Self::Es256 => "ES256",
            Self::Esp256 => "ESP256",
            Self::Es384 => "ES384",
            Self::Esp384 => "ESP384",
            Self::Es512 => "ES512",
            Self::Esp512 => "ESP512",
        }
    }

    /// Returns the algorithm with this registered name, which is case-sensitive.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Returns the default algorithm for keys of this curve: the RFC 9053 identifier, as all existing verifiers know
    /// it. [`SigningKey::with_algorithm`](crate::SigningKey::with_algorithm) selects another.
    pub const fn default_for(curve: Curve) -> Self {
        match curve {
            Curve::Ed25519 => Self::EdDsa,
            Curve::P256 => Self::Es256,
            Curve::P384 => Self::Es384,
            Curve::P521 => Self::Es512,
        }
    }

    /// Returns the only curve that this algorithm may be used with.
    pub const fn curve(self) -> Curve {
        match self {
            Self::EdDsa | Self::Ed25519 => Curve::Ed25519,
            Self::Es256 | Self::Esp256 => Curve::P256,
            Self::Es384 | Self::Esp384 => Curve::P384,
            Self::Es512 | Self::Esp512 => Curve::P521,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_found_by_its_identifier_and_by_its_name() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_cose(algorithm.to_cose()), Some(algorithm));
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
    }

    #[test]
    fn algorithms_we_do_not_speak_are_not_found() {
        for id in [0, 1, 7, -1, -37, -53, -48, -257, -265, i64::MIN, i64::MAX] {
            assert_eq!(Algorithm::from_cose(id), None, "{id}");
        }
        assert_eq!(Algorithm::from_name("es256"), None);
    }

    #[test]
    fn a_curve_signs_by_default_with_an_algorithm_of_that_curve() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::default_for(algorithm.curve()).curve(), algorithm.curve());
        }
    }
}
