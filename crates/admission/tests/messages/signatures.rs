//! Whose message it is: readings V-19 to V-22.

use admission::authenticated::{Authenticated, Signed};
use admission::signature::{AgentKey, Demands, Freshness, Holder, Keyring, UnusableKey};
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use jose::jcs;
use jose::jwk::PublicJwk;
use scitt::{Algorithm, Signer, SigningKey};
use serde_json::{Value, json};
use testkit::agent::signed_under;
use vap::message::slot::{self, Received};
use vap::reason::Reason;

use crate::sample::{
    AGENT, GATEWAY, amendment, carrier_of, commitment, ed25519, header, intent, now, p256, received, with,
};

fn demands() -> Demands {
    Demands {
        signed: false,
        amendments_signed: true,
        freshness: Freshness::Optional,
        audience: GATEWAY.to_owned(),
    }
}

fn key_of(holder: Holder, key: &SigningKey) -> AgentKey {
    AgentKey::new(holder, &key.public_key().to_jwk(), None, None).unwrap()
}

fn agent(id: &str, key: &SigningKey) -> AgentKey {
    key_of(Holder::Agent(id.to_owned()), key)
}

fn ring(keys: Vec<AgentKey>) -> Keyring {
    Keyring::new(keys).unwrap()
}

fn check(
    received: &Received,
    agent_id: &str,
    keyring: &Keyring,
    demands: &Demands,
    now: Timestamp,
) -> Result<Option<Signed>, Reason> {
    Authenticated::new(received.clone(), keyring).signer(agent_id, keyring, demands, now)
}

fn told(message: &Value, keyring: &Keyring, demands: &Demands) -> Result<Option<Signed>, Reason> {
    check(&received(message), AGENT, keyring, demands, now())
}

/// The commitment signed by the agent, under a changed header.
fn fares(changes: &[(&str, Value)], demands: &Demands) -> Result<Option<Signed>, Reason> {
    let key = ed25519(1);
    told(
        &signed_under(&commitment(), &key, &with(header(&key), changes)),
        &ring(vec![agent(AGENT, &key)]),
        demands,
    )
}

#[test]
fn v_20_a_signature_holds_under_a_key_of_that_agent() {
    for key in [ed25519(1), p256()] {
        let ring = ring(vec![agent(AGENT, &key)]);
        for message in [commitment(), intent(), amendment("sha256:00")] {
            let held =
                told(&signed_under(&message, &key, &header(&key)), &ring, &demands()).unwrap().unwrap();
            assert_eq!(
                (held.holder, held.thumbprint),
                (Holder::Agent(AGENT.to_owned()), key.public_key().jwk_thumbprint())
            );
        }
    }
}

#[test]
fn v_20_attached_is_as_good_as_detached_if_the_payload_is_the_message() {
    let key = ed25519(1);
    let ring = ring(vec![agent(AGENT, &key)]);
    let detached = signed_under(&commitment(), &key, &header(&key));
    let attach = |payload: &[u8]| {
        let jws = detached["signature"].as_str().unwrap();
        let attached = jws.replace("..", &format!(".{}.", BASE64URL_NOPAD.encode(payload)));
        with(detached.clone(), &[("/signature", attached.into())])
    };
    assert!(told(&attach(&jcs::canonical(&commitment())), &ring, &demands()).is_ok());
    let pretty = serde_json::to_vec_pretty(&commitment()).unwrap();
    assert_eq!(told(&attach(&pretty), &ring, &demands()), Err(Reason::InvalidSignature));
}

#[test]
fn v_20_the_spelling_of_a_message_is_not_signed_but_every_value_is() {
    let key = ed25519(1);
    let ring = ring(vec![agent(AGENT, &key)]);
    let message = signed_under(&commitment(), &key, &header(&key));
    let pretty = serde_json::to_string_pretty(&message)
        .unwrap()
        .replace("1000", "1e3")
        .replace("Answer", "\\u0041nswer");
    let respelt = slot::read(Some(&pretty), None, carrier_of(&message)).unwrap().unwrap();
    assert!(check(&respelt, AGENT, &ring, &demands(), now()).unwrap().is_some());
    for change in [
        ("/goal", json!("Answer ticket SUP-9932")),
        ("/budget/max_calls", json!(21)),
        ("/scope/tools_allow", json!(["crm.*", "mail.send", "*"])),
        ("/scope/tools_deny", Value::Null),
        ("/session_id", json!("s-2")),
        ("/principal/delegated_by", json!("did:example:other")),
    ] {
        let changed = with(message.clone(), std::slice::from_ref(&change));
        assert_eq!(told(&changed, &ring, &demands()), Err(Reason::InvalidSignature), "{change:?}");
    }
}

