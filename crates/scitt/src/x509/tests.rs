//! Chains made here, and the ones that must not lead to a root.

use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType, SignatureAlgorithm, date_time_ymd,
};

use super::*;
use crate::alg::Curve;
use crate::limits::CERTIFICATES;

const NOW: u64 = 1_795_000_000; // 2026-11-18
const Y2026: u64 = 1_767_225_600;
const Y2028: u64 = 1_830_297_600;
const Y2030: u64 = 1_893_456_000;
const CODE_SIGNING: &str = "1.3.6.1.5.5.7.3.3";

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2030, 1, 1);
    params
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn leaf_params() -> CertificateParams {
    let mut params = params("leaf");
    params.not_before = date_time_ymd(2026, 1, 1);
    params.subject_alt_names = vec![
        SanType::URI("https://issuer.example".try_into().unwrap()),
        SanType::DnsName("issuer.example".try_into().unwrap()),
        SanType::DnsName("*.wild.example".try_into().unwrap()),
    ];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params
}

fn key(algorithm: &'static SignatureAlgorithm) -> KeyPair {
    KeyPair::generate_for(algorithm).unwrap()
}

fn p256() -> KeyPair {
    key(&rcgen::PKCS_ECDSA_P256_SHA256)
}

/// Root, intermediate, and what the intermediate signs.
struct Authority {
    root: Issuer,
    intermediate: Issuer,
}

impl Authority {
    fn new() -> Self {
        Self::with(&rcgen::PKCS_ECDSA_P384_SHA384, ca_params("intermediate"))
    }

    fn with(algorithm: &'static SignatureAlgorithm, intermediate: CertificateParams) -> Self {
        let root = Issuer::self_signed(ca_params("root"), key(algorithm)).unwrap();
        let intermediate = Issuer::signed_by(intermediate, key(algorithm), &root).unwrap();
        Self { root, intermediate }
    }

    fn roots(&self) -> Vec<RootCertificate> {
        vec![RootCertificate::from_der(self.root.der()).unwrap()]
    }

    fn chain(&self, leaf: CertificateParams, key: &KeyPair) -> Vec<Vec<u8>> {
        let leaf = leaf.signed_by(key, &self.intermediate).unwrap();
        vec![leaf.der().to_vec(), self.intermediate.der().to_vec()]
    }
}

fn verify(chain: &[Vec<u8>], roots: &[RootCertificate], at: u64) -> Result<CertificationPath, ChainError> {
    let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    verify_chain(&chain, roots, at, None)
}

#[test]
fn a_chain_to_a_trusted_root_yields_the_leaf_s_key_names_and_dates() {
    for (ca, leaf_algorithm, curve) in [
        (&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P256_SHA256, Curve::P256),
        (&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ECDSA_P256_SHA256, Curve::P256),
        (&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ECDSA_P384_SHA384, Curve::P384),
        (&rcgen::PKCS_ED25519, &rcgen::PKCS_ED25519, Curve::Ed25519),
    ] {
        let authority = Authority::with(ca, ca_params("intermediate"));
        let leaf_key = key(leaf_algorithm);
        let chain = authority.chain(leaf_params(), &leaf_key);
        let verified = verify(&chain, &authority.roots(), NOW).unwrap();
        assert_eq!(verified.key().curve(), curve);
        assert_eq!(verified.key().as_bytes(), leaf_key.public_key_raw());
        assert_eq!(verified.names().uris(), ["https://issuer.example"]);
        assert_eq!(verified.names().dns(), ["issuer.example", "*.wild.example"]);
        assert_eq!(verified.validity(), Validity { not_before: Y2026, not_after: Y2030 });
        assert_eq!(verified.root(), &authority.roots()[0].sha256());
    }
}

#[test]
fn the_interval_is_that_of_all_certificates_below_the_root() {
    let mut short = ca_params("intermediate");
    short.not_after = date_time_ymd(2028, 1, 1);
    let authority = Authority::with(&rcgen::PKCS_ECDSA_P256_SHA256, short);
    let chain = authority.chain(leaf_params(), &p256());
    let validity = verify(&chain, &authority.roots(), NOW).unwrap().validity();
    assert_eq!(validity, Validity { not_before: Y2026, not_after: Y2028 });
    for at in [Y2026, Y2028] {
        assert!(verify(&chain, &authority.roots(), at).is_ok());
        assert!(validity.holds(at));
    }
    assert!(!validity.holds(Y2026 - 1) && !validity.holds(Y2028 + 1));
    assert_eq!(
        verify(&chain, &authority.roots(), Y2026 - 1),
        Err(ChainError::NotYetValid { at: Y2026 - 1, not_before: Y2026 })
    );
    assert_eq!(
        verify(&chain, &authority.roots(), Y2028 + 1),
        Err(ChainError::Expired { at: Y2028 + 1, not_after: Y2028 })
    );
}

