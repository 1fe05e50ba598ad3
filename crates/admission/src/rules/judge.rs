//! The conditions for asking the judge, and its budget (readings V-28, V-31).

use jiff::SignedDuration;

use crate::risk::{Degree, Signals, Weights};
use decimal::Decimal;
use vap::verdict::Trigger;

/// The rules of the semantic tier, which exists only if the operator configured a judge.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeRules {
    /// The name of the judge's model; used here only for the digest of the rules.
    pub model: String,
    /// The unit of the judge's cost; used here only for the digest of the rules.
    pub meter: String,
    /// The judge is asked about calls with at least this risk score.
    pub threshold: Degree,
    /// The share of all other calls about which the judge is asked at random, in parts of 2^32; more than zero (reading
    /// V-28).
    pub sample: u32,
    /// `true` if the judge is asked about commitments and amendments (S2).
    pub commitments: bool,
    /// The ceiling of the judge's cost per session, on the meter `vap.judge` (reading V-31).
    pub cap: Decimal,
    /// The amount reserved on that meter for one question.
    pub reserve: Decimal,
    /// The minimum confidence of an answer; below it, the judge counts as uncertain.
    pub confidence: Degree,
    /// The lifetime of a cached verdict (reading V-29).
    pub cache_for: SignedDuration,
}

impl JudgeRules {
    /// Returns the triggers that can occur under these weights, in the order of [`Trigger`].
    #[must_use]
    pub fn triggers(&self, weights: &Weights) -> Vec<Trigger> {
        let declared = [Trigger::SessionStart, Trigger::Amendment].into_iter().filter(|_| self.commitments);
        let Weights { sensitivity, burn_rate, looping, novelty, proximity } = *weights;
        let signals = [
            (Trigger::Sensitivity, sensitivity),
            (Trigger::BurnRateAnomaly, burn_rate),
            (Trigger::Looping, looping),
            (Trigger::Novelty, novelty),
            (Trigger::ThresholdProximity, proximity),
        ];
        let signals = signals.into_iter().filter(|(_, weight)| self.is_reached_by(*weight, weights));
        let chance = [Trigger::RandomSample].into_iter().filter(|_| self.sample > 0);
        declared.chain(signals.map(|(trigger, _)| trigger)).chain(chance).collect()
    }

    /// Returns `true` if a call can reach the threshold with no signal stronger than one of this weight at its maximum.
    fn is_reached_by(&self, strongest: Degree, weights: &Weights) -> bool {
        let Weights { sensitivity, burn_rate, looping, novelty, proximity } = *weights;
        let all = Signals {
            sensitivity: Degree::ONE,
            burn_rate: Degree::ONE,
            looping: Degree::ONE,
            novelty: Degree::ONE,
            proximity: Degree::ONE,
        };
        let most = Weights {
            sensitivity: sensitivity.min(strongest),
            burn_rate: burn_rate.min(strongest),
            looping: looping.min(strongest),
            novelty: novelty.min(strongest),
            proximity: proximity.min(strongest),
        };
        strongest > Degree::ZERO && all.weigh(&most).score >= self.threshold
    }
}
