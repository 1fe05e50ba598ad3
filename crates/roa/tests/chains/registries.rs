//! Registries: signed, closed, and replaced only by later versions.

use roa::limits::MAX_DELTAS;
use roa::registry::{DeltaList, RegistryDocument, RegistryError, RegistryVersion, RevokedSubject};
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

pub fn delta(epoch: u64, previous: u64, sequence: u64) -> Value {
    json!({
        "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": epoch,
        "previous_sequence": previous, "sequence": sequence, "issued_at": "2026-04-08T14:04:00Z",
        "revocations": [revocation(sequence)],
    })
}

/// Revokes an envelope of its own for each number.
fn revocation(sequence: u64) -> Value {
    json!({
        "sequence": sequence, "revoked_at": "2026-04-08T14:04:00Z",
        "subject": { "envelope": format!("env:{sequence:016x}") },
    })
}

fn revoked(sequence: u64) -> RevokedSubject {
    RevokedSubject::Envelope(EnvelopeId::try_from(format!("env:{sequence:016x}")).unwrap())
}

fn deltas(deltas: &[(u64, u64, u64)]) -> DeltaList {
    let mut list = DeltaList::default();
    for (epoch, previous, sequence) in deltas {
        list.push(signed(delta(*epoch, *previous, *sequence), &["operator"])).unwrap();
    }
    DeltaList::parse(&list.canonical()).unwrap()
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
fn r_30_deltas_add_revocations_to_the_version_that_they_are_for() {
    let registry = registry();
    let extended = registry.extended_by(&deltas(&[(1, 3, 4), (1, 4, 5)]), &operators()).unwrap();
    assert_eq!(extended.version(), RegistryVersion { epoch: 1, sequence: 5 });
    assert_eq!(extended.revocation(&revoked(4)), Some(RegistryVersion { epoch: 1, sequence: 4 }));
    assert_eq!((registry.revocation(&revoked(4)), registry.version().sequence), (None, 3));
    let again = extended.extended_by(&deltas(&[(1, 3, 4), (1, 4, 5), (1, 5, 6)]), &operators()).unwrap();
    assert_eq!(again.version().sequence, 6, "deltas that are known change nothing");
    let older = extended.extended_by(&deltas(&[(0, 8, 9)]), &operators()).unwrap();
    assert_eq!(older.version().sequence, 5, "nor does a delta of an earlier epoch");
}

#[test]
fn r_30_a_gap_and_a_rollback_of_deltas_are_refused_as_a_whole() {
    let registry = registry();
    for list in [&[(1, 4, 5)][..], &[(1, 3, 4), (1, 5, 6)], &[(1, 2, 4)], &[(2, 3, 4)]] {
        let error = registry.extended_by(&deltas(list), &operators()).unwrap_err();
        assert!(matches!(error, RegistryError::Gap { .. }), "{error}");
    }
    let error = registry.extended_by(&deltas(&[(1, 2, 3)]), &operators()).unwrap_err();
    assert!(matches!(error, RegistryError::Rollback { .. }), "another delta with a number in force: {error}");
    let mut list = DeltaList::default();
    list.push(signed(delta(1, 3, 4), &["stranger"])).unwrap();
    assert_eq!(registry.extended_by(&list, &operators()).unwrap_err(), RegistryError::Signature);
}

#[test]
fn a_list_of_deltas_is_in_order_and_bounded() {
    let mut list = deltas(&[(1, 3, 4)]);
    let error = list.push(signed(delta(1, 3, 4), &["operator"])).unwrap_err();
    assert!(matches!(error, RegistryError::Rollback { .. }), "{error}");
    let mut other = delta(1, 4, 5);
    other["registry_id"] = "registry.other.example".into();
    let error = list.push(signed(other, &["operator"])).unwrap_err();
    assert!(matches!(error, RegistryError::OtherRegistry { .. }), "{error}");
    let most = u64::try_from(MAX_DELTAS).unwrap();
    (4..most + 4)
        .for_each(|previous| list.push(signed(delta(1, previous, previous + 1), &["operator"])).unwrap());
    let left: Vec<u64> = list.iter().map(|delta| delta.document().sequence).collect();
    assert_eq!((left.len(), left[0]), (MAX_DELTAS, 5), "the oldest one is dropped");
    let broken = DeltaList::parse(b"[{\"schema_version\":\"1.0\",\"registry_id\":5}]").unwrap_err();
    assert_eq!(broken.pointer, "/0/registry_id");
    let text = String::from_utf8(list.canonical()).unwrap();
    let first = String::from_utf8(list.iter().next().unwrap().canonical().to_vec()).unwrap();
    assert!(
        DeltaList::parse(text.replacen('[', &format!("[{first},"), 1).as_bytes()).is_err(),
        "one too many"
    );
}

#[test]
fn r_46_the_whole_version_follows_its_delta() {
    let extended = registry().extended_by(&deltas(&[(1, 3, 4)]), &operators()).unwrap();
    let mut whole = registry_members();
    whole["sequence"] = 4.into();
    let refused = extended.replaced_by(&signed(whole.clone(), &["operator"]), &operators()).unwrap_err();
    assert!(matches!(refused, RegistryError::MissingRevocation { .. }), "{refused}");
    whole["revocations"] = json!([revocation(4)]);
    whole["servers"] = json!([]);
    let next = extended.replaced_by(&signed(whole.clone(), &["operator"]), &operators()).unwrap();
    assert_eq!((next.version().sequence, next.document().servers.len()), (4, 0));
    whole["ttl_seconds"] = 60.into();
    let refused = next.replaced_by(&signed(whole, &["operator"]), &operators()).unwrap_err();
    assert!(matches!(refused, RegistryError::Rollback { .. }), "a third document with the number: {refused}");
}

#[test]
fn r_46_a_version_that_is_read_again_does_not_undo_its_deltas() {
    let extended = registry().extended_by(&deltas(&[(1, 3, 4), (1, 4, 6)]), &operators()).unwrap();
    let again = extended.replaced_by(&version(1, 3), &operators()).unwrap();
    assert_eq!((again.version().sequence, again.revocation(&revoked(6)).is_some()), (6, true));
    let mut between = registry_members();
    between["sequence"] = 4.into();
    between["ttl_seconds"] = 60.into();
    let refused = extended.replaced_by(&signed(between.clone(), &["operator"]), &operators()).unwrap_err();
    assert!(matches!(refused, RegistryError::MissingRevocation { .. }), "{refused}");
    between["revocations"] = json!([revocation(4)]);
    let next = extended.replaced_by(&signed(between.clone(), &["operator"]), &operators()).unwrap();
    assert_eq!((next.version().sequence, next.document().ttl_seconds), (6, 60), "later deltas stay in force");
    between["sequence"] = 5.into();
    let refused = extended.replaced_by(&signed(between, &["operator"]), &operators()).unwrap_err();
    assert!(matches!(refused, RegistryError::Rollback { .. }), "no delta leads on from it: {refused}");
    let next = extended.replaced_by(&version(2, 0), &operators()).unwrap();
    assert_eq!(next.revocation(&revoked(4)), None, "a new epoch may drop revocations");
}

#[test]
fn r_46_a_later_version_of_the_epoch_drops_no_revocation() {
    let mut members = registry_members();
    members["sequence"] = 4.into();
    members["revocations"] = json!([revocation(4)]);
    let with = registry().replaced_by(&signed(members, &["operator"]), &operators()).unwrap();
    let refused = with.replaced_by(&version(1, 5), &operators()).unwrap_err();
    assert!(matches!(refused, RegistryError::MissingRevocation { .. }), "{refused}");
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

#[test]
fn the_digest_of_the_content_is_the_same_for_a_whole_version_and_for_deltas_that_lead_to_it() {
    let opened = |edit: &dyn Fn(&mut Value)| registry_with(|registry| edit(registry));
    let digest = opened(&|_| ()).content_digest();
    assert_eq!(
        opened(&|registry| registry["issued_at"] = "2026-04-08T14:06:00Z".into()).content_digest(),
        digest
    );
    let revocations = |order: [u64; 2]| {
        order.map(|number| {
            json!({
                "sequence": 2, "revoked_at": "2026-04-08T14:04:00Z",
                "subject": { "envelope": format!("env:{number:016x}") },
            })
        })
    };
    let with = |order: [u64; 2]| opened(&|registry| registry["revocations"] = json!(revocations(order)));
    assert_eq!(with([1, 2]).content_digest(), with([2, 1]).content_digest());
    assert_ne!(with([1, 2]).content_digest(), with([1, 3]).content_digest());
    assert_ne!(with([1, 2]).content_digest(), digest);
}
