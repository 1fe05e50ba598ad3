//! The risk of a call, as a number that anybody can compute again (section 10).
//!
//! Five signals, each from 0 to 1000: how sensitive the tool is, how far consumption runs ahead of time, how often this very
//! call was made, how new it is, and how near a limit is. Each is weighed, and together they are the chance that at least one
//! would speak, if they were independent: `1000 − Π(1000 − weight·signal)`. Whole numbers throughout, so that two machines agree.
//! No signal decides anything by itself: without a judge the score is recorded and that is all (reading V-28).
//!
//! Not here: what follows from a score ([`decide`](crate::decide)).

use serde::{Deserialize, Serialize};

use crate::message::Sensitivity;
use crate::verdict::{Score, Trigger};

/// A number from 0 to 1, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Degree(u16);

impl Degree {
    /// Nothing.
    pub const ZERO: Degree = Degree(0);
    /// All of it.
    pub const ONE: Degree = Degree(1000);

    /// Thousandths; what is more than all is all.
    #[must_use]
    pub fn thousandths(n: u64) -> Degree {
        Degree(u16::try_from(n.min(1000)).unwrap_or(1000))
    }

    /// The nearest thousandth of a number; what is no number from 0 to 1 is the nearer end, and NaN is zero.
    #[must_use]
    pub fn of(number: f64) -> Degree {
        let nearest = (0..=1000u16).min_by(|a, b| {
            let away = |n: u16| (f64::from(n) / 1000.0 - number).abs();
            away(*a).total_cmp(&away(*b))
        });
        Degree(nearest.filter(|_| !number.is_nan()).unwrap_or(0))
    }

    /// In thousandths.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// As the number of the wire.
    #[must_use]
    pub fn score(self) -> Score {
        Score::clamped(f64::from(self.0) / 1000.0)
    }

    fn without(self, weight: Degree) -> u64 {
        1000 - u64::from(self.0) * u64::from(weight.0) / 1000
    }
}

/// How much each signal weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The sensitivity of the tool.
    pub sensitivity: Degree,
    /// Consumption that runs ahead of time.
    pub burn_rate: Degree,
    /// The same call again, and denials.
    pub looping: Degree,
    /// A tool, or a shape of arguments, for the first time.
    pub novelty: Degree,
    /// A limit that is near.
    pub proximity: Degree,
}

impl Default for Weights {
    /// Sensitivity speaks for itself; nearness of a limit never decides alone (section 10).
    fn default() -> Self {
        Weights {
            sensitivity: Degree(800),
            burn_rate: Degree(500),
            looping: Degree(700),
            novelty: Degree(300),
            proximity: Degree(300),
        }
    }
}

/// What is known about a call, each from 0 to 1000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// How sensitive.
    pub sensitivity: Degree,
    /// How far consumption runs ahead of time.
    pub burn_rate: Degree,
    /// How often repeated.
    pub looping: Degree,
    /// How new.
    pub novelty: Degree,
    /// How near a limit.
    pub proximity: Degree,
}

/// A call's risk, and the signal that speaks loudest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Risk {
    /// The score.
    pub score: Degree,
    /// What speaks loudest.
    pub loudest: Trigger,
}

impl Signals {
    /// The risk of a call.
    #[must_use]
    pub fn weigh(&self, weights: &Weights) -> Risk {
        let weighed = [
            (self.sensitivity.without(weights.sensitivity), Trigger::Sensitivity),
            (self.looping.without(weights.looping), Trigger::Looping),
            (self.burn_rate.without(weights.burn_rate), Trigger::BurnRateAnomaly),
            (self.novelty.without(weights.novelty), Trigger::Novelty),
            (self.proximity.without(weights.proximity), Trigger::ThresholdProximity),
        ];
        let silent = weighed.iter().fold(1000, |silent, (without, _)| silent * without / 1000);
        let loudest = weighed.iter().min_by_key(|(without, _)| *without);
        Risk {
            score: Degree::thousandths(1000 - silent),
            loudest: loudest.map_or(Trigger::Sensitivity, |(_, trigger)| *trigger),
        }
    }
}

/// How sensitive a call is. One that nobody classed is not taken for a read.
#[must_use]
pub const fn sensitivity(class: Option<Sensitivity>) -> Degree {
    Degree(match class {
        Some(Sensitivity::Reads) => 0,
        None => 200,
        Some(Sensitivity::WritesData) => 400,
        Some(Sensitivity::SendsExternal) => 600,
        Some(Sensitivity::WritesMoney | Sensitivity::Deletes) => 800,
        Some(Sensitivity::GrantsAccess) => 1000,
    })
}

/// How loud repetition is: the same call again, and calls that were denied in a row.
#[must_use]
pub fn looping(repeats: usize, denied_in_a_row: u64) -> Degree {
    let repeats = u64::try_from(repeats).unwrap_or(u64::MAX);
    Degree::thousandths(repeats.saturating_add(denied_in_a_row).saturating_mul(200))
}

/// How new a call is.
#[must_use]
pub const fn novelty(known_tool: bool, known_shape: bool) -> Degree {
    Degree(match (known_tool, known_shape) {
        (false, _) => 1000,
        (true, false) => 500,
        (true, true) => 0,
    })
}

/// How near a limit is: nothing below four fifths of it.
#[must_use]
pub fn proximity(used: Degree) -> Degree {
    Degree::thousandths(u64::from(used.get().saturating_sub(800)) * 5)
}

/// How far consumption runs ahead of time.
#[must_use]
pub fn burn_rate(used: Degree, elapsed: Degree) -> Degree {
    Degree::thousandths(u64::from(used.get().saturating_sub(elapsed.get())))
}
