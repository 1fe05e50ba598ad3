//! Whose statement it is: every way from `iss` to a key, and the ways around them that are closed.

#![allow(clippy::unwrap_used)]

use registration::{Authenticated, Method, Policy, SideData, Untrusted, authenticate};
use scitt::{SignedStatement, Signer, StatementBuilder};
use serde_json::json;
use testkit::{
    ISSUER, ISSUER_384, KID, LOG_ISS, ORIGIN, ed25519, es256, es384, operator, policy, policy_statement,
    verifier,
};

fn check<'s>(statement: &'s SignedStatement, policy: &Policy) -> Result<Authenticated<'s>, Untrusted> {
    authenticate(statement, SideData::default(), policy)
}

fn refused(statement: &SignedStatement) -> String {
    refused_under(statement, &policy())
}

fn refused_under(statement: &SignedStatement, policy: &Policy) -> String {
    check(statement, policy).expect_err("this must be refused").rule().to_string()
}

fn note() -> StatementBuilder {
    StatementBuilder::new(*b"{}").content_type("application/json").sub("s")
}

#[test]
fn a_statement_under_a_kid_bound_to_its_issuer_is_the_issuers() {
    let statement = testkit::opaque("s", &json!({}));
    let policy = policy();
    let authenticated = check(&statement, &policy).unwrap();
    assert_eq!(
        (authenticated.iss(), authenticated.sub(), authenticated.method()),
        (ISSUER, "s", Method::Bound)
    );
    assert_eq!(authenticated.payload(), b"{}");
    let other = note().kid(KID).iss(ISSUER_384).sign(&es384()).unwrap();
    assert!(check(&other, &policy).is_ok());
}

#[test]
fn a_did_key_or_did_jwk_signs_for_itself() {
    for signer in [&verifier() as &dyn Signer, &es256(), &es384()] {
        let (did_key, did_jwk) = (signer.public_key().did_key(), signer.public_key().did_jwk());
        let by_key = note().kid("any").iss(&did_key).sign(signer).unwrap();
        assert_eq!(check(&by_key, &policy()).unwrap().method(), Method::DidKey);
        let by_jwk = note().kid("#0").iss(&did_jwk).sign(signer).unwrap();
        assert_eq!(check(&by_jwk, &policy()).unwrap().method(), Method::DidJwk);
    }
}

#[test]
fn an_unknown_issuer_is_refused_whatever_its_key() {
    assert_eq!(
        refused(&note().kid(KID).iss("https://stranger.example").sign(&es256()).unwrap()),
        "issuer-unknown"
    );
}

#[test]
fn another_issuers_key_does_not_speak_for_an_issuer() {
    assert_eq!(refused(&note().kid(KID).iss(ISSUER).sign(&es384()).unwrap()), "signature");
    assert_eq!(refused(&note().kid("key-2").iss(ISSUER).sign(&es256()).unwrap()), "key-not-bound-to-issuer");
}

#[test]
fn a_did_key_that_did_not_sign_is_refused() {
    let did = ed25519([7; 32]).public_key().did_key();
    assert_eq!(refused(&note().kid("k").iss(&did).sign(&verifier()).unwrap()), "signature");
}

#[test]
fn a_did_that_the_policy_does_not_list_is_refused() {
    let listed = verifier().public_key().did_key();
    let closed = testkit::policy_toml().replace("key = \"open\"", &format!("key = [\"{listed}\"]"));
    let closed = Policy::from_toml(&closed.replace("jwk = \"open\"", "")).unwrap();
    let by = |signer: &dyn Signer, iss: &str| note().kid("k").iss(iss).sign(signer).unwrap();
    assert!(check(&by(&verifier(), &listed), &closed).is_ok());
    let stranger = ed25519([7; 32]);
    assert_eq!(refused_under(&by(&stranger, &stranger.public_key().did_key()), &closed), "issuer-not-listed");
    assert_eq!(
        refused_under(&by(&verifier(), &verifier().public_key().did_jwk()), &closed),
        "issuer-not-listed"
    );
}

