//! The draft's VerifyChain (section 5.3), written down line by line, beside ours: equal on well-formed chains, and
//! different where a reading says so. `vectors/agentroa/pseudocode` has a case for each difference.

use std::collections::BTreeSet;

use proptest::prelude::*;
use roa::capability::Capability;
use roa::chain::Chain;
use roa::denial::DenialReason;
use roa::enforce::{RequestedCall, ToolClasses, enforce};
use roa::registry::Presenter;
use roa::text::{AgentId, Sha256Digest, UtcTime};
use roa::verify::verify_chain;
use scitt::{Algorithm, Signer};
use serde_json::{Value, json};

use crate::world::*;

/// The answer of the draft's algorithm in its own words, `permit` or a reason.
pub fn answer(chain: &[Value], requested: &str, now: UtcTime) -> String {
    draft(chain, requested, now).err().unwrap_or_else(|| "permit".to_owned())
}

/// The draft's algorithm. Its `VerifySignature` takes any registered key of the signer's name.
fn draft(chain: &[Value], requested: &str, now: UtcTime) -> Result<(), String> {
    let root = &chain[0];
    if !verify_signature(root) {
        return Err("invalid_root_signature".into());
    }
    if time(root["expires_at"].as_str().unwrap()) < now {
        return Err("envelope_expired".into());
    }
    let mut current_scope = expanded(&root["authorized_scope"]["capabilities"]);
    let mut current_budget = root["authorized_scope"]["budget_ceiling"].as_f64();
    let mut current_slo = root["authorized_scope"]["slo_class"].as_u64();
    for i in 1..chain.len() {
        let (ara, parent) = (&chain[i], &chain[i - 1]);
        if ara["upstream_ref"]["ref_digest"] != Sha256Digest::of(&jose::jcs::canonical(parent)).to_string() {
            return Err("chain_integrity_violation".into());
        }
        if !verify_signature(ara) {
            return Err(format!("invalid_ara_signature_at_hop_{i}"));
        }
        let scope = &ara["delegated_scope"];
        if !expanded(&scope["capabilities"]).is_subset(&current_scope) {
            return Err(format!("scope_expansion_violation_at_hop_{i}"));
        }
        if let (Some(budget), Some(current)) = (scope["budget_ceiling"].as_f64(), current_budget)
            && budget > current
        {
            return Err(format!("budget_expansion_denied_at_hop_{i}"));
        }
        if let (Some(slo), Some(current)) = (scope["slo_class"].as_u64(), current_slo)
            && slo < current
        {
            return Err(format!("slo_relaxation_denied_at_hop_{i}"));
        }
        current_scope = expanded(&scope["capabilities"]);
        current_budget = scope["budget_ceiling"].as_f64();
        current_slo = scope["slo_class"].as_u64();
    }
    if !current_scope.contains(requested) {
        return Err("capability_not_in_scope".into());
    }
    for (i, object) in chain.iter().enumerate().skip(1) {
        if object["policy"]["policy_digest"] != root["policy"]["policy_digest"] {
            return Err(format!("policy_digest_mismatch_at_hop_{i}"));
        }
    }
    Ok(())
}

fn verify_signature(object: &Value) -> bool {
    let mut content = object.clone();
    let signatures = content.as_object_mut().unwrap().remove("signatures").unwrap();
    signatures.as_array().unwrap().iter().all(|signature| {
        let bytes =
            data_encoding::BASE64URL_NOPAD.decode(signature["sig"].as_str().unwrap().as_bytes()).unwrap();
        let signer = key(signature["signer"].as_str().unwrap());
        signer.public_key().verify(Algorithm::EdDsa, &jose::jcs::canonical(&content), &bytes).is_ok()
    })
}

/// Wildcards are expanded to the current manifest of the server.
fn expanded(capabilities: &Value) -> BTreeSet<String> {
    let names = capabilities.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let tools = |name: &str| match name {
        "mcp:github.*" => vec!["mcp:github.read".to_owned(), "mcp:github.write".to_owned()],
        other => vec![other.to_owned()],
    };
    names.flat_map(tools).collect()
}

