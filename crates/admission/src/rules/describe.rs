//! The JSON form of the rules, over which their digest is computed: two gateways with the same rules have the same
//! digest.
//!
//! Each type is destructured member by member, so that the compiler rejects a member that is missing here. Amounts are
//! decimal texts, keys are thumbprints, and conditions are their source text.

use serde_json::{Value, json};

use super::{Ceiling, CostRules, JudgeRules, PrincipalCeiling, Rules, SensitivityRules};
use crate::effective::ScopeCeiling;
use crate::risk::Weights;
use crate::signature::{Demands, Freshness};
use crate::tool::ToolRules;
use vap::digest::Digest;
use vap::glob::Pattern;

impl Rules {
    /// Returns all settings that influence decisions on the route.
    #[must_use]
    pub fn describe(&self) -> Value {
        let Rules {
            route,
            demands,
            posture,
            restricted,
            operator_commitment,
            keyring,
            ceiling,
            principal_ceiling,
            costs,
            sensitivities,
            policy,
            risk,
            judge,
            tools,
            approvals,
            gated_methods,
            authority,
            policy_digest: _,
        } = self;
        let mut described = json!({
            "route": route,
            "demands": demands_of(demands),
            "posture": posture.as_str(),
            "restricted": restricted.iter().map(Pattern::as_str).collect::<Vec<_>>(),
            "keyring": keyring.describe(),
            "ceiling": ceiling_of(ceiling),
            "principal_ceiling": principal_ceiling.as_ref().map(principal_ceiling_of),
            "costs": costs_of(costs),
            "sensitivities": sensitivities_of(sensitivities),
            "policy": policy.iter().map(super::PolicyRule::describe).collect::<Vec<_>>(),
            "risk": risk_of(risk),
            "judge": judge.as_ref().map(judge_of),
            "tools": tools_of(*tools),
            "gated_methods": gated_methods,
        });
        if let Some(commitment) = operator_commitment {
            described["operator_commitment"] = commitment.describe();
        }
        if let Some(approvals) = approvals.describe() {
            described["approvals"] = approvals;
        }
        if let Some(authority) = authority.describe() {
            described["authority"] = authority;
        }
        described
    }

    /// Computes the digest of the rules and stores it in `policy_digest`.
    #[must_use]
    pub fn digested(self) -> Self {
        let policy_digest = Digest::of(&jose::jcs::canonical(&self.describe())).to_string();
        Rules { policy_digest, ..self }
    }
}

fn demands_of(demands: &Demands) -> Value {
    let Demands { signed, amendments_signed, freshness, audience } = demands;
    json!({
        "signed": signed,
        "amendments_signed": amendments_signed,
        "freshness": *freshness == Freshness::Required,
        "audience": audience,
    })
}

fn tools_of(tools: ToolRules) -> Value {
    let ToolRules { pins, check_arguments } = tools;
    json!({ "pins": pins.as_str(), "check_arguments": check_arguments })
}

fn ceiling_of(ceiling: &Ceiling) -> Value {
    let Ceiling { max_calls, latest, lasts, limits, scope, agents } = ceiling;
    let mut described = json!({
        "max_calls": max_calls.map(|calls| calls.to_string()),
        "latest": latest.map(|time| time.to_string()),
        "lasts": lasts.map(|length| length.as_secs().to_string()),
        "limits": limits,
    });
    if *scope != ScopeCeiling::default() {
        described["scope"] = json!(scope);
    }
    if !agents.is_empty() {
        described["agents"] = json!(agents);
    }
    described
}

fn principal_ceiling_of(ceiling: &PrincipalCeiling) -> Value {
    let PrincipalCeiling { max_calls, limits, window } = ceiling;
    json!({
        "max_calls": max_calls.map(|calls| calls.to_string()),
        "limits": limits,
        "window": window.map(|seconds| seconds.to_string()),
    })
}

fn costs_of(costs: &CostRules) -> Value {
    let CostRules { default, tools, cap, strict } = costs;
    let tools: Vec<_> = tools.iter().map(|(tool, cost)| json!([tool.as_str(), cost])).collect();
    json!({ "default": default, "tools": tools, "cap": cap, "strict": strict })
}

fn sensitivities_of(sensitivities: &SensitivityRules) -> Value {
    let SensitivityRules { tools } = sensitivities;
    tools.iter().map(|(tool, class)| json!([tool.as_str(), class])).collect()
}

fn risk_of(weights: &Weights) -> Value {
    let Weights { sensitivity, burn_rate, looping, novelty, proximity } = weights;
    json!({
        "sensitivity": sensitivity,
        "burn_rate": burn_rate,
        "looping": looping,
        "novelty": novelty,
        "proximity": proximity,
    })
}

fn judge_of(judge: &JudgeRules) -> Value {
    let JudgeRules { model, meter, threshold, sample, commitments, cap, reserve, confidence, cache_for } =
        judge;
    json!({
        "model": model,
        "meter": meter,
        "threshold": threshold,
        "sample": sample,
        "commitments": commitments,
        "cap": cap,
        "reserve": reserve,
        "confidence": confidence,
        "cache_for": cache_for.as_secs().to_string(),
    })
}
