//! VerifyChain: each reading that makes a chain invalid, with the hop.

use roa::chain::Chain;
use roa::denial::RevocationPosition;
use roa::signed::Signed;
use roa::verify::{is_signed_throughout, verify_chain};
use scitt::Signer;
use serde_json::json;

use crate::world::*;

#[test]
fn a_chain_of_four_hops_is_verified_and_held_by_the_last_agent() {
    let chain = root_chain(|root| root["authorized_scope"]["cross_org_permitted"] = true.into());
    let chain = (0..4).fold(chain, |chain, _| delegate(&chain, |_| ()));
    let verified = verify(&chain).unwrap();
    assert_eq!(verified.holder().as_str(), AGENTS[4]);
    assert_eq!((verified.scope().depth, verified.scopes().len()), (0, 5));
    assert_eq!(Chain::parse(&chain.canonical()).unwrap(), chain);
    assert_eq!(verified.digest(), chain.digest());
}

#[test]
fn r_1_an_agent_cannot_sign_its_own_envelope() {
    for signer in [AGENTS[0], "gateway-1", "other:authorizer:1"] {
        let chain = Chain::new(signed(root_members(), &[signer]), Vec::new());
        assert_eq!(denied(&chain), ("invalid_signature", "role", Some(0)), "{signer}");
    }
}

#[test]
fn r_1_all_signatures_verify_and_r_44_an_agents_signature_beside_an_authorizers_is_ignored() {
    let both = Chain::new(signed(root_members(), &["acme:authorizer:1", AGENTS[0]]), Vec::new());
    assert_eq!(verify(&both).unwrap().authorizers(), 1);
    let unknown = Chain::new(signed(root_members(), &["acme:authorizer:1", "stranger"]), Vec::new());
    assert_eq!(denied(&unknown), ("invalid_signature", "unknown_signer", Some(0)));
    // A signature of the second authorizer's key under the first one's name.
    let text = String::from_utf8(
        signed::<roa::envelope::Envelope>(root_members(), &["acme:authorizer:2"]).canonical().to_vec(),
    );
    let renamed = text.unwrap().replace("acme:authorizer:2", "acme:authorizer:1");
    let chain = Chain::new(Signed::parse(renamed.as_bytes()).unwrap(), Vec::new());
    assert_eq!(denied(&chain), ("invalid_signature", "signature", Some(0)));
}

#[test]
fn r_1_an_authorizer_that_is_limited_to_policies_signs_for_no_other() {
    let limited = registry_with(|registry| {
        for key in registry["keys"].as_array_mut().unwrap() {
            if key["role"] == "authorizer" {
                key["policies"] = json!(["invoices"]);
            }
        }
    });
    let denial = verify_chain(&chain_of(0), &limited, BOUNDS, now()).unwrap_err();
    assert_eq!(summary(&denial), ("invalid_signature", "role", Some(0)));
}

#[test]
fn r_1_a_key_with_an_entry_for_each_of_two_organisations_signs_for_both() {
    for position in [0, 9] {
        let shared = registry_with(|registry| {
            let mut entry = registry["keys"][5].clone();
            entry["organization"] = "other".into();
            registry["keys"].as_array_mut().unwrap().insert(position, entry);
        });
        let verified = verify_chain(&chain_of(1), &shared, BOUNDS, now()).unwrap();
        assert_eq!(verified.authorizers(), 1, "{position}");
    }
}

#[test]
fn r_2_an_agent_cannot_graft_itself_onto_a_chain_that_it_does_not_hold() {
    // The third agent signs a delegation from itself, though the second holds the chain.
    let mut members = hop_members(&chain_of(1));
    members["delegating_agent"]["agent_id"] = AGENTS[3].into();
    members["delegated_agent"]["agent_id"] = AGENTS[3].into();
    let grafted =
        Chain::new(root_with(|_| ()), vec![chain_of(1).hops()[0].clone(), signed(members, &[AGENTS[3]])]);
    assert_eq!(denied(&grafted), ("chain_integrity_violation", "holder", Some(2)));
    // It names the holder as delegating, but has only its own key.
    let forged = Chain::new(root_with(|_| ()), vec![signed(hop_members(&chain_of(0)), &[AGENTS[3]])]);
    assert_eq!(denied(&forged), ("invalid_signature", "role", Some(1)));
    let session = delegate(&chain_of(0), |hop| hop["delegating_agent"]["session_id"] = "sess:2".into());
    assert_eq!(denied(&session), ("chain_integrity_violation", "holder", Some(1)));
}