#[test]
fn v_20_a_key_that_a_message_brings_along_is_nobodys() {
    let (stranger, victim) = (ed25519(2), ed25519(1));
    let jwk = stranger.public_key().to_jwk().to_value();
    let ring = ring(vec![agent(AGENT, &victim)]);
    for member in ["jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256"] {
        let header = with(header(&stranger), &[(&format!("/{member}"), jwk.clone())]);
        assert_eq!(
            told(&signed_under(&commitment(), &stranger, &header), &ring, &demands()),
            Err(Reason::InvalidSignature)
        );
    }
    assert_eq!(
        told(&signed_under(&commitment(), &stranger, &header(&stranger)), &ring, &demands()),
        Err(Reason::UnknownKey)
    );
    let borrowed_name = header(&victim);
    let told = told(&signed_under(&commitment(), &stranger, &borrowed_name), &ring, &demands());
    assert_eq!(told, Err(Reason::InvalidSignature));
}

#[test]
fn v_20_no_header_changes_the_rules() {
    for change in [
        ("/alg", json!("none")),
        ("/alg", json!("HS256")),
        ("/alg", json!("ES256")),
        ("/alg", Value::Null),
        ("/kid", Value::Null),
        ("/crit", json!(["exp"])),
        ("/b64", json!(false)),
        ("/zip", json!("DEF")),
        ("/nonce", json!("n")),
        ("/cty", json!("json")),
        ("/req", json!("sha256:00")),
        ("/jku", json!("http://127.0.0.1:9/keys")),
        ("/x5u", json!("http://127.0.0.1:9/chain")),
    ] {
        assert_eq!(
            fares(std::slice::from_ref(&change), &demands()),
            Err(Reason::InvalidSignature),
            "{change:?}"
        );
    }
    for change in [("/alg", json!("Ed25519")), ("/typ", json!("vap+jws"))] {
        assert!(fares(&[change], &demands()).is_ok());
    }
}

#[test]
fn v_20_a_public_key_is_no_secret_of_an_hmac() {
    let key = ed25519(1);
    let input = jose::jws::signing_input(
        &with(header(&key), &[("/alg", json!("HS256"))]),
        &jcs::canonical(&commitment()),
    );
    let secret = ::ring::hmac::Key::new(::ring::hmac::HMAC_SHA256, key.public_key().as_bytes());
    let jws = jose::jws::detached(&input, ::ring::hmac::sign(&secret, &input).as_ref());
    let forged = with(commitment(), &[("/signature", jws.into())]);
    assert_eq!(told(&forged, &ring(vec![agent(AGENT, &key)]), &demands()), Err(Reason::InvalidSignature));
}

#[test]
fn v_20_another_agents_key_does_not_sign_for_this_one() {
    let (own, other) = (ed25519(1), ed25519(2));
    let ring = ring(vec![agent(AGENT, &own), agent("did:example:b", &other)]);
    for message in [commitment(), intent(), amendment("sha256:00")] {
        let message = signed_under(&message, &other, &header(&other));
        assert_eq!(told(&message, &ring, &demands()), Err(Reason::KeyNotAuthorised));
    }
}

#[test]
fn v_20_a_key_counts_in_its_time_only() {
    let key = ed25519(1);
    let message = received(&signed_under(&commitment(), &key, &header(&key)));
    let limited = |begin: Option<&str>, end: Option<&str>| {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let holder = Holder::Agent(AGENT.to_owned());
        AgentKey::new(holder, &key.public_key().to_jwk(), begin.map(time), end.map(time))
    };
    for (begin, end, counts) in [
        (Some("2026-11-22T09:00:00Z"), None, true),
        (Some("2026-11-22T09:00:01Z"), None, false),
        (None, Some("2026-11-22T09:00:01Z"), true),
        (None, Some("2026-11-22T09:00:00Z"), false),
    ] {
        let ring = ring(vec![limited(begin, end).unwrap()]);
        let told = check(&message, AGENT, &ring, &demands(), now()).map(|_| ());
        assert_eq!(told, if counts { Ok(()) } else { Err(Reason::KeyNotValidNow) }, "{begin:?} {end:?}");
    }
    let never = limited(Some("2026-11-22T09:00:00Z"), Some("2026-11-22T09:00:00Z"));
    assert_eq!(never.unwrap_err(), UnusableKey::Validity);
}

