//! CWT claims by name.

/// A CWT claim that a policy may require (RFC 8392).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CwtClaim {
    /// The claim `iat`, the time of issue.
    Iat,
    /// The claim `exp`, the time of expiry.
    Exp,
    /// The claim `nbf`, the start of validity.
    Nbf,
}

impl CwtClaim {
    /// All claims with their names.
    pub const ALL: [(CwtClaim, &'static str); 3] =
        [(CwtClaim::Iat, "iat"), (CwtClaim::Exp, "exp"), (CwtClaim::Nbf, "nbf")];

    /// The claim's name in RFC 8392.
    pub fn name(self) -> &'static str {
        match self {
            CwtClaim::Iat => "iat",
            CwtClaim::Exp => "exp",
            CwtClaim::Nbf => "nbf",
        }
    }
}