#[test]
fn r_2_and_r_22_a_hop_refers_to_the_object_before_it() {
    for (member, other) in
        [("ref_type", "ara"), ("ref_id", "env:0000000000000001"), ("ref_digest", &policy_digest("other"))]
    {
        let chain = delegate(&chain_of(0), |hop| hop["upstream_ref"][member] = other.into());
        assert_eq!(denied(&chain), ("chain_integrity_violation", "upstream_ref", Some(1)), "{member}");
    }
    let skipped = Chain::new(root_with(|_| ()), vec![chain_of(2).hops()[1].clone()]);
    assert_eq!(denied(&skipped), ("chain_integrity_violation", "upstream_ref", Some(1)));
    // Signatures are part of the digest: the same envelope signed by another authorizer is another parent.
    let twin = signed(root_members(), &["acme:authorizer:2"]);
    let moved = Chain::new(twin, chain_of(1).hops().to_vec());
    assert_eq!(denied(&moved), ("chain_integrity_violation", "upstream_ref", Some(1)));
}

#[test]
fn r_10_and_r_42_depth_only_falls() {
    let root =
        |depth: u32| root_chain(move |root| root["authorized_scope"]["max_delegation_depth"] = depth.into());
    let depth = ("chain_integrity_violation", "depth");
    assert_eq!(denied(&delegate(&root(0), |_| ())), (depth.0, depth.1, Some(1)));
    let equal = delegate(&root(1), |hop| hop["delegated_scope"]["max_delegation_depth"] = 1.into());
    assert_eq!(denied(&equal), (depth.0, depth.1, Some(1)));
    let ended = delegate(&root(4), |hop| hop["delegated_scope"]["max_delegation_depth"] = 0.into());
    assert_eq!(verify(&ended).unwrap().scope().depth, 0);
    assert_eq!(denied(&delegate(&ended, |_| ())), (depth.0, depth.1, Some(2)));
    assert_eq!(verify(&delegate(&root(4), |_| ())).unwrap().scope().depth, 3);
}

#[test]
fn r_11_another_organisation_needs_the_permission_of_the_root() {
    let chain = |permitted: bool| {
        let chain = root_chain(|root| root["authorized_scope"]["cross_org_permitted"] = permitted.into());
        delegate(&chain, |hop| hop["delegated_agent"]["agent_id"] = AGENTS[4].into())
    };
    assert_eq!(denied(&chain(false)), ("scope_expansion_violation", "cross_org", Some(1)));
    assert!(verify(&chain(true)).is_ok());
}

#[test]
fn r_19_times_bound_the_chain() {
    let at = |text: &str| verify_chain(&chain_of(1), &registry(), BOUNDS, time(text)).map_err(|d| d.code);
    assert!(at("2026-04-08T14:09:59.999Z").is_ok());
    assert_eq!(at("2026-04-08T14:10:00Z").unwrap_err(), "expired");
    assert!(at("2026-04-08T14:00:00Z").is_ok(), "within the clock skew");
    assert_eq!(at("2026-04-08T13:58:00Z").unwrap_err(), "not_yet_valid");
    let early = delegate(&chain_of(0), |hop| hop["issued_at"] = "2026-04-08T13:59:59Z".into());
    assert_eq!(denied(&early), ("chain_integrity_violation", "window", Some(1)));
    let long = root_chain(|root| root["expires_at"] = "2026-04-10T14:00:00Z".into());
    assert_eq!(denied(&long), ("chain_integrity_violation", "lifetime", Some(0)));
}

#[test]
fn r_30_and_r_41_what_is_revoked_denies_with_the_position_of_the_revocation() {
    let thumbprint = key(AGENTS[0]).public_key().jwk_thumbprint();
    for (subject, hop) in [
        (json!({ "envelope": "env:4a7c9f2b1e8d3a6f" }), 0),
        (json!({ "attestation": "ara:0000000000000000" }), 1),
        (json!({ "key": thumbprint }), 1),
    ] {
        let registry = registry_with(|registry| {
            let revocation =
                json!({ "sequence": 2, "revoked_at": "2026-04-08T14:04:00Z", "subject": subject });
            registry["revocations"] = json!([revocation]);
        });
        let denial = verify_chain(&chain_of(2), &registry, BOUNDS, now()).unwrap_err();
        assert_eq!(summary(&denial), ("envelope_revoked", "revoked", Some(hop)));
        assert_eq!(denial.revocation, Some(RevocationPosition { epoch: 1, sequence: 2 }));
    }
}

