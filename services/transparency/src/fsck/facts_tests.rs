//! Entries whose certificates or detached payload are stored beside the statement.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, SanType,
    date_time_ymd,
};
use scitt::header::CertHash;
use scitt::{SigningKey, StatementBuilder};
use store::contract::Appender;
use store::{Memory, NewEntry};

use super::*;

const HOLDER: &str = "https://holder.example";

/// A statement of an issuer whose certificate is in the unprotected header, with its chain, and a policy that trusts its
/// authority.
fn certified() -> (Policy, SignedStatement, X5Chain) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2030, 1, 1);
    params.subject_alt_names = vec![SanType::URI(HOLDER.try_into().unwrap())];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let certificate = params.signed_by(&key, &root).unwrap();
    let chain = X5Chain::new(vec![certificate.der().to_vec().into()]).unwrap();
    let hash = scitt::x509::sha256_thumbprint(chain.end_entity());
    let hash = CertHash { algorithm: scitt::x509::SHA_256.into(), hash: hash.to_vec().into() };
    let statement = StatementBuilder::new("{}")
        .content_type("application/json")
        .iss(HOLDER)
        .sub("certified")
        .x5t(&hash)
        .unprotected_x5chain(&chain)
        .encode(&SigningKey::from_pkcs8_pem(&key.serialize_pem()).unwrap())
        .unwrap();
    let anchor = format!("\n[[anchor]]\nname = \"ca\"\nroots = ['''{}''']\n", root.pem());
    let policy = Policy::from_toml(&(testkit::policy_toml() + &anchor)).unwrap();
    (policy, SignedStatement::parse(statement).unwrap(), chain)
}

/// What is found damaged beside the second entry of a log with this policy.
async fn damaged_beside(
    policy: &Policy,
    statement: &SignedStatement,
    collateral: Vec<Collateral>,
) -> Vec<String> {
    let store = Memory::new();
    let mut appender = Appender::new(Arc::new(store.clone())).await;
    let first = registration::policy_statement::sign(policy, policy, &testkit::operator()).unwrap();
    let entry = |statement: &SignedStatement, rule: &str, collateral| NewEntry {
        digest: statement.digest(),
        twin: None,
        statement: statement.bytes().clone(),
        policy: LeafIndex::new(0),
        rule: rule.to_owned(),
        facts: "{}".into(),
        guards: Vec::new(),
        collateral,
    };
    let entries = vec![entry(&first, "policy", Vec::new()), entry(statement, "application/json", collateral)];
    appender.append_entries(entries).await.unwrap();
    let facts = LogFacts::of(testkit::ORIGIN).unwrap();
    let stored = store.entry(LeafIndex::new(1)).await.unwrap().unwrap();
    facts.prepare(&store, &[&stored]).await.unwrap();
    let derived = facts.guards(&store, &[&stored]).await.unwrap();
    assert!(derived.damaged.iter().all(|(leaf, _)| *leaf == LeafIndex::new(1)), "{derived:?}");
    derived.damaged.into_iter().map(|(_, why)| why).collect()
}

#[tokio::test]
async fn a_stored_certificate_chain_that_is_damaged_exchanged_or_missing_is_found() {
    let (policy, statement, chain) = certified();
    let found = async |bytes: Vec<u8>| {
        let stored = Collateral { kind: COLLATERAL_X5CHAIN, bytes: bytes.into() };
        damaged_beside(&policy, &statement, vec![stored]).await
    };
    assert_eq!(found(chain.encode()).await, [""; 0]);
    let cut = found(chain.encode()[..20].to_vec()).await;
    assert!(cut.len() == 1 && cut[0].starts_with("the certificate chain: "), "{cut:?}");
    let mut flipped = chain.encode();
    *flipped.last_mut().unwrap() ^= 1;
    assert_eq!(found(flipped).await.len(), 1, "a bit of the certificate");
    let (_, _, another) = certified();
    assert_eq!(found(another.encode()).await.len(), 1, "the chain of another certificate");
    assert_eq!(damaged_beside(&policy, &statement, Vec::new()).await.len(), 1, "no chain");
}

#[tokio::test]
async fn a_stored_payload_that_is_not_the_signed_one_is_found_and_one_that_was_not_kept_is_no_damage() {
    let statement = StatementBuilder::new("{}")
        .content_type("application/json")
        .kid(testkit::KID)
        .iss(testkit::ISSUER)
        .sub("detached")
        .detached()
        .sign(&testkit::es256())
        .unwrap();
    let policy = testkit::policy();
    let found = async |payload: Option<&'static str>| {
        let stored = payload.map(|text| Collateral { kind: COLLATERAL_PAYLOAD, bytes: text.into() });
        damaged_beside(&policy, &statement, stored.into_iter().collect()).await
    };
    assert_eq!(found(Some("{}")).await, [""; 0]);
    assert_eq!(found(None).await, [""; 0]);
    assert_eq!(found(Some("{ }")).await.len(), 1);
}
