//! One check of the suite: its requirement and the function that decides it.

use serde::Serialize;

use crate::judgement::Judgement;
use crate::observations::Observations;

/// The level of a requirement (RFC 2119).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RequirementLevel {
    /// A violation fails the service.
    Must,
    /// A violation is a warning.
    Should,
}

impl RequirementLevel {
    /// Returns the key word of RFC 2119.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
        }
    }
}

/// A named check.
#[derive(Clone, Copy, Debug)]
pub struct ConformanceCheck {
    /// Stable name, unique in the suite.
    pub name: &'static str,
    /// Specification and section.
    pub source: &'static str,
    /// Level of the requirement.
    pub level: RequirementLevel,
    /// What a conforming service does, in one line.
    pub expectation: &'static str,
    /// Decides the check from the observations.
    pub judge: fn(&Observations) -> Judgement,
}

/// Creates a check of a MUST.
pub const fn must(
    name: &'static str,
    source: &'static str,
    expectation: &'static str,
    judge: fn(&Observations) -> Judgement,
) -> ConformanceCheck {
    ConformanceCheck { name, source, level: RequirementLevel::Must, expectation, judge }
}

/// Creates a check of a SHOULD.
pub const fn should(
    name: &'static str,
    source: &'static str,
    expectation: &'static str,
    judge: fn(&Observations) -> Judgement,
) -> ConformanceCheck {
    ConformanceCheck { name, source, level: RequirementLevel::Should, expectation, judge }
}
