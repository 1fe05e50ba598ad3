//! What an admission makes of a route: its rules, compiled, and the digest of what was configured.
//!
//! The digest is taken over canonical JSON of what decides, not over the file: a comment changes nothing, and two gateways
//! with the same policy say so. Amounts are in it as decimal text, keys by their thumbprints.

use admission::risk::Degree;
use admission::rules::{JudgeRules, Rules};
use admission::session::Meters;
use admission::signature::{Demands, Freshness, Holder};
use data_encoding::BASE64URL_NOPAD;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Config, Judge, Requirement, Route};

impl Config {
    /// The rules of a route.
    #[must_use]
    pub fn rules(&self, route: &Route) -> Rules {
        let judge = self.judge.as_ref().filter(|_| route.judge);
        let digest = Sha256::digest(jose::jcs::canonical(&self.described(route)));
        let policy_digest = format!("sha256:{}", data_encoding::HEXLOWER.encode(&digest));
        Rules {
            demands: Demands {
                signed: route.signed == Requirement::Required,
                amendments_signed: route.amendments_signed,
                freshness: route.freshness,
                audience: self.issuer.clone(),
            },
            posture: route.without_vap,
            restricted: route.restricted.clone(),
            keyring: self.keyring.clone(),
            ceiling: route.ceiling.clone(),
            principal_ceiling: route.principal_ceiling.clone(),
            costs: route.costs.clone(),
            sensitivities: route.sensitivities.clone(),
            policy: route.rules.clone(),
            risk: route.risk,
            judge: judge.map(|judge| judge_rules(judge, route.threshold)),
            gated_methods: route.gated.clone(),
            ..Rules::new(&route.path, &self.issuer, &policy_digest)
        }
    }

    /// All that decides on a route, as JSON.
    #[must_use]
    pub fn described(&self, route: &Route) -> Value {
        let agents = self.agents.iter().map(|agent| {
            json!({
                "holder": match &agent.holder {
                    Holder::Agent(id) => json!({ "agent": id }),
                    Holder::Approver => json!("approver"),
                },
                "keys": agent.keys.iter().map(|key| BASE64URL_NOPAD.encode(&key.thumbprint())).collect::<Vec<_>>(),
                "kids": agent.keys.iter().map(jose::jwk::PublicJwk::kid).collect::<Vec<_>>(),
                "not_before": agent.not_before.map(|time| time.to_string()),
                "not_after": agent.not_after.map(|time| time.to_string()),
            })
        });
        json!({
            "issuer": self.issuer,
            "agents": agents.collect::<Vec<_>>(),
            "path": route.path,
            "without_vap": route.without_vap.as_str(),
            "restricted": route.restricted.iter().map(|pattern| pattern.as_str()).collect::<Vec<_>>(),
            "signed": route.signed.name(),
            "amendments_signed": route.amendments_signed,
            "fresh": route.freshness == Freshness::Required,
            "ceiling": ceiling(route),
            "principal_ceiling": principal_ceiling(route),
            "costs": costs(route),
            "sensitivities": route.sensitivities.tools.iter().map(|(tool, class)| {
                json!([tool.as_str(), class])
            }).collect::<Vec<_>>(),
            "risk": risk(route),
            "rules": policy(route),
            "gated": route.gated,
            "judge": self.judge.as_ref().filter(|_| route.judge).map(|judge| described_judge(judge, route)),
        })
    }
}

fn judge_rules(judge: &Judge, threshold: Degree) -> JudgeRules {
    JudgeRules {
        threshold,
        sample: parts(judge.sample_rate),
        commitments: judge.commitments,
        cap: judge.cap,
        reserve: judge.cost,
        confidence: Degree::of(judge.confidence),
        cache_for: SignedDuration::try_from(judge.cache).unwrap_or(SignedDuration::ZERO),
    }
}

/// A share in 2^32 parts, at least one of them (V-28).
fn parts(share: f64) -> u32 {
    /// 2^32 - 1, exactly.
    const ALL: f64 = 4_294_967_295.0;
    // The cast is of a number inside of the type.
    (share * ALL).clamp(1.0, ALL) as u32
}

fn meters(meters: &Meters) -> Value {
    Value::Object(
        meters.iter().map(|(meter, amount)| (meter.to_owned(), amount.to_string().into())).collect(),
    )
}

fn ceiling(route: &Route) -> Value {
    json!({
        "max_calls": route.ceiling.max_calls.map(|calls| calls.to_string()),
        "latest": route.ceiling.latest.map(|time| time.to_string()),
        "lasts": route.ceiling.lasts.map(|length| length.as_secs().to_string()),
        "limits": meters(&route.ceiling.limits),
    })
}

fn principal_ceiling(route: &Route) -> Value {
    route.principal_ceiling.as_ref().map_or(Value::Null, |ceiling| {
        json!({
            "max_calls": ceiling.max_calls.map(|calls| calls.to_string()),
            "limits": meters(&ceiling.limits),
            "window": ceiling.window.map(|seconds| seconds.to_string()),
        })
    })
}

fn costs(route: &Route) -> Value {
    let tools = route.costs.tools.iter().map(|(tool, cost)| json!([tool.as_str(), meters(cost)]));
    json!({
        "default": meters(&route.costs.default),
        "tools": tools.collect::<Vec<_>>(),
        "cap": meters(&route.costs.cap),
        "strict": route.costs.strict,
    })
}

fn risk(route: &Route) -> Value {
    let weights = &route.risk;
    let all = [
        ("sensitivity", weights.sensitivity),
        ("burn_rate", weights.burn_rate),
        ("looping", weights.looping),
        ("novelty", weights.novelty),
        ("proximity", weights.proximity),
    ];
    Value::Object(
        all.into_iter().map(|(name, weight)| (name.to_owned(), weight.get().into())).collect::<Map<_, _>>(),
    )
}

fn policy(route: &Route) -> Value {
    let rules = route.rules.iter().map(|rule| {
        json!({
            "name": rule.name().as_str(),
            "tool": rule.tool().map(|pattern| pattern.as_str()),
            "when": rule.when().map(|when| when.text()),
            "then": rule.then().as_str(),
        })
    });
    Value::Array(rules.collect())
}

fn described_judge(judge: &Judge, route: &Route) -> Value {
    json!({
        "model": judge.model,
        "threshold": route.threshold.get(),
        "sample": parts(judge.sample_rate),
        "commitments": judge.commitments,
        "confidence": Degree::of(judge.confidence).get(),
        "cache": judge.cache.as_secs(),
        "meter": judge.meter.as_str(),
        "cost": judge.cost.to_string(),
        "cap": judge.cap.to_string(),
    })
}