#[test]
fn r_47_a_chain_is_signed_throughout_by_those_whose_scopes_it_passes_on() {
    let wide = delegate(&chain_of(1), |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:mail.*"]));
    assert!(verify(&wide).is_err() && is_signed_throughout(&wide, &registry()));
    let grafted =
        delegate(&chain_of(1), |hop| hop["upstream_ref"]["ref_digest"] = policy_digest("other").into());
    let forged = Chain::new(root_with(|_| ()), vec![signed(hop_members(&chain_of(0)), &[AGENTS[3]])]);
    let by_agent = Chain::new(signed(root_members(), &[AGENTS[0]]), Vec::new());
    for chain in [&grafted, &forged, &by_agent] {
        assert!(!is_signed_throughout(chain, &registry()), "{:?}", denied(chain));
    }
    let thumbprint = key(AGENTS[0]).public_key().jwk_thumbprint();
    let revoked = registry_with(|registry| {
        let subject = json!({ "key": thumbprint });
        registry["revocations"] =
            json!([{ "sequence": 2, "revoked_at": "2026-04-08T14:04:00Z", "subject": subject }]);
    });
    assert!(!is_signed_throughout(&by_agent, &revoked));
}

#[test]
fn r_41_a_key_that_ended_after_it_signed_is_still_good() {
    let ended = |end: &'static str| {
        let registry = registry_with(|registry| {
            for key in registry["keys"].as_array_mut().unwrap() {
                key["not_after"] = end.into();
            }
        });
        verify_chain(&chain_of(1), &registry, BOUNDS, now()).map_err(|denial| denial.code)
    };
    assert!(ended("2026-04-08T14:02:00Z").is_ok());
    assert_eq!(ended("2026-04-08T14:00:30Z").unwrap_err(), "unknown_signer");
}

#[test]
fn r_26_and_r_45_a_chain_is_an_array_with_the_root_first() {
    let root = root_with(|_| ());
    let code = |text: &[u8]| Chain::parse(text).map_err(|denial| (denial.code, denial.hop)).unwrap_err();
    assert_eq!(code(root.canonical()), ("malformed", None));
    assert_eq!(code(b"[]"), ("malformed", None));
    let hop_first = [b"[", chain_of(1).hops()[0].canonical(), b"]"].concat();
    assert_eq!(code(&hop_first), ("malformed", Some(0)));
    let with_mark = [b"\xef\xbb\xbf".as_slice(), &chain_of(1).canonical()].concat();
    assert_eq!(code(&with_mark), ("malformed", None));
}

#[test]
fn r_9_objects_are_closed_at_every_level_and_typed() {
    let text = String::from_utf8(root_with(|_| ()).canonical().to_vec()).unwrap();
    assert!(Signed::<roa::envelope::Envelope>::parse(text.as_bytes()).is_ok());
    for (from, to) in [
        (r#""cross_org_permitted":false"#, r#""cross_org_permitted":false,"budget_celing":1"#),
        (
            r#""cross_org_permitted":false"#,
            r#""budget_ceiling":"lots","budget_unit":"USD","cross_org_permitted":false"#,
        ),
        (
            r#""cross_org_permitted":false"#,
            r#""budget_ceiling":-1,"budget_unit":"USD","cross_org_permitted":false"#,
        ),
        (r#""cross_org_permitted":false"#, r#""budget_ceiling":1,"cross_org_permitted":false"#),
        (
            r#""cross_org_permitted":false"#,
            r#""budget_ceiling":0.10000000000000000001,"budget_unit":"USD","cross_org_permitted":false"#,
        ),
        (r#""cross_org_permitted":false"#, r#""cross_org_permitted":false,"price_class":1.0"#),
        (r#""cross_org_permitted":false"#, r#""cross_org_permitted":false,"slo_class":null"#),
        (r#""cross_org_permitted":false"#, r#""cross_org_permitted":false,"cross_org_permitted":true"#),
        (r#""max_delegation_depth":4"#, r#""max_delegation_depth":-1"#),
        (r#""alg":"EdDSA""#, r#""alg":"Ed25519""#),
        (r#""schema_version":"1.0""#, r#""schema_version":"1.1""#),
        (r#""sig":""#, r#""sig":"base64url:"#),
        (r#""issued_at":"2026-04-08T14:00:00Z""#, r#""issued_at":"2026-04-08T14:00:00+00:00""#),
        (r#""expires_at":"2026-04-08T14:10:00Z""#, r#""expires_at":"2026-04-08T14:00:00Z""#),
    ] {
        assert!(text.contains(from), "{from}");
        let edited = text.replacen(from, to, 1);
        assert!(Signed::<roa::envelope::Envelope>::parse(edited.as_bytes()).is_err(), "{to}");
    }
}

#[test]
fn an_error_names_the_member() {
    let text = String::from_utf8(root_with(|_| ()).canonical().to_vec()).unwrap();
    let edited = text.replacen(r#""agent_id":"aha:acme/ops/lead""#, r#""agent_id":"lead""#, 1);
    let error = Signed::<roa::envelope::Envelope>::parse(edited.as_bytes()).unwrap_err();
    assert_eq!(error.pointer, "/session/agent_id");
    assert!(error.to_string().contains("aha:<organisation>/<unit>/<agent>"), "{error}");
}
