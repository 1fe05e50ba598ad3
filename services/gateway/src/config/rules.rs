//! The admission rules of a route, compiled. Their digest covers what decides, not the file: a changed comment does not
//! change it.

use admission::risk::Degree;
use admission::rules::{Approvals, JudgeRules, Rules};
use admission::signature::Demands;
use jiff::SignedDuration;

use super::{Config, Judge, Requirement, Route};

impl Config {
    /// Compiles the rules of a route.
    #[must_use]
    pub fn rules(&self, route: &Route) -> Rules {
        let approvals = self.approvals_of(route);
        let judge = self.judge.as_ref().filter(|_| route.judge);
        let rules = Rules {
            demands: Demands {
                signed: route.signed == Requirement::Required,
                amendments_signed: route.amendments_signed,
                freshness: route.freshness,
                audience: self.issuer.clone(),
            },
            posture: route.without_vap,
            restricted: route.restricted.clone(),
            operator_commitment: route.commitment.clone(),
            keyring: self.keyring.clone().with_approvers(&thumbprints(&approvals)),
            ceiling: route.ceiling.clone(),
            principal_ceiling: route.principal_ceiling.clone(),
            costs: route.costs.clone(),
            sensitivities: route.sensitivities.clone(),
            policy: route.rules.clone(),
            risk: route.risk,
            judge: judge.map(|judge| judge_rules(judge, route.threshold)),
            tools: route.tools,
            gated_methods: route.gated.clone(),
            authority: route.authority.clone(),
            approvals,
            ..Rules::new(&route.path, &self.issuer, "")
        };
        rules.digested()
    }
}

/// Thumbprints of the keys of a route's approvers: only their signatures on an amendment count in addition to the
/// agent's own.
fn thumbprints(approvals: &Approvals) -> Vec<String> {
    let keys = approvals.approvers.iter().flat_map(|approver| &approver.keys);
    keys.map(|key| key.thumbprint().to_owned()).collect()
}

fn judge_rules(judge: &Judge, threshold: Degree) -> JudgeRules {
    JudgeRules {
        model: judge.model.clone(),
        meter: judge.meter.as_str().to_owned(),
        threshold,
        sample: parts(judge.sample_rate),
        commitments: judge.commitments,
        cap: judge.cap,
        reserve: judge.cost,
        confidence: Degree::of(judge.confidence),
        cache_for: SignedDuration::try_from(judge.cache).unwrap_or(SignedDuration::ZERO),
    }
}

/// A share as a number of 2^32 parts, at least 1 (V-28).
fn parts(share: f64) -> u32 {
    /// 2^32 - 1, which `f64` represents exactly.
    const ALL: f64 = 4_294_967_295.0;
    // The value is clamped to the range of `u32`.
    (share * ALL).clamp(1.0, ALL) as u32
}