#[test]
fn without_a_time_the_interval_of_the_path_is_found() {
    let mut old = ca_params("intermediate");
    old.not_before = date_time_ymd(2021, 1, 1);
    old.not_after = date_time_ymd(2028, 1, 1);
    let authority = Authority::with(&rcgen::PKCS_ECDSA_P256_SHA256, old);
    let chain = authority.chain(leaf_params(), &p256());
    let mut with_noise = chain.clone();
    let mut later = ca_params("later");
    later.not_before = date_time_ymd(2029, 1, 1);
    with_noise.push(Issuer::self_signed(later, p256()).unwrap().der().to_vec());
    for chain in [chain, with_noise] {
        let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
        let verified = verify_chain_at_any_time(&chain, &authority.roots(), None).unwrap();
        assert_eq!(verified.validity(), Validity { not_before: Y2026, not_after: Y2028 });
        assert_eq!(verify_chain_at_any_time(&chain, &[], None), Err(ChainError::UnknownIssuer));
    }
}

#[test]
fn a_path_that_is_never_valid_as_a_whole_is_refused_at_any_time() {
    let mut ended = ca_params("intermediate");
    ended.not_after = date_time_ymd(2025, 1, 1);
    let authority = Authority::with(&rcgen::PKCS_ECDSA_P256_SHA256, ended);
    let chain = authority.chain(leaf_params(), &p256());
    let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    let answer = verify_chain_at_any_time(&chain, &authority.roots(), None);
    assert!(matches!(answer, Err(ChainError::Expired { .. })), "{answer:?}");
}

#[test]
fn the_root_itself_may_be_sent_along() {
    let authority = Authority::new();
    let mut chain = authority.chain(leaf_params(), &p256());
    chain.push(authority.root.der().to_vec());
    assert!(verify(&chain, &authority.roots(), NOW).is_ok());
}

#[test]
fn another_root_is_no_root() {
    let authority = Authority::new();
    let mut named_differently = ca_params("other");
    named_differently.distinguished_name.push(DnType::CommonName, "other");
    let other = Issuer::self_signed(named_differently, p256()).unwrap();
    let roots = [RootCertificate::from_der(other.der()).unwrap()];
    let chain = authority.chain(leaf_params(), &p256());
    assert_eq!(verify(&chain, &roots, NOW), Err(ChainError::UnknownIssuer));
    assert_eq!(verify(&chain, &[], NOW), Err(ChainError::UnknownIssuer));
}

#[test]
fn a_root_of_the_same_name_with_another_key_is_no_root() {
    let authority = Authority::new();
    let impostor = Issuer::self_signed(ca_params("root"), key(&rcgen::PKCS_ECDSA_P384_SHA384)).unwrap();
    let roots = [RootCertificate::from_der(impostor.der()).unwrap()];
    let chain = authority.chain(leaf_params(), &p256());
    assert_eq!(verify(&chain, &roots, NOW), Err(ChainError::BadSignature));
}

#[test]
fn a_self_signed_certificate_in_the_header_never_becomes_an_anchor() {
    let authority = Authority::new();
    let rogue = Issuer::self_signed(ca_params("rogue"), p256()).unwrap();
    let leaf = leaf_params().signed_by(&p256(), &rogue).unwrap();
    let chain = [leaf.der().to_vec(), rogue.der().to_vec()];
    assert_eq!(verify(&chain, &authority.roots(), NOW), Err(ChainError::UnknownIssuer));
    let alone = leaf_params().self_signed(&p256()).unwrap();
    assert_eq!(verify(&[alone.der().to_vec()], &authority.roots(), NOW), Err(ChainError::UnknownIssuer));
}

#[test]
fn a_self_signed_certificate_that_is_configured_is_its_own_anchor() {
    let alone = leaf_params().self_signed(&p256()).unwrap();
    let roots = [RootCertificate::from_der(alone.der()).unwrap()];
    assert!(verify(&[alone.der().to_vec()], &roots, NOW).is_ok());
}

#[test]
fn a_missing_intermediate_is_not_fetched() {
    let authority = Authority::new();
    let mut chain = authority.chain(leaf_params(), &p256());
    chain.pop();
    assert_eq!(verify(&chain, &authority.roots(), NOW), Err(ChainError::UnknownIssuer));
}

#[test]
fn a_leaf_marked_as_a_ca_is_refused() {
    let authority = Authority::new();
    let mut leaf = leaf_params();
    leaf.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let chain = authority.chain(leaf, &p256());
    assert_eq!(verify(&chain, &authority.roots(), NOW), Err(ChainError::LeafIsCa));
}

#[test]
fn an_intermediate_that_is_no_ca_is_refused() {
    let authority = Authority::with(&rcgen::PKCS_ECDSA_P256_SHA256, params("intermediate"));
    let chain = authority.chain(leaf_params(), &p256());
    assert!(matches!(verify(&chain, &authority.roots(), NOW), Err(ChainError::Refused(_))));
}

#[test]
fn a_key_that_may_only_encipher_does_not_sign() {
    let authority = Authority::new();
    let mut leaf = leaf_params();
    leaf.key_usages = vec![KeyUsagePurpose::KeyEncipherment];
    let chain = authority.chain(leaf, &p256());
    assert_eq!(verify(&chain, &authority.roots(), NOW), Err(ChainError::KeyUsage));
}