#[test]
fn v_20_a_key_has_the_name_it_was_given_and_its_thumbprint() {
    let key = ed25519(1);
    let mut jwk = key.public_key().to_jwk().to_value();
    jwk["kid"] = "2026-a".into();
    let jwk = PublicJwk::from_value(&jwk).unwrap();
    let ring = ring(vec![AgentKey::new(Holder::Agent(AGENT.to_owned()), &jwk, None, None).unwrap()]);
    for kid in ["2026-a", &key.public_key().jwk_thumbprint()] {
        let message = signed_under(&commitment(), &key, &json!({ "alg": "EdDSA", "kid": kid }));
        assert!(told(&message, &ring, &demands()).unwrap().is_some());
    }
    let message = signed_under(&commitment(), &key, &json!({ "alg": "EdDSA", "kid": "2026-b" }));
    assert_eq!(told(&message, &ring, &demands()), Err(Reason::UnknownKey));
}

#[test]
fn v_20_a_ring_holds_no_key_that_could_not_sign_and_no_name_twice() {
    let holder = || Holder::Agent(AGENT.to_owned());
    let jwk = |key: &SigningKey, alg: &str, kid: &str| {
        let mut jwk = key.public_key().to_jwk().to_value();
        (jwk["alg"], jwk["kid"]) = (alg.into(), kid.into());
        PublicJwk::from_value(&jwk).unwrap()
    };
    let p384 = SigningKey::generate(Algorithm::Es384).unwrap().public_key().to_jwk();
    assert!(matches!(AgentKey::new(holder(), &p384, None, None), Err(UnusableKey::Curve(_))));
    let mislabelled = AgentKey::new(holder(), &jwk(&ed25519(1), "ES256", "k"), None, None);
    assert!(matches!(mislabelled, Err(UnusableKey::Algorithm(_))));
    let named = |seed| AgentKey::new(holder(), &jwk(&ed25519(seed), "EdDSA", "k"), None, None).unwrap();
    assert_eq!(
        Keyring::new(vec![named(1), named(2)]).unwrap_err(),
        UnusableKey::SecondOfThatName("k".to_owned())
    );
    let other = AgentKey::new(Holder::Approver, &jwk(&ed25519(3), "Ed25519", "k"), None, None).unwrap();
    assert!(Keyring::new(vec![named(1), other]).is_ok());
}

#[test]
fn v_19_an_amendment_is_signed_whether_or_not_the_commitment_was() {
    assert_eq!(told(&commitment(), &Keyring::default(), &demands()), Ok(None));
    assert_eq!(told(&intent(), &Keyring::default(), &demands()), Ok(None));
    assert_eq!(
        told(&amendment("sha256:00"), &Keyring::default(), &demands()),
        Err(Reason::SignatureRequired)
    );
    let lenient = Demands { amendments_signed: false, ..demands() };
    assert_eq!(told(&amendment("sha256:00"), &Keyring::default(), &lenient), Ok(None));
    let strict = Demands { signed: true, amendments_signed: false, ..demands() };
    for message in [commitment(), intent(), amendment("sha256:00")] {
        assert_eq!(told(&message, &Keyring::default(), &strict), Err(Reason::SignatureRequired));
    }
}

#[test]
fn v_19_an_approver_signs_amendments_and_nothing_else() {
    let approver = ed25519(9);
    let ring = ring(vec![key_of(Holder::Approver, &approver)]);
    let held = told(&signed_under(&amendment("sha256:00"), &approver, &header(&approver)), &ring, &demands());
    assert_eq!(held.unwrap().unwrap().holder, Holder::Approver);
    for message in [commitment(), intent()] {
        let message = signed_under(&message, &approver, &header(&approver));
        assert_eq!(told(&message, &ring, &demands()), Err(Reason::KeyNotAuthorised));
    }
}

#[test]
fn v_19_a_junk_signature_is_never_ignored() {
    let key = ed25519(1);
    let ring = ring(vec![agent(AGENT, &key)]);
    for junk in ["", "junk", "a.b.c", "..", "e30..AA"] {
        for message in [commitment(), intent(), amendment("sha256:00")] {
            let message = with(message, &[("/signature", junk.into())]);
            assert_eq!(told(&message, &ring, &demands()), Err(Reason::InvalidSignature), "{junk}");
        }
    }
}

