//! The digest of the rules is over everything that decides.

use admission::effective::ScopeCeiling;
use admission::risk::Degree;
use admission::rules::{JudgeRules, PolicyRule, Posture, PrincipalCeiling, Rules, Then};
use admission::session::Meters;
use admission::signature::{AgentKey, AgentSubject, Freshness, Holder, Keyring};
use decimal::Decimal;
use scitt::Signer;
use vap::glob::Pattern;
use vap::message::Sensitivity;

use crate::world::{GATEWAY, key};

type Change = fn(&mut Rules);

fn pattern() -> Pattern {
    Pattern::new("pay*").unwrap()
}

fn one(meter: &str) -> Meters {
    [(meter.to_owned(), Decimal::from(1u64))].into_iter().collect()
}

fn ring(holder: Holder) -> Keyring {
    let key = AgentKey::new(holder, &key(1).public_key().to_jwk(), None, None).unwrap();
    Keyring::new(vec![key]).unwrap()
}

fn judge() -> JudgeRules {
    JudgeRules {
        model: "one".into(),
        meter: "answers".into(),
        threshold: Degree::ONE,
        sample: 1,
        commitments: false,
        cap: Decimal::ZERO,
        reserve: Decimal::ZERO,
        confidence: Degree::ONE,
        cache_for: jiff::SignedDuration::from_secs(1),
    }
}

/// Every member that decides, changed by itself.
const CHANGES: [Change; 36] = [
    |rules| rules.route = "/other".into(),
    |rules| rules.demands.signed = true,
    |rules| rules.demands.amendments_signed = false,
    |rules| rules.demands.freshness = Freshness::Required,
    |rules| rules.demands.audience = "https://other.example".into(),
    |rules| rules.posture = Posture::Advisory,
    |rules| rules.restricted.push(pattern()),
    |rules| rules.keyring = ring(Holder::Agent("a".into())),
    |rules| rules.keyring = ring(Holder::Approver),
    |rules| {
        let known =
            AgentSubject { agent_id: "a".into(), issuer: "https://as.example".into(), subject: "s".into() };
        rules.keyring = Keyring::default().with_subjects(vec![known]);
    },
    |rules| rules.ceiling.max_calls = Some(1),
    |rules| rules.ceiling.latest = Some(jiff::Timestamp::UNIX_EPOCH),
    |rules| rules.ceiling.lasts = Some(jiff::SignedDuration::from_secs(1)),
    |rules| rules.ceiling.limits = one("usd"),
    |rules| rules.ceiling.scope.tools_allow.push(pattern()),
    |rules| rules.ceiling.scope.tools_deny.push(pattern()),
    |rules| rules.ceiling.agents.push(("a".into(), ScopeCeiling::default())),
    |rules| rules.principal_ceiling = Some(ceiling()),
    |rules| rules.principal_ceiling = Some(PrincipalCeiling { window: Some(60), ..ceiling() }),
    |rules| rules.costs.default = one("usd"),
    |rules| rules.costs.tools.push((pattern(), one("usd"))),
    |rules| rules.costs.cap = one("usd"),
    |rules| rules.costs.strict = true,
    |rules| rules.sensitivities.tools.push((pattern(), Sensitivity::Deletes)),
    |rules| rules.policy.push(PolicyRule::new("a", None, None, Then::Deny).unwrap()),
    |rules| rules.policy.push(PolicyRule::new("a", None, Some("input.tool == \"t\""), Then::Deny).unwrap()),
    |rules| rules.policy.push(PolicyRule::new("a", Some(pattern()), None, Then::Deny).unwrap()),
    |rules| rules.risk.sensitivity = Degree::ZERO,
    |rules| rules.risk.burn_rate = Degree::ZERO,
    |rules| rules.risk.looping = Degree::ZERO,
    |rules| rules.risk.novelty = Degree::ZERO,
    |rules| rules.risk.proximity = Degree::ZERO,
    |rules| rules.judge = Some(judge()),
    |rules| rules.judge = Some(JudgeRules { model: "another".into(), ..judge() }),
    |rules| rules.judge = Some(JudgeRules { cap: Decimal::from(1u64), ..judge() }),
    |rules| rules.gated_methods.push("prompts/get".into()),
];

fn ceiling() -> PrincipalCeiling {
    PrincipalCeiling { max_calls: Some(1), limits: Meters::default(), window: None }
}

#[test]
fn whatever_decides_changes_the_digest_of_the_rules() {
    let rules = || Rules::new("/mcp", GATEWAY, "");
    let mut seen = vec![rules().digested().policy_digest];
    for change in CHANGES {
        let mut changed = rules();
        change(&mut changed);
        seen.push(changed.digested().policy_digest);
    }
    let each: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(each.len(), seen.len(), "{seen:#?}");
    assert!(seen.iter().all(|digest| digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64)));
}

#[test]
fn the_digest_of_equal_rules_is_the_same_whatever_it_was_before() {
    assert_eq!(
        Rules::new("/mcp", GATEWAY, "before").digested().policy_digest,
        Rules::new("/mcp", GATEWAY, "").digested().policy_digest
    );
}
