//! When the judge is asked, and what it may cost (readings V-28, V-31).

use jiff::SignedDuration;

use crate::decimal::Decimal;
use crate::risk::Degree;

/// The semantic tier: it exists only where the operator configured a judge.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeRules {
    /// A call of this risk or more is shown to the judge.
    pub threshold: Degree,
    /// How many of all other calls are shown to the judge at random, in 2^32 parts; more than none (reading V-28).
    pub sample: u32,
    /// Whether commitments and amendments are shown to the judge (S2).
    pub commitments: bool,
    /// The most that the judge may cost a session, on the meter `vap.judge` (reading V-31).
    pub cap: Decimal,
    /// What is reserved on that meter for one question.
    pub reserve: Decimal,
    /// A judge less sure than this is not sure.
    pub confidence: Degree,
    /// How long a verdict may be used again (reading V-29).
    pub cache_for: SignedDuration,
}