#[test]
fn v_21_what_a_signature_says_about_itself_counts_whenever_it_is_there() {
    let at = now().as_second();
    for (change, expected) in [
        (("/iat", json!(at)), Ok(())),
        (("/iat", json!(at - 60)), Ok(())),
        (("/iat", json!(at + 60)), Ok(())),
        (("/iat", json!(at - 61)), Err(Reason::Stale)),
        (("/iat", json!(at + 61)), Err(Reason::Stale)),
        (("/iat", json!(0)), Err(Reason::Stale)),
        (("/aud", json!(GATEWAY)), Ok(())),
        (("/aud", json!("https://gw.example/")), Err(Reason::WrongAudience)),
        (("/aud", json!([GATEWAY])), Err(Reason::InvalidSignature)),
        (("/iat", json!("now")), Err(Reason::InvalidSignature)),
    ] {
        assert_eq!(fares(std::slice::from_ref(&change), &demands()).map(|_| ()), expected, "{change:?}");
    }
    assert_eq!(fares(&[("/jti", json!("j-1"))], &demands()).unwrap().unwrap().jti.as_deref(), Some("j-1"));
}

#[test]
fn v_21_a_route_may_demand_all_three() {
    let fresh = Demands { freshness: Freshness::Required, ..demands() };
    let all = [("/iat", json!(now().as_second())), ("/jti", json!("j-1")), ("/aud", json!(GATEWAY))];
    assert!(fares(&all, &fresh).is_ok());
    for left_out in 0..all.len() {
        let some: Vec<_> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != left_out)
            .map(|(_, member)| member.clone())
            .collect();
        assert_eq!(fares(&some, &fresh), Err(Reason::FreshnessRequired));
    }
    assert_eq!(told(&commitment(), &Keyring::default(), &fresh), Ok(None), "freshness is of signatures");
}

#[test]
fn v_22_a_signed_message_with_a_number_that_no_double_holds_is_denied() {
    let key = ed25519(1);
    let ring = ring(vec![agent(AGENT, &key)]);
    let message = signed_under(&intent(), &key, &header(&key));
    let read = |number: &str| -> Received {
        let text = message.to_string().replace("9931}", &format!("{number}}}"));
        slot::read(Some(&text), None, carrier_of(&message)).unwrap().unwrap()
    };
    for number in ["9007199254740993", "-0", "1e-400", "1e400", "0.1000000000000000055"] {
        assert_eq!(
            check(&read(number), AGENT, &ring, &demands(), now()),
            Err(Reason::NotCanonical),
            "{number}"
        );
    }
    assert!(check(&read("9931.0"), AGENT, &ring, &demands(), now()).is_ok());
    let unsigned = intent().to_string().replace("9931}", "9007199254740993}");
    let unsigned = slot::read(Some(&unsigned), None, carrier_of(&message)).unwrap().unwrap();
    assert_eq!(check(&unsigned, AGENT, &ring, &demands(), now()), Ok(None));
}

#[test]
fn a_key_that_came_into_force_after_the_message_was_read_is_tried_at_the_decision() {
    let key = ed25519(1);
    let message = received(&signed_under(&commitment(), &key, &header(&key)));
    let read = Authenticated::new(message, &ring(vec![]));
    let signer = |keys| read.signer(AGENT, &ring(keys), &demands(), now());
    assert_eq!(signer(vec![]), Err(Reason::UnknownKey));
    assert!(signer(vec![agent(AGENT, &key)]).unwrap().is_some());
    let named = ("/kid", key.public_key().jwk_thumbprint().into());
    let forged = with(ed25519(2).public_key().to_jwk().to_value(), &[named]);
    let holder = Holder::Agent(AGENT.to_owned());
    let forger = AgentKey::new(holder, &PublicJwk::from_value(&forged).unwrap(), None, None);
    assert_eq!(signer(vec![forger.unwrap()]), Err(Reason::InvalidSignature));
}

#[test]
fn a_key_that_was_taken_away_after_the_message_was_read_does_not_count() {
    let key = ed25519(1);
    let message = received(&signed_under(&commitment(), &key, &header(&key)));
    let read = Authenticated::new(message, &ring(vec![agent(AGENT, &key)]));
    assert_eq!(read.signer(AGENT, &ring(vec![]), &demands(), now()), Err(Reason::UnknownKey));
}
