//! Issuers known by certificate: the chain leads to a root of the policy, and the certificate speaks for `iss`.

#![allow(clippy::unwrap_used)]

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, SanType,
    date_time_ymd,
};
use registration::{Authenticated, Method, Policy, PolicyInForce, Record, SideData, Untrusted, authenticate};
use scitt::header::CertHash;
use scitt::{SignedStatement, SigningKey, StatementBuilder, X5Chain};
use testkit::{ISSUER, KID, es256};

const HOLDER: &str = "https://holder.example";
const Y2026: u64 = 1_767_225_600;
const Y2030: u64 = 1_893_456_000;

type Root = CertifiedIssuer<'static, KeyPair>;

struct Holder {
    root: Root,
    chain: X5Chain,
    key: SigningKey,
}

fn root() -> Root {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn holder() -> Holder {
    let root = root();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2030, 1, 1);
    params.subject_alt_names = vec![SanType::URI(HOLDER.try_into().unwrap())];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let certificate = params.signed_by(&key, &root).unwrap();
    let chain = X5Chain::new(vec![certificate.der().to_vec().into()]).unwrap();
    Holder { root, chain, key: SigningKey::from_pkcs8_pem(&key.serialize_pem()).unwrap() }
}

/// The test policy with this root, and more keys of its table.
fn trusting(root: &Root, more: &str) -> Policy {
    let anchor = format!("[[anchor]]\nname = \"ca\"\nroots = ['''{}''']\n{more}\n", root.pem());
    Policy::from_toml(&format!("{}\n{anchor}", testkit::policy_toml())).unwrap()
}

fn note(iss: &str) -> StatementBuilder {
    StatementBuilder::new(*b"{}").content_type("application/json").iss(iss).sub("s")
}

fn hash_of(chain: &X5Chain) -> CertHash {
    let hash = scitt::x509::sha256_thumbprint(chain.end_entity());
    CertHash { algorithm: scitt::x509::SHA_256.into(), hash: hash.to_vec().into() }
}

fn check<'s>(statement: &'s SignedStatement, policy: &Policy) -> Result<Authenticated<'s>, Untrusted> {
    authenticate(statement, SideData::default(), policy)
}

fn refused(statement: &SignedStatement, policy: &Policy) -> String {
    check(statement, policy).expect_err("this must be refused").rule().to_string()
}

#[test]
fn a_protected_chain_to_a_root_of_the_policy_speaks_for_its_alternative_name() {
    let Holder { root, chain, key } = holder();
    let statement = note(HOLDER).x5chain(&chain).sign(&key).unwrap();
    let policy = trusting(&root, "");
    let authenticated = check(&statement, &policy).unwrap();
    assert_eq!(authenticated.method(), Method::Certificate);
    assert!(authenticated.collateral().is_none(), "a protected chain is in the statement");
}

#[test]
fn the_permit_holds_while_the_certificates_do() {
    let Holder { root, chain, key } = holder();
    let statement = note(HOLDER).x5chain(&chain).sign(&key).unwrap();
    let in_force = PolicyInForce::new(trusting(&root, ""), merkle::LeafIndex::new(4));
    let authenticated = in_force.authenticate(&statement, SideData::default()).unwrap();
    let record = Record::read(&authenticated).unwrap();
    let permit =
        in_force.decide(&authenticated, &record, &registration::Answers::none()).into_permit().unwrap();
    assert_eq!((permit.valid().not_before, permit.valid().not_after), (Some(Y2026), Some(Y2030)));
    assert_eq!(permit.refusal_at(Y2030 + 1).unwrap().violation.rule.as_str(), "chain-validity");
}

#[test]
fn a_chain_that_came_unprotected_counts_with_a_protected_hash_and_is_kept() {
    let Holder { root, chain, key } = holder();
    let policy = trusting(&root, "");
    let statement = note(HOLDER).x5t(&hash_of(&chain)).unprotected_x5chain(&chain).sign(&key).unwrap();
    let kept = check(&statement, &policy).unwrap().collateral().unwrap().encode();

    // What the log has left: S without the unprotected header, and the collateral.
    let stored = SignedStatement::parse(statement.bytes().clone()).unwrap();
    assert_eq!(refused(&stored, &policy), "chain-missing");
    let kept = X5Chain::decode(&kept).unwrap();
    let beside = SideData { payload: None, x5chain: Some(&kept) };
    assert_eq!(authenticate(&stored, beside, &policy).unwrap().iss(), HOLDER);
}