/// Our answer in the words of the draft's algorithm.
fn ours(chain: &Chain, requested: &str, now: UtcTime) -> Result<(), String> {
    let registry = registry();
    let (server, tool) = requested.strip_prefix("mcp:").unwrap().split_once('.').unwrap();
    let capability = Capability::new(server, tool).unwrap();
    let answer = verify_chain(chain, &registry, BOUNDS, now).and_then(|verified| {
        let presenter = Presenter::Proof(AgentId::try_from(verified.holder().to_string()).unwrap());
        let is_pinned = registry.is_in_manifest(&capability);
        let call = RequestedCall {
            capability: &capability,
            is_pinned,
            presenter: Some(&presenter),
            tool: &ToolClasses::default(),
        };
        enforce(&verified, call, &registry)
    });
    answer.map_err(|denial| match (denial.reason, denial.hop) {
        (DenialReason::InvalidSignature, Some(0)) => "invalid_root_signature".to_owned(),
        (DenialReason::InvalidSignature, Some(hop)) => format!("invalid_ara_signature_at_hop_{hop}"),
        (DenialReason::ChainIntegrityViolation | DenialReason::EnvelopeExpired, _) | (_, None) => {
            denial.reason.as_str().to_owned()
        }
        (reason, Some(hop)) => format!("{}_at_hop_{hop}", reason.as_str()),
    })
}

fn values(chain: &Chain) -> Vec<Value> {
    serde_json::from_slice(&chain.canonical()).unwrap()
}

/// A fault at one hop of a chain.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Digest(usize),
    Signature(usize),
    Policy(usize),
    Expired,
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::None),
        1 => (1usize..4).prop_map(Fault::Digest),
        1 => (1usize..4).prop_map(Fault::Signature),
        1 => (1usize..4).prop_map(Fault::Policy),
        1 => Just(Fault::Expired),
    ]
}

