//! Numbers of operators who must agree to irreversible statements.

/// The number of operators who must agree, by kind of statement: one of them signs, the others approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Required {
    /// Number of operators for a policy after the first.
    pub policy: u64,
    /// Number of operators for an erasure.
    pub erasure: u64,
    /// Number of operators for a freeze.
    pub freeze: u64,
    /// Number of operators for a release.
    pub release: u64,
}

impl Required {
    /// One operator for every kind of statement.
    pub const ONE: Required = Required::all(1);

    /// Requires one number of operators for all kinds of statements.
    pub const fn all(number: u64) -> Required {
        Required { policy: number, erasure: number, freeze: number, release: number }
    }

    /// Returns the numbers with their names in a policy.
    pub fn named(&self) -> [(&'static str, u64); 4] {
        [
            ("policy", self.policy),
            ("erasure", self.erasure),
            ("freeze", self.freeze),
            ("release", self.release),
        ]
    }
}