#[test]
fn a_did_x509_binds_the_certificates_that_it_means_and_no_anchor_can_say_otherwise() {
    let Holder { root, chain, key } = holder();
    let fingerprint =
        |root: &Root| data_encoding::BASE64URL_NOPAD.encode(&scitt::x509::sha256_thumbprint(root.der()));
    let did = |root: &Root, uri: &str| format!("did:x509:0:sha256:{}::san:uri:{uri}", fingerprint(root));
    let sign = |iss: &str| note(iss).x5chain(&chain).sign(&key).unwrap();
    let meant = sign(&did(&root, "https%3A%2F%2Fholder.example"));
    let other_name = sign(&did(&root, "https%3A%2F%2Fother.example"));
    let other_root = sign(&did(&self::root(), "https%3A%2F%2Fholder.example"));
    for more in ["", "issuers = ['did:x509:*']", "san = false\nissuers = ['*']"] {
        let policy = trusting(&root, more);
        assert!(check(&meant, &policy).is_ok(), "{more}");
        assert_eq!(refused(&other_name, &policy), "certificate-not-bound-to-issuer", "{more}");
        assert_eq!(refused(&other_root, &policy), "certificate-not-bound-to-issuer", "{more}");
    }
}

#[test]
fn a_chain_of_another_root_is_refused() {
    let Holder { chain, key, .. } = holder();
    let statement = note(HOLDER).x5chain(&chain).sign(&key).unwrap();
    assert_eq!(refused(&statement, &trusting(&root(), "")), "chain");
    assert_eq!(refused(&statement, &testkit::policy()), "chain");
}

#[test]
fn a_certificate_speaks_for_its_own_names_and_those_the_anchor_lists() {
    let Holder { root, chain, key } = holder();
    let elsewhere = note("https://elsewhere.example").x5chain(&chain).sign(&key).unwrap();
    assert_eq!(refused(&elsewhere, &trusting(&root, "")), "certificate-not-bound-to-issuer");
    assert!(check(&elsewhere, &trusting(&root, "issuers = [\"https://*.example\"]")).is_ok());
    let own = note(HOLDER).x5chain(&chain).sign(&key).unwrap();
    let listed_only = trusting(&root, "san = false\nissuers = [\"https://elsewhere.example\"]");
    assert_eq!(refused(&own, &listed_only), "certificate-not-bound-to-issuer");
}

#[test]
fn an_anchor_that_asks_for_a_key_usage_refuses_certificates_without_it() {
    let Holder { root, chain, key } = holder();
    let statement = note(HOLDER).x5chain(&chain).sign(&key).unwrap();
    assert_eq!(refused(&statement, &trusting(&root, "eku = \"1.3.6.1.5.5.7.3.3\"")), "chain");
}

#[test]
fn a_hash_of_another_certificate_is_refused() {
    let Holder { root, chain, key } = holder();
    let other = hash_of(&holder().chain);
    let statement = note(HOLDER).x5t(&other).unprotected_x5chain(&chain).sign(&key).unwrap();
    assert_eq!(refused(&statement, &trusting(&root, "")), "certificate-hash");
}

#[test]
fn a_borrowed_certificate_does_not_help_another_key() {
    let Holder { root, chain, .. } = holder();
    let statement = note(HOLDER).x5chain(&chain).sign(&es256()).unwrap();
    assert_eq!(refused(&statement, &trusting(&root, "")), "signature");
}

#[test]
fn a_chain_does_not_speak_for_an_issuer_whose_listed_key_is_another() {
    let Holder { root, chain, key } = holder();
    let any = trusting(&root, "issuers = [\"*\"]");
    let listed = note(ISSUER).kid(KID).x5chain(&chain).sign(&key).unwrap();
    assert_eq!(refused(&listed, &any), "key-not-bound-to-issuer");
    let own_name = testkit::verifier();
    let did = scitt::Signer::public_key(&own_name).did_key();
    let named = note(&did).x5chain(&chain).sign(&key).unwrap();
    assert_eq!(refused(&named, &any), "certificate-not-bound-to-issuer");
}

#[test]
fn an_unprotected_chain_alone_proves_nothing() {
    let Holder { root, chain, key } = holder();
    let statement = note(HOLDER).kid("k").unprotected_x5chain(&chain).sign(&key).unwrap();
    assert_eq!(refused(&statement, &trusting(&root, "")), "issuer-unknown");
}
