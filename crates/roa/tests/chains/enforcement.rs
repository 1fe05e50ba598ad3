//! Enforce: capability, policy, approval, presenter and classes of the tool, in this order.

use decimal::Decimal;
use roa::capability::Capability;
use roa::chain::Chain;
use roa::enforce::{RequestedCall, ToolClasses, enforce};
use roa::limits::MAX_LEDGERS;
use roa::registry::{OAuthClient, Presenter, Registry};
use roa::text::{AgentId, Sha256Digest, Text};
use roa::usage::{EnvelopeUse, ExpectedCost};
use roa::verify::verify_chain;
use serde_json::{Value, json};

use crate::world::*;

fn text(text: &str) -> Text {
    Text::try_from(text.to_owned()).unwrap()
}

fn lead() -> Presenter {
    Presenter::OAuthClient(OAuthClient { issuer: text("https://login.example"), client_id: text("lead") })
}

struct Call {
    tool: (&'static str, &'static str),
    is_pinned: bool,
    presenter: Option<Presenter>,
    classes: ToolClasses,
}

impl Default for Call {
    fn default() -> Call {
        Call {
            tool: ("github", "read"),
            is_pinned: true,
            presenter: Some(lead()),
            classes: ToolClasses::default(),
        }
    }
}

fn decide(chain: &Chain, call: Call) -> Result<(), (&'static str, &'static str, Option<usize>)> {
    let verified = verify(chain).unwrap();
    let capability = Capability::new(call.tool.0, call.tool.1).unwrap();
    let request = RequestedCall {
        capability: &capability,
        is_pinned: call.is_pinned,
        presenter: call.presenter.as_ref(),
        tool: &call.classes,
    };
    enforce(&verified, request, &registry()).map_err(|denial| summary(&denial))
}

fn authorization(strength: &str, state: &str, artifact: bool, device: Option<&str>) -> Chain {
    let mut members = root_members();
    members["authorization"] = json!({ "auth_strength": strength, "approval_state": state });
    if artifact {
        members["authorization"]["approval_artifact_ref"] = "approval:1".into();
    }
    if let Some(device) = device {
        members["session"]["device_attestation_ref"] = device.into();
    }
    Chain::new(signed(members, &["acme:authorizer:1"]), Vec::new())
}

#[test]
fn a_call_in_scope_by_the_holder_is_permitted() {
    assert_eq!(decide(&chain_of(0), Call::default()), Ok(()));
    let agent = AgentId::try_from(AGENTS[2].to_owned()).unwrap();
    let by_proof = Call { presenter: Some(Presenter::Proof(agent)), ..Call::default() };
    assert_eq!(decide(&chain_of(2), by_proof), Ok(()));
}

#[test]
fn a_tool_that_no_hop_names_or_the_pinned_manifest_lacks_is_not_in_scope() {
    let denial = Err(("capability_not_in_scope", "capability", None));
    assert_eq!(decide(&chain_of(0), Call { tool: ("mail", "send"), ..Call::default() }), denial);
    assert_eq!(decide(&chain_of(1), Call { tool: ("files", "write"), ..Call::default() }), denial);
    // the server has added a tool since the envelope was first used.
    assert_eq!(decide(&chain_of(0), Call { is_pinned: false, ..Call::default() }), denial);
}

