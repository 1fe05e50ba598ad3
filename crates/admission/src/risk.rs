//! The risk score of a call, reproducible by anyone with the same inputs (VAP, section 10).
//!
//! The score combines five signals, each from 0 to 1000: the tool's sensitivity, consumption ahead of time, repetition
//! of the call, novelty, and proximity of a limit. Each signal is weighted. The score is the probability that at least
//! one signal fires, if they were independent: `1000 − Π(1000 − weight·signal)`. All arithmetic is in integers, so that
//! all machines get the same result. No signal decides by itself: without a judge, the score is recorded, and
//! the operator's rules can read it (reading V-28).
//!
//! Not here: the consequences of a score ([`decide`](crate::decide)).

use serde::{Deserialize, Serialize};

use vap::message::Sensitivity;
use vap::verdict::{Score, Trigger};

/// A number from 0 to 1, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Degree(u16);

impl Degree {
    /// 0.
    pub const ZERO: Degree = Degree(0);
    /// 1.
    pub const ONE: Degree = Degree(1000);

    /// Creates a degree from thousandths; values above 1000 are clamped.
    #[must_use]
    pub fn thousandths(n: u64) -> Degree {
        Degree(u16::try_from(n.min(1000)).unwrap_or(1000))
    }

    /// Rounds a number to the nearest thousandth, clamped to 0 to 1; NaN becomes zero.
    #[must_use]
    pub fn of(number: f64) -> Degree {
        let nearest = (0..=1000u16).min_by(|a, b| {
            let away = |n: u16| (f64::from(n) / 1000.0 - number).abs();
            away(*a).total_cmp(&away(*b))
        });
        Degree(nearest.filter(|_| !number.is_nan()).unwrap_or(0))
    }

    /// Returns the number in thousandths.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the number as a [`Score`] for the Verdict.
    #[must_use]
    pub fn score(self) -> Score {
        Score::clamped(f64::from(self.0) / 1000.0)
    }

    fn without(self, weight: Degree) -> u64 {
        1000 - u64::from(self.0) * u64::from(weight.0) / 1000
    }
}

/// The weight of each signal in the risk score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Weight of the tool's sensitivity.
    pub sensitivity: Degree,
    /// Weight of consumption that runs ahead of time.
    pub burn_rate: Degree,
    /// Weight of repeated calls and denials.
    pub looping: Degree,
    /// Weight of a tool, or a shape of arguments, that is new in the session.
    pub novelty: Degree,
    /// Weight of the proximity of a limit.
    pub proximity: Degree,
}

impl Default for Weights {
    /// The weights of section 10: sensitivity is the strongest signal, and proximity of a limit alone never decides.
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

/// The signals of a call, each from 0 to 1000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// The sensitivity of the tool, from [`sensitivity`].
    pub sensitivity: Degree,
    /// Consumption ahead of time, from [`burn_rate`].
    pub burn_rate: Degree,
    /// Repetition of the call, from [`looping`].
    pub looping: Degree,
    /// Novelty of the call, from [`novelty`].
    pub novelty: Degree,
    /// Proximity of a limit, from [`proximity`].
    pub proximity: Degree,
}

/// The risk of a call, with its strongest signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Risk {
    /// The risk score.
    pub score: Degree,
    /// The signal with the largest weighted value.
    pub strongest: Trigger,
}

impl Signals {
    /// Combines the signals under these weights.
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
        let strongest = weighed.iter().min_by_key(|(without, _)| *without);
        Risk {
            score: Degree::thousandths(1000 - silent),
            strongest: strongest.map_or(Trigger::Sensitivity, |(_, trigger)| *trigger),
        }
    }
}

/// Returns the signal of a sensitivity class. An unclassified tool counts more than one that reads.
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

/// Returns the signal of repetition: 200 for each repeat of the call and for each denial in a row.
#[must_use]
pub fn looping(repeats: usize, denied_in_a_row: u64) -> Degree {
    let repeats = u64::try_from(repeats).unwrap_or(u64::MAX);
    Degree::thousandths(repeats.saturating_add(denied_in_a_row).saturating_mul(200))
}

/// Returns the signal of novelty: 1000 for a new tool, 500 for a new shape of arguments, 0 for a known one.
#[must_use]
pub const fn novelty(known_tool: bool, known_shape: bool) -> Degree {
    Degree(match (known_tool, known_shape) {
        (false, _) => 1000,
        (true, false) => 500,
        (true, true) => 0,
    })
}

/// Returns the signal of a near limit: 0 up to 80 % of the limit, then rising to 1000.
#[must_use]
pub fn proximity(used: Degree) -> Degree {
    Degree::thousandths(u64::from(used.get().saturating_sub(800)) * 5)
}

/// Returns the signal of consumption ahead of time: the used part of the budget less the elapsed part of the time.
#[must_use]
pub fn burn_rate(used: Degree, elapsed: Degree) -> Degree {
    Degree::thousandths(u64::from(used.get().saturating_sub(elapsed.get())))
}
