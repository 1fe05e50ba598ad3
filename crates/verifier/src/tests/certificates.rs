//! Issuers that sign with a certificate.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, date_time_ymd};
use scitt::X5Chain;
use scitt::header::{CertHash, Label};
use scitt::x509::{RootCertificate, sha256_thumbprint};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = dates(CertificateParams::default(), 2040);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn root(&self) -> RootCertificate {
        RootCertificate::from_der(self.0.der()).unwrap()
    }

    /// A signer with a certificate for `name` that ends with the year.
    fn certify(&self, name: &str, until: i32) -> (SigningKey, X5Chain) {
        let pair = KeyPair::generate().unwrap();
        let mut params = dates(CertificateParams::default(), until);
        params.subject_alt_names = vec![SanType::URI(name.try_into().unwrap())];
        let certificate = params.signed_by(&pair, &self.0).unwrap();
        let chain =
            X5Chain::new(vec![certificate.der().to_vec().into(), self.0.der().to_vec().into()]).unwrap();
        (SigningKey::from_pkcs8_der(pair.serialized_der()).unwrap(), chain)
    }
}

fn dates(mut params: CertificateParams, until: i32) -> CertificateParams {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(until, 12, 31);
    params
}

fn world(signer: &SigningKey, build: impl FnOnce(StatementBuilder) -> StatementBuilder) -> World {
    let mut world = World::new();
    world.trust.issuers.clear();
    world.statement = build(StatementBuilder::new(PAYLOAD).iss(ISS).sub("s")).sign(signer).unwrap();
    world
}

fn with_root(mut world: World, root: RootCertificate) -> World {
    world.trust.roots = vec![TrustedRoot { certificate: root, eku: None }];
    world
}

fn transparent(world: &World, statement: &[u8]) -> StatementVerdict {
    let receipt = world.log.receipt(&world.statement);
    world.verify_bytes(statement, &[&receipt])
}

#[test]
fn a_certificate_speaks_for_the_uri_in_it() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify(ISS, 2040);
    let world = with_root(world(&signer, |builder| builder.x5chain(&chain)), authority.root());
    assert_verified(&transparent(&world, world.statement.bytes()));
}

#[test]
fn a_certificate_does_not_speak_for_another_name() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify("https://other.example", 2040);
    let mut world = with_root(world(&signer, |builder| builder.x5chain(&chain)), authority.root());
    assert_failed(&transparent(&world, world.statement.bytes()), Code::IssuerNotBound);
    // unless the trust store itself binds the issuer to that root
    let issuer = TrustedIssuer { iss: ISS.into(), roots: vec![authority.root()], ..TrustedIssuer::default() };
    world.trust.issuers.push(issuer);
    assert_verified(&transparent(&world, world.statement.bytes()));
}

#[test]
fn a_chain_to_an_unknown_root_does_not_count_against_a_key_that_is_trusted_by_name() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify(ISS, 2040);
    let named = |builder: StatementBuilder| builder.x5chain(&chain).kid(*b"key-1");
    let mut unrelated = CertificateParams::default();
    unrelated.distinguished_name.push(rcgen::DnType::CommonName, "unrelated");
    unrelated.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let unrelated = Authority(CertifiedIssuer::self_signed(unrelated, KeyPair::generate().unwrap()).unwrap());
    let mut world = with_root(world(&signer, named), unrelated.root());
    assert_not_verified(&transparent(&world, world.statement.bytes()), Code::UnknownIssuer);
    let key = CoseKey { kid: Some(b"key-1".to_vec()), ..listed(&signer) };
    world.trust.issuers = vec![TrustedIssuer::new(ISS, vec![key])];
    assert_verified(&transparent(&world, world.statement.bytes()));
}

#[test]
fn a_chain_to_no_trusted_root_is_not_verified() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify(ISS, 2040);
    let without_root = world(&signer, |builder| builder.x5chain(&chain));
    assert_not_verified(&transparent(&without_root, without_root.statement.bytes()), Code::UnknownIssuer);
    let stranger = Authority::new();
    let world = with_root(world(&signer, |builder| builder.x5chain(&chain)), stranger.root());
    let verdict = transparent(&world, world.statement.bytes());
    assert_ne!(verdict.outcome, VerificationOutcome::Verified);
}

/// The year 2035, in Unix seconds.
const IN_2035: u64 = 2_051_222_400;

#[test]
fn the_certificate_is_judged_at_the_time_the_log_signed() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify(ISS, 2026);
    let world = with_root(world(&signer, |builder| builder.x5chain(&chain)), authority.root());
    let receipt = world.log.receipt(&world.statement);
    let statement = world.statement.bytes();
    let verdict =
        verify(&StatementEvidence { statement, receipts: &[&receipt], payload: None }, &world.trust, IN_2035);
    assert_verified(&verdict);
    // with no receipt to date it, an expired certificate is an expired certificate
    let verdict =
        verify(&StatementEvidence { statement, ..StatementEvidence::default() }, &world.trust, IN_2035);
    assert_failed(&verdict, Code::CertificatePathInvalid);
}

