//! When the judge is asked, and what it may cost (readings V-28, V-31).

use jiff::SignedDuration;

use crate::decimal::Decimal;
use crate::risk::{Degree, Signals, Weights};
use crate::verdict::Trigger;

/// The semantic tier: it exists only where the operator configured a judge.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeRules {
    /// Which model answers. Nothing here asks it: it is said in the digest of the rules.
    pub model: String,
    /// What its cost is counted in, in a word. It is said in the digest, too.
    pub meter: String,
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

impl JudgeRules {
    /// Why the judge can be asked at all under these weights, in the order of the Verdict's words.
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

    /// Whether a call can reach the threshold while no signal speaks louder than one of this weight can.
    fn is_reached_by(&self, loudest: Degree, weights: &Weights) -> bool {
        let Weights { sensitivity, burn_rate, looping, novelty, proximity } = *weights;
        let all = Signals {
            sensitivity: Degree::ONE,
            burn_rate: Degree::ONE,
            looping: Degree::ONE,
            novelty: Degree::ONE,
            proximity: Degree::ONE,
        };
        let most = Weights {
            sensitivity: sensitivity.min(loudest),
            burn_rate: burn_rate.min(loudest),
            looping: looping.min(loudest),
            novelty: novelty.min(loudest),
            proximity: proximity.min(loudest),
        };
        loudest > Degree::ZERO && all.weigh(&most).score >= self.threshold
    }
}