#[test]
fn the_extended_key_usage_is_demanded_only_when_asked_for() {
    let authority = Authority::new();
    let mut with = leaf_params();
    with.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    let (with, without) = (authority.chain(with, &p256()), authority.chain(leaf_params(), &p256()));
    let ask = |chain: &[Vec<u8>]| {
        let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
        verify_chain(&chain, &authority.roots(), NOW, Some(CODE_SIGNING))
    };
    assert!(ask(&with).is_ok());
    assert_eq!(ask(&without), Err(ChainError::ExtendedKeyUsage(CODE_SIGNING.into())));
    assert!(verify(&with, &authority.roots(), NOW).is_ok());
    assert!(verify(&without, &authority.roots(), NOW).is_ok());
}

#[test]
fn an_unknown_critical_extension_is_refused() {
    let authority = Authority::new();
    let mut leaf = leaf_params();
    let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99999, 1], vec![5, 0]);
    extension.set_criticality(true);
    leaf.custom_extensions = vec![extension];
    let chain = authority.chain(leaf, &p256());
    assert!(matches!(verify(&chain, &authority.roots(), NOW), Err(ChainError::Refused(_))));
}

#[test]
fn a_chain_of_nothing_or_of_too_much_is_refused() {
    let authority = Authority::new();
    assert_eq!(verify(&[], &authority.roots(), NOW), Err(ChainError::Empty));
    let one = authority.chain(leaf_params(), &p256()).remove(0);
    let many = vec![one; CERTIFICATES + 1];
    assert_eq!(verify(&many, &authority.roots(), NOW), Err(ChainError::TooMany { found: CERTIFICATES + 1 }));
}

#[test]
fn a_tampered_leaf_is_refused() {
    let authority = Authority::new();
    let mut chain = authority.chain(leaf_params(), &p256());
    let place = find(&chain[0], b"https://issuer.example") + 8;
    chain[0][place] = b'j';
    assert_eq!(verify(&chain, &authority.roots(), NOW), Err(ChainError::BadSignature));
}

#[test]
fn names_bind_an_issuer_exactly() {
    let authority = Authority::new();
    let chain = authority.chain(leaf_params(), &p256());
    let verified = verify(&chain, &authority.roots(), NOW).unwrap();
    for bound in ["https://issuer.example", "issuer.example", "ISSUER.example"] {
        assert!(verified.names().binds(bound), "{bound}");
    }
    for unbound in
        ["https://issuer.example/", "https://ISSUER.example", "a.wild.example", "*.wild.example", "leaf", ""]
    {
        assert!(!verified.names().binds(unbound), "{unbound}");
    }
}

#[test]
fn x5t_is_sha_256_over_the_certificate_and_nothing_else() {
    let authority = Authority::new();
    let chain = authority.chain(leaf_params(), &p256());
    let digest = sha256_thumbprint(&chain[0]);
    let sha_256 = SHA_256.into();
    assert_eq!(check_thumbprint(&sha_256, &digest, &chain[0]), Ok(()));
    assert_eq!(check_thumbprint(&sha_256, &digest, &chain[1]), Err(ChainError::ThumbprintMismatch));
    assert_eq!(check_thumbprint(&sha_256, &digest[..8], &chain[0]), Err(ChainError::ThumbprintMismatch));
    for (other, told) in
        [((-15).into(), "-15"), ((-44).into(), "-44"), (Label::from("sha-256"), "\"sha-256\"")]
    {
        let refused = check_thumbprint(&other, &digest, &chain[0]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("x5t uses hash algorithm {told}: only SHA-256 (-16) is read")
        );
    }
}

#[test]
fn a_root_is_read_from_pem() {
    let authority = Authority::new();
    let root = RootCertificate::from_pem(&authority.root.pem()).unwrap();
    assert_eq!(root, authority.roots()[0]);
    assert_eq!(RootCertificate::from_pem(&root.to_pem()), Ok(root));
    assert!(RootCertificate::from_pem(&p256().serialize_pem()).is_err());
    assert!(RootCertificate::from_der(b"").is_err());
}

fn find(haystack: &[u8], needle: &[u8]) -> usize {
    haystack.windows(needle.len()).position(|window| window == needle).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_mutated_certificate_neither_panics_nor_verifies(place: usize, flip in 1u8..=255) {
        let authority = fixed();
        let mut chain = authority.1.clone();
        let length = chain[0].len();
        chain[0][place % length] ^= flip;
        prop_assert!(verify(&chain, &authority.0, NOW).is_err());
        let _ = RootCertificate::from_der(&chain[0]);
        chain[0].truncate(place % length);
        prop_assert!(verify(&chain, &authority.0, NOW).is_err());
    }
}

fn fixed() -> &'static (Vec<RootCertificate>, Vec<Vec<u8>>) {
    use std::sync::LazyLock;
    static FIXED: LazyLock<(Vec<RootCertificate>, Vec<Vec<u8>>)> = LazyLock::new(|| {
        let authority = Authority::new();
        (authority.roots(), authority.chain(leaf_params(), &p256()))
    });
    &FIXED
}