#[test]
fn a_broken_did_is_refused_by_name() {
    assert_eq!(
        refused(&note().kid("k").iss("did:key:zBroken").sign(&verifier()).unwrap()),
        "issuer-unusable"
    );
    assert_eq!(
        refused(&note().kid("k").iss("did:web:issuer.example").sign(&verifier()).unwrap()),
        "issuer-unknown"
    );
}

#[test]
fn headers_that_rfc_9943_requires_are_required() {
    let (signer, iss) = (verifier(), verifier().public_key().did_key());
    let bare = || StatementBuilder::new(*b"{}").content_type("application/json");
    for incomplete in
        [bare().kid("k"), bare().kid("k").iss(&iss), bare().kid("k").sub("s"), bare().iss(&iss).sub("s")]
    {
        assert_eq!(refused(&incomplete.sign(&signer).unwrap()), "required-header");
    }
}

#[test]
fn a_changed_byte_breaks_the_signature() {
    let bytes = testkit::opaque("subject", &json!({"verdict": "allow"})).bytes().to_vec();
    let at = bytes.windows(5).position(|window| window == b"allow").unwrap();
    let mut tampered = bytes;
    tampered[at] = b'A';
    assert_eq!(refused(&SignedStatement::parse(tampered).unwrap()), "signature");
}

#[test]
fn the_signature_of_all_zeros_is_refused() {
    let mut bytes = testkit::vrf(0).bytes().to_vec();
    let end = bytes.len();
    bytes[end - 64..].fill(0);
    assert_eq!(refused(&SignedStatement::parse(bytes).unwrap()), "signature");
}

#[test]
fn a_detached_payload_is_needed_and_must_be_the_signed_one() {
    let statement = StatementBuilder::new(*b"{\"a\":1}").detached().content_type("application/json");
    let statement = statement.kid(KID).iss(ISSUER).sub("s").sign(&es256()).unwrap();
    let with = |payload: Option<&'static [u8]>| {
        authenticate(&statement, SideData { payload, x5chain: None }, &policy())
    };
    assert_eq!(with(None).unwrap_err().rule().as_str(), "payload-missing");
    assert_eq!(with(Some(b"{\"a\":2}")).unwrap_err().rule().as_str(), "signature");
    assert_eq!(with(Some(b"{\"a\":1}")).unwrap().payload(), b"{\"a\":1}");
}

#[test]
fn a_payload_beside_a_statement_that_has_one_is_refused() {
    let statement = testkit::opaque("s", &json!({}));
    let beside = SideData { payload: Some(b"{}"), x5chain: None };
    assert_eq!(authenticate(&statement, beside, &policy()).unwrap_err().rule().as_str(), "payload-twice");
}

#[test]
fn an_algorithm_we_do_not_speak_is_refused_by_name() {
    let statement = note().label(1, (-257_i64).into()).kid(KID).iss(ISSUER).sign(&es256()).unwrap();
    assert_eq!(refused(&statement), "algorithm-not-accepted");
}

#[test]
fn an_algorithm_of_another_curve_is_refused() {
    let statement = note().label(1, (-35_i64).into()).kid(KID).iss(ISSUER).sign(&es256()).unwrap();
    assert_eq!(refused(&statement), "signature");
}

#[test]
fn operator_keys_sign_policies_and_nothing_else() {
    assert_eq!(check(&policy_statement(), &policy()).unwrap().method(), Method::Operator);
    let kid = operator().public_key().thumbprint().to_vec();
    assert_eq!(refused(&note().kid(kid).iss(LOG_ISS).sign(&operator()).unwrap()), "issuer-unknown");
}

#[test]
fn nobody_but_the_operator_signs_policies() {
    let forged = |iss: &str, kid: Vec<u8>, signer: &dyn Signer| {
        StatementBuilder::new(policy().payload())
            .content_type("application/vnd.tabellion.policy+json")
            .kid(kid)
            .iss(iss)
            .sub(ORIGIN)
            .sign(signer)
            .unwrap()
    };
    let operators = operator().public_key().thumbprint().to_vec();
    assert_eq!(refused(&forged(ISSUER, KID.into(), &es256())), "policy-issuer");
    assert_eq!(refused(&forged(LOG_ISS, KID.into(), &es256())), "key-not-bound-to-issuer");
    assert_eq!(refused(&forged(LOG_ISS, operators, &es256())), "signature");
}
