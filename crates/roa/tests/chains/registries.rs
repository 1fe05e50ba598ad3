//! Registries: signed, closed, and replaced only by later versions.

use roa::registry::{RegistryDocument, RegistryError, RegistryVersion, RevocationDelta, RevokedSubject};
use roa::signed::Signed;
use roa::text::EnvelopeId;
use scitt::{PublicKey, Signer};
use serde_json::{Value, json};

use crate::world::*;

fn operators() -> Vec<PublicKey> {
    vec![key("operator").public_key().clone()]
}

fn version(epoch: u64, sequence: u64) -> Signed<RegistryDocument> {
    let mut members = registry_members();
    (members["epoch"], members["sequence"]) = (epoch.into(), sequence.into());
    signed(members, &["operator"])
}

fn delta(epoch: u64, previous: u64, sequence: u64) -> Value {
    json!({
        "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": epoch,
        "previous_sequence": previous, "sequence": sequence, "issued_at": "2026-04-08T14:04:00Z",
        "revocations": [{
            "sequence": sequence, "revoked_at": "2026-04-08T14:04:00Z",
            "subject": { "envelope": "env:4a7c9f2b1e8d3a6f" },
        }],
    })
}

#[test]
fn r_46_an_older_version_is_refused_as_a_whole() {
    let registry = registry();
    for (epoch, sequence) in [(1, 4), (1, 3), (2, 0)] {
        let next = registry.replaced_by(&version(epoch, sequence), &operators()).unwrap();
        assert_eq!(next.version(), RegistryVersion { epoch, sequence });
    }
    for (epoch, sequence) in [(1, 2), (0, 9)] {
        let error = registry.replaced_by(&version(epoch, sequence), &operators()).unwrap_err();
        assert!(matches!(error, RegistryError::Rollback { .. }), "{error}");
    }
    let mut other = registry_members();
    other["ttl_seconds"] = 60.into();
    let error = registry.replaced_by(&signed(other, &["operator"]), &operators()).unwrap_err();
    assert!(matches!(error, RegistryError::Rollback { .. }), "another version with the same number: {error}");
}

#[test]
fn r_30_a_delta_adds_revocations_to_the_version_that_it_is_for() {
    let registry = registry();
    let revoked = registry
        .extended_by(&signed::<RevocationDelta>(delta(1, 3, 4), &["operator"]), &operators())
        .unwrap();
    let envelope = RevokedSubject::Envelope(EnvelopeId::try_from("env:4a7c9f2b1e8d3a6f".to_owned()).unwrap());
    assert_eq!(revoked.revocation(&envelope), Some(RegistryVersion { epoch: 1, sequence: 4 }));
    assert_eq!((registry.revocation(&envelope), revoked.version().sequence), (None, 4));
    for (epoch, previous) in [(1, 2), (1, 4), (2, 3)] {
        let late = signed::<RevocationDelta>(delta(epoch, previous, previous + 1), &["operator"]);
        let error = registry.extended_by(&late, &operators()).unwrap_err();
        assert!(matches!(error, RegistryError::Gap { .. }), "{error}");
    }
}

#[test]
fn r_46_the_whole_version_follows_its_delta() {
    let delta = delta(1, 3, 4);
    let revoked = registry()
        .extended_by(&signed::<RevocationDelta>(delta.clone(), &["operator"]), &operators())
        .unwrap();
    let mut whole = registry_members();
    whole["sequence"] = 4.into();
    let refused = revoked.replaced_by(&signed(whole.clone(), &["operator"]), &operators()).unwrap_err();
    assert!(matches!(refused, RegistryError::Rollback { .. }), "without the revocation: {refused}");
    whole["revocations"] = delta["revocations"].clone();
    whole["servers"] = json!([]);
    let next = revoked.replaced_by(&signed(whole.clone(), &["operator"]), &operators()).unwrap();
    assert_eq!((next.version().sequence, next.document().servers.len()), (4, 0));
    whole["ttl_seconds"] = 60.into();
    let refused = next.replaced_by(&signed(whole, &["operator"]), &operators()).unwrap_err();
    assert!(matches!(refused, RegistryError::Rollback { .. }), "a third document with the number: {refused}");
}

#[test]
fn only_its_operators_change_a_registry() {
    let registry = registry();
    let mut members = registry_members();
    members["sequence"] = 4.into();
    for signers in [vec!["stranger"], vec!["operator", "stranger"]] {
        let next = signed::<RegistryDocument>(members.clone(), &signers);
        assert_eq!(registry.replaced_by(&next, &operators()).unwrap_err(), RegistryError::Signature);
    }
    members["registry_id"] = "registry.other.example".into();
    let other = registry.replaced_by(&signed(members, &["operator"]), &operators()).unwrap_err();
    assert!(matches!(other, RegistryError::OtherRegistry { .. }), "{other}");
}

#[test]
fn contradictory_registries_are_malformed() {
    let refused = |edit: &dyn Fn(&mut Value)| {
        let mut members = registry_members();
        edit(&mut members);
        let signer = key("operator");
        Signed::<RegistryDocument>::sign(&members, &[("operator", &signer as &dyn Signer)]).is_err()
    };
    assert!(!refused(&|_| ()));
    assert!(
        refused(&|registry| registry["keys"][0]["role"] = "authorizer".into()),
        "an agent's key in another role"
    );
    assert!(refused(&|registry| registry["keys"][0]["organization"] = "other".into()));
    assert!(refused(&|registry| registry["keys"][0]["public_key"]["x"] = "AA".into()));
    assert!(refused(&|registry| registry["servers"] = json!([
        { "server_id": "a", "tools": [] }, { "server_id": "a", "tools": ["b"] }
    ])));
    assert!(refused(&|registry| registry["classifications"] = json!(["a", "b", "a"])));
    assert!(refused(&|registry| registry["revocations"] = json!([
        { "sequence": 4, "revoked_at": "2026-04-08T14:04:00Z", "subject": { "envelope": "env:4a7c9f2b1e8d3a6f" } }
    ])));
    assert!(refused(&|registry| registry["note"] = "unknown".into()));
}