#[test]
fn a_certificate_that_ended_before_the_receipt_may_have_been_valid_at_the_registration() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify(ISS, 2026);
    let verified = |world: &World, statement: &[u8]| {
        let receipt = world.log.receipt(&SignedStatement::parse(statement.to_vec()).unwrap());
        let evidence = StatementEvidence { statement, receipts: &[&receipt], payload: None };
        verify(&evidence, &world.trust, IN_2035)
    };
    let mut world = with_root(world(&signer, |builder| builder.x5chain(&chain)), authority.root());
    world.log.iat = IN_2035;
    assert_not_verified(&verified(&world, world.statement.bytes()), Code::RegistrationTimeUnknown);
    // A signature by another key is refused all the same, as is a certificate for another name.
    let mut forged = world.statement.bytes().to_vec();
    *forged.last_mut().unwrap() ^= 1;
    assert_failed(&verified(&world, &forged), Code::IssuerSignatureInvalid);
    let (signer, chain) = authority.certify("https://other.example", 2026);
    let builder = StatementBuilder::new(PAYLOAD).iss(ISS).sub("s").x5chain(&chain);
    let unbound = builder.sign(&signer).unwrap();
    assert_failed(&verified(&world, unbound.bytes()), Code::CertificatePathInvalid);
}

#[test]
fn a_certificate_must_have_the_key_that_is_listed_for_the_kid() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify(ISS, 2040);
    let mut world =
        with_root(world(&signer, |builder| builder.x5chain(&chain).kid(*b"key-1")), authority.root());
    let named = |kid: &[u8], key: &dyn Signer| CoseKey { kid: Some(kid.to_vec()), ..listed(key) };
    let other = key(Algorithm::Es256);
    for (keys, code) in [
        (vec![named(b"key-1", &other)], Some(Code::IssuerSignatureInvalid)),
        (vec![named(b"key-1", &other), named(b"key-1", &signer)], None),
        (vec![named(b"key-2", &other), listed(&other)], None),
    ] {
        world.trust.issuers = vec![TrustedIssuer::new(ISS, keys)];
        let verdict = transparent(&world, world.statement.bytes());
        match code {
            None => assert_verified(&verdict),
            Some(code) => assert_failed(&verdict, code),
        }
    }
}

#[test]
fn a_further_root_does_not_count_against_a_key_that_is_listed_for_the_kid() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify("https://other.example", 2040);
    let hash = sha256_thumbprint(chain.end_entity());
    let x5t = CertHash { algorithm: Label::Int(-16), hash: hash.to_vec().into() };
    let missing = world(&signer, |builder| builder.x5t(&x5t).kid(*b"key-1"));
    let unbound = world(&signer, |builder| builder.x5chain(&chain).kid(*b"key-1"));
    for (mut world, code) in [(missing, Code::CertificateMissing), (unbound, Code::IssuerNotBound)] {
        let key = CoseKey { kid: Some(b"key-1".to_vec()), ..listed(&signer) };
        world.trust.issuers = vec![TrustedIssuer::new(ISS, vec![key])];
        assert_verified(&transparent(&world, world.statement.bytes()));
        world = with_root(world, authority.root());
        assert_verified(&transparent(&world, world.statement.bytes()));
        // A key that the statement does not name is not tried instead.
        world.trust.issuers = vec![TrustedIssuer::new(ISS, vec![listed(&signer)])];
        assert_eq!(transparent(&world, world.statement.bytes()).reason, Some(code));
    }
    // The certificate has the listed key, and ended before the time of the receipt.
    let (signer, chain) = authority.certify(ISS, 2026);
    let mut world = world(&signer, |builder| builder.x5chain(&chain).kid(*b"key-1"));
    world.log.iat = IN_2035;
    let key = CoseKey { kid: Some(b"key-1".to_vec()), ..listed(&signer) };
    world.trust.issuers = vec![TrustedIssuer::new(ISS, vec![key])];
    let world = with_root(world, authority.root());
    let (receipt, statement) = (world.log.receipt(&world.statement), world.statement.bytes());
    let evidence = StatementEvidence { statement, receipts: &[&receipt], payload: None };
    assert_verified(&verify(&evidence, &world.trust, IN_2035));
}

#[test]
fn a_signature_by_another_key_than_the_certificate_s_is_refused() {
    let authority = Authority::new();
    let (_, chain) = authority.certify(ISS, 2040);
    let forger = key(Algorithm::Es256);
    let world = with_root(world(&forger, |builder| builder.x5chain(&chain)), authority.root());
    assert_failed(&transparent(&world, world.statement.bytes()), Code::IssuerSignatureInvalid);
}

#[test]
fn a_certificate_named_by_hash_may_come_unprotected() {
    let authority = Authority::new();
    let (signer, chain) = authority.certify(ISS, 2040);
    let (_, other_chain) = authority.certify(ISS, 2040);
    let hash = sha256_thumbprint(chain.end_entity());
    let x5t = CertHash { algorithm: Label::Int(-16), hash: hash.to_vec().into() };
    let message = |chain: &X5Chain| {
        let builder = StatementBuilder::new(PAYLOAD).iss(ISS).sub("s").x5t(&x5t);
        builder.unprotected_x5chain(chain).encode(&signer).unwrap()
    };
    let world = with_root(world(&signer, |builder| builder.x5t(&x5t)), authority.root());
    assert_not_verified(&transparent(&world, world.statement.bytes()), Code::CertificateMissing);
    for (chain, code) in [(&chain, None), (&other_chain, Some(Code::CertificatePathInvalid))] {
        let bytes = message(chain);
        let receipt = world.log.receipt(&SignedStatement::parse(bytes.clone()).unwrap());
        let verdict = world.verify_bytes(&bytes, &[&receipt]);
        match code {
            None => assert_verified(&verdict),
            Some(code) => assert_failed(&verdict, code),
        }
    }
}