#[test]
fn r_14_a_hop_that_names_a_tool_of_a_wildcard_grants_it_only_if_it_is_pinned() {
    let named =
        delegate(&chain_of(0), |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:github.read"]));
    let by_delegate = |chain: &Chain, is_pinned| {
        let holder = verify(chain).unwrap().holder().clone();
        decide(chain, Call { presenter: Some(Presenter::Proof(holder)), is_pinned, ..Call::default() })
    };
    assert_eq!(by_delegate(&named, true), Ok(()));
    let denial = Err(("capability_not_in_scope", "capability", None));
    assert_eq!(by_delegate(&named, false), denial);
    let further = delegate(&named, |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:github.read"]));
    assert_eq!(by_delegate(&further, false), denial);
}

#[test]
fn r_3_and_r_40_the_presenter_is_the_holder() {
    let missing = Call { presenter: None, ..Call::default() };
    assert_eq!(decide(&chain_of(0), missing), Err(("auth_strength_insufficient", "presenter_missing", None)));
    // A stolen chain: the lead's client presents what was delegated to another agent.
    assert_eq!(
        decide(&chain_of(1), Call::default()),
        Err(("auth_strength_insufficient", "presenter_mismatch", None))
    );
}

#[test]
fn r_20_the_policy_in_force_and_the_operators_list_of_earlier_ones_are_accepted() {
    let under = |version: &str| {
        let digest = policy_digest(version);
        decide(&root_chain(|root| root["policy"]["policy_digest"] = digest.into()), Call::default())
    };
    assert_eq!(under("v1"), Ok(()));
    assert_eq!(under("v0"), Err(("policy_digest_mismatch", "not_in_force", Some(0))));
    let mixed = delegate(&chain_of(0), |hop| hop["policy"]["policy_digest"] = policy_digest("v1").into());
    assert_eq!(decide(&mixed, Call::default()), Err(("policy_digest_mismatch", "chain", Some(1))));
}

#[test]
fn r_16_and_r_44_approvals() {
    let unapproved = Err(("approval_required", "approval", Some(0)));
    let weak = |code| Err(("auth_strength_insufficient", code, Some(0)));
    for (strength, state, artifact, device, expected) in [
        ("session_only", "not_required", false, None, Ok(())),
        ("session_only", "granted", true, None, Ok(())),
        ("session_only", "granted", false, None, unapproved),
        ("session_only", "pending", true, None, unapproved),
        ("device_bound", "not_required", true, Some("att:1"), unapproved),
        ("device_bound", "granted", true, Some("att:1"), Ok(())),
        ("device_bound", "granted", true, Some("att:2"), weak("device_attestation")),
        ("device_bound_with_attestation", "granted", true, None, weak("device_attestation")),
        ("dual_control", "granted", true, None, weak("dual_control")),
        ("dual_control", "granted", false, None, unapproved),
    ] {
        let chain = authorization(strength, state, artifact, device);
        assert_eq!(decide(&chain, Call::default()), expected, "{strength} {state} {artifact} {device:?}");
    }
}

#[test]
fn r_16_dual_control_needs_two_authorizers() {
    let mut members = root_members();
    members["authorization"] = json!({ "auth_strength": "dual_control", "approval_state": "granted", "approval_artifact_ref": "approval:1" });
    let by =
        |signers: &[&str]| decide(&Chain::new(signed(members.clone(), signers), Vec::new()), Call::default());
    assert_eq!(by(&["acme:authorizer:1", "acme:authorizer:2"]), Ok(()));
    let one = Err(("auth_strength_insufficient", "dual_control", Some(0)));
    assert_eq!(by(&["acme:authorizer:1", "acme:authorizer:1"]), one);
    assert_eq!(by(&["acme:authorizer:1", AGENTS[0]]), one);
}

#[test]
fn r_16_two_keys_of_one_signer_are_one_authorizer() {
    let mut members = root_members();
    members["authorization"] = json!({ "auth_strength": "dual_control", "approval_state": "granted", "approval_artifact_ref": "approval:1" });
    let authorizers = |signers: &[&str], registry: &Registry| {
        let chain = Chain::new(signed(members.clone(), signers), Vec::new());
        verify_chain(&chain, registry, BOUNDS, now()).unwrap().authorizers()
    };
    let rotated = registry_with(|registry| registry["keys"][6]["signer"] = "acme:authorizer:1".into());
    assert_eq!(authorizers(&["acme:authorizer:1", "acme:authorizer:1=acme:authorizer:2"], &rotated), 1);
    let shared = registry_with(|registry| {
        registry["keys"][6]["public_key"] = registry["keys"][5]["public_key"].clone();
    });
    assert_eq!(authorizers(&["acme:authorizer:1", "acme:authorizer:2=acme:authorizer:1"], &shared), 1);
    // The second name has the first one's key as well, though the envelope is signed with two keys.
    let twofold = registry_with(|registry| {
        let mut entry = registry["keys"][6].clone();
        entry["public_key"] = registry["keys"][5]["public_key"].clone();
        registry["keys"].as_array_mut().unwrap().push(entry);
    });
    let (one, two) = ("acme:authorizer:1", "acme:authorizer:2");
    assert_eq!(authorizers(&[one, two], &twofold), 1);
    assert_eq!(authorizers(&[one, two, "acme:authorizer:2=acme:authorizer:1"], &twofold), 1);
    assert_eq!(authorizers(&[one, two], &registry()), 2);
}

#[test]
fn the_operators_classes_of_a_tool_are_within_the_scope() {
    let chain = root_chain(|root| {
        root["authorized_scope"]["price_class"] = 2.into();
        root["authorized_scope"]["slo_class"] = 2.into();
        root["authorized_scope"]["data_classification_ceiling"] = "internal".into();
    });
    let with = |classes| decide(&chain, Call { classes, ..Call::default() });
    let none = ToolClasses::default;
    assert_eq!(
        with(ToolClasses {
            price_class: Some(2),
            slo_class: Some(2),
            classifications: vec!["public".to_owned()]
        }),
        Ok(())
    );
    let price = ToolClasses { price_class: Some(3), ..none() };
    assert_eq!(with(price), Err(("budget_expansion_denied", "price", None)));
    let slo = ToolClasses { slo_class: Some(1), ..none() };
    assert_eq!(with(slo), Err(("slo_relaxation_denied", "slo", None)));
    for labels in [&["secret"][..], &["cosmic"], &[""], &["public", "secret"]] {
        let classifications = labels.iter().map(|&label| label.to_owned()).collect();
        let classes = ToolClasses { classifications, ..none() };
        assert_eq!(with(classes), Err(("scope_expansion_violation", "classification", None)), "{labels:?}");
    }
}

#[test]
fn the_first_failure_in_order_is_the_denial() {
    // Not in scope, of an outdated policy, pending, and presented by a stranger.
    let chain = root_chain(|root| {
        root["policy"]["policy_digest"] = policy_digest("v0").into();
        root["authorization"]["approval_state"] = Value::from("pending");
    });
    let call = |tool| Call { tool, presenter: None, ..Call::default() };
    assert_eq!(decide(&chain, call(("mail", "send"))).unwrap_err().0, "capability_not_in_scope");
    assert_eq!(decide(&chain, call(("github", "read"))).unwrap_err().0, "policy_digest_mismatch");
}

#[test]
fn r_43_the_spent_amounts_of_an_envelope_are_kept_for_a_limited_number_of_budgets() {
    let chain = root_chain(|root| {
        root["authorized_scope"]["budget_ceiling"] = 5.into();
        root["authorized_scope"]["budget_unit"] = "USD".into();
    });
    let below = delegate(&chain, |hop| {
        hop["delegated_scope"]["budget_ceiling"] = 4.into();
        hop["delegated_scope"]["budget_unit"] = "USD".into();
    });
    let (chain, below) = (verify(&chain).unwrap(), verify(&below).unwrap());
    let mut members = serde_json::to_value(EnvelopeUse::begin(&chain, &registry())).unwrap();
    for number in 1..MAX_LEDGERS {
        members["spent"][Sha256Digest::of(&number.to_be_bytes()).to_string()] = "1".into();
    }
    let mut used: EnvelopeUse = serde_json::from_value(members).unwrap();
    let one = |_: &Text| ExpectedCost::known(Decimal::from(1));
    used.reserve(&chain, one).unwrap();
    let denial = used.reserve(&below, one).unwrap_err();
    assert_eq!(summary(&denial), ("budget_expansion_denied", "ledgers", None));
    used.reserve(&chain, one).unwrap();
}

#[test]
fn r_48_a_call_of_unknown_cost_is_denied_once_a_budget_is_spent() {
    let chain = root_chain(|root| {
        root["authorized_scope"]["budget_ceiling"] = 5.into();
        root["authorized_scope"]["budget_unit"] = "USD".into();
    });
    let chain = verify(&chain).unwrap();
    let mut used = EnvelopeUse::begin(&chain, &registry());
    let unknown = |_: &Text| ExpectedCost { amount: Decimal::ZERO, is_known: false };
    let spending = used.reserve(&chain, unknown).unwrap();
    assert_eq!((spending.amount, spending.is_known), (Decimal::ZERO, false));
    used.settle(&spending, Decimal::from(5));
    let denial = used.reserve(&chain, unknown).unwrap_err();
    assert_eq!(summary(&denial), ("budget_expansion_denied", "spent", Some(0)));
    used.reserve(&chain, |_| ExpectedCost::known(Decimal::ZERO)).unwrap();
}

#[test]
fn r_18_another_envelope_with_the_same_identifiers_is_a_replay() {
    let used = EnvelopeUse::begin(&verify(&chain_of(0)).unwrap(), &registry());
    let other = verify(&root_chain(|root| root["expires_at"] = "2026-04-08T14:20:00Z".into())).unwrap();
    let denial = used.check_envelope(&other).unwrap_err();
    assert_eq!(summary(&denial), ("replay_detected", "other_envelope", Some(0)));
    let twice = signed(root_members(), &["acme:authorizer:1", "acme:authorizer:1"]);
    let signed_again = verify(&Chain::new(twice, Vec::new())).unwrap();
    for same in [signed_again, verify(&chain_of(2)).unwrap()] {
        assert_eq!(used.check_envelope(&same), Ok(()));
    }
}