type DeclaredDimensions = (Vec<&'static str>, u32, u32);

/// The dimensions of the draft, each declared by every hop, without wildcards.
fn declared() -> impl Strategy<Value = DeclaredDimensions> {
    let names = vec!["mcp:files.read", "mcp:files.write", "mcp:github.read", "mcp:github.write"];
    (proptest::sample::subsequence(names, 1..=4), 0u32..6, 0u32..6)
}

fn declare(scope: &mut Value, (capabilities, budget, slo): &DeclaredDimensions) {
    scope["capabilities"] = json!(capabilities);
    scope["budget_ceiling"] = (*budget).into();
    scope["budget_unit"] = "USD".into();
    scope["slo_class"] = (*slo).into();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn on_well_formed_chains_both_answer_alike(
        root in declared(),
        hops in proptest::collection::vec(declared(), 0..4),
        fault in fault(),
        requested in proptest::sample::select(vec!["mcp:files.read", "mcp:github.write"]),
    ) {
        let mut chain = root_chain(|members| {
            declare(&mut members["authorized_scope"], &root);
            members["authorized_scope"]["cross_org_permitted"] = true.into();
        });
        for (before, hop) in hops.iter().enumerate() {
            let is_at = |at: usize| at == before + 1;
            let mut members = hop_members(&chain);
            declare(&mut members["delegated_scope"], hop);
            match fault {
                Fault::Digest(at) if is_at(at) => {
                    members["upstream_ref"]["ref_digest"] = policy_digest("another object").into();
                }
                Fault::Policy(at) if is_at(at) => {
                    members["policy"]["policy_digest"] = policy_digest("another policy").into();
                }
                _ => {}
            }
            let signer = AGENTS[before];
            let key_name = if matches!(fault, Fault::Signature(at) if is_at(at)) { "stranger" } else { signer };
            let hop = signed_as(members, signer, key_name);
            chain = Chain::new(chain.root().clone(), chain.hops().iter().cloned().chain([hop]).collect());
        }
        let now = if matches!(fault, Fault::Expired) { time("2026-04-08T14:10:01Z") } else { now() };
        prop_assert_eq!(ours(&chain, requested, now), draft(&values(&chain), requested, now));
    }
}

/// Where the draft permits and a reading denies.
#[test]
fn the_draft_permits_what_the_readings_deny() {
    let read = "mcp:github.read";
    let differ = |reading: &str, chain: &Chain, requested: &str, now: UtcTime, expected: &str| {
        assert_eq!(draft(&values(chain), requested, now), Ok(()), "{reading}: the draft");
        assert_eq!(ours(chain, requested, now), Err(expected.to_owned()), "{reading}: ours");
    };
    let self_signed = Chain::new(signed(root_members(), &[AGENTS[0]]), Vec::new());
    differ("R-1", &self_signed, read, now(), "invalid_root_signature");
    let mut members = hop_members(&chain_of(0));
    members["delegating_agent"]["agent_id"] = AGENTS[3].into();
    let grafted = Chain::new(root_with(|_| ()), vec![signed(members, &[AGENTS[3]])]);
    differ("R-2", &grafted, read, now(), "chain_integrity_violation");
    let budgeted = root_chain(|root| {
        root["authorized_scope"]["budget_ceiling"] = 5.into();
        root["authorized_scope"]["budget_unit"] = "USD".into();
        root["authorized_scope"]["price_class"] = 1.into();
    });
    let widen = |chain: &Chain, amount: u32, unit: &'static str| {
        delegate(chain, |hop| {
            hop["delegated_scope"]["budget_ceiling"] = amount.into();
            hop["delegated_scope"]["budget_unit"] = unit.into();
        })
    };
    let omitted = widen(&delegate(&budgeted, |_| ()), 50, "USD");
    differ("R-4", &omitted, read, now(), "budget_expansion_denied_at_hop_2");
    let dearer = delegate(&budgeted, |hop| hop["delegated_scope"]["price_class"] = 2.into());
    differ("R-5", &dearer, read, now(), "budget_expansion_denied_at_hop_1");
    differ("R-6", &widen(&budgeted, 4, "EUR"), read, now(), "budget_expansion_denied_at_hop_1");
    let shallow = root_chain(|root| root["authorized_scope"]["max_delegation_depth"] = 0.into());
    differ("R-10", &delegate(&shallow, |_| ()), read, now(), "chain_integrity_violation");
    let foreign = delegate(&chain_of(0), |hop| hop["delegated_agent"]["agent_id"] = AGENTS[4].into());
    differ("R-11", &foreign, read, now(), "scope_expansion_violation_at_hop_1");
    let unknown =
        root_chain(|root| root["authorized_scope"]["data_classification_ceiling"] = "cosmic".into());
    differ("R-12", &unknown, read, now(), "scope_expansion_violation_at_hop_0");
    let named = root_chain(|root| {
        root["authorized_scope"]["capabilities"] = json!(["mcp:github.read", "mcp:github.write"]);
    });
    let star = delegate(&named, |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:github.*"]));
    differ("R-14", &star, read, now(), "scope_expansion_violation_at_hop_1");
    differ("R-19", &chain_of(0), read, time("2026-04-08T14:10:00Z"), "envelope_expired");
    let early = delegate(&chain_of(0), |hop| hop["issued_at"] = "2026-04-08T13:00:00Z".into());
    differ("R-19", &early, read, now(), "chain_integrity_violation");
    let outdated = root_chain(|root| root["policy"]["policy_digest"] = policy_digest("v0").into());
    differ("R-20", &outdated, read, now(), "policy_digest_mismatch_at_hop_0");
    let pending = root_chain(|root| root["authorization"]["approval_state"] = "pending".into());
    differ("R-16", &pending, read, now(), "approval_required_at_hop_0");
}

/// Signs an attestation with another key than that of its signer's name.
fn signed_as(
    members: Value,
    signer: &str,
    key_name: &str,
) -> roa::signed::Signed<roa::attestation::Attestation> {
    let key = key(key_name);
    roa::signed::Signed::sign(&members, &[(signer, &key as &dyn Signer)]).unwrap()
}
