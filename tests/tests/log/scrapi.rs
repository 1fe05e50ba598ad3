//! SCRAPI -11 on the wire: tests/transcripts/scrapi.txt, and what takes time: 202, 204 and then 200.

use std::collections::BTreeMap;
use std::time::Duration;

use black_box::transcript::{Cast, play};
use black_box::{Answer, Log, Service, on_both_databases};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use rustix::process::Signal;
use scitt::{CoseKey, HashEnvelope, KeySet, Receipt, SignedStatement, StatementBuilder};
use serde_json::json;

/// The order of P-256's group.
const P256_ORDER: &[u8] = b"ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
/// PS256.
const UNSPOKEN: &[u8] = &[0x01, 0x38, 0x24];
/// Just over what a head may have.
const LONG: usize = 33 << 10;

on_both_databases! {
    fn the_transcript_of_scrapi_holds(log: Log) {
        let service = log.serve();
        let cast = Company::new(&service);
        play("scrapi.txt", &mut service.connection(), &cast);
        service.stop();
        log.must_be_sound();
    }
}

#[test]
fn accepted_then_running_then_resolved_all_at_one_location() {
    let log = Log::postgres();
    log.configure("answer_within_ms = 1000");
    let leader = log.serve();
    let follower = log.serve();
    leader.signal(Signal::STOP);
    let statement = log.statement();
    let mut connection = follower.connection();
    let accepted = connection.post(statement.bytes());
    assert_eq!((accepted.status, accepted.body.len()), (202, 0), "{accepted:?}");
    let location = accepted.must_have("location").to_owned();
    accepted.must_say_when_to_come_back();
    let path = location.strip_prefix(follower.url()).unwrap();
    for _ in 0..2 {
        let running = connection.get(path);
        assert_eq!((running.status, running.body.len()), (204, 0), "{running:?}");
        running.must_say_when_to_come_back();
        assert_eq!(running.header("cache-control"), Some("no-store"));
        assert_eq!(running.header("content-type"), None);
    }
    leader.signal(Signal::CONT);
    let resolved = (0..200).map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        connection.get(path)
    });
    let resolved =
        resolved.take_while(|answer| matches!(answer.status, 200 | 204)).find(|answer| answer.status == 200);
    let resolved = resolved.expect("it is registered in the end");
    assert_eq!(resolved.header("location"), Some(location.as_str()));
    let again = connection.post(statement.bytes());
    assert_eq!((again.status, again.header("location")), (201, Some(location.as_str())));
}

on_both_databases! {
    fn a_registration_that_is_repeated_costs_no_check_and_no_batch(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let statement = log.statement();
        let first = connection.post(statement.bytes());
        assert_eq!(first.status, 201);
        log.register(&service, 3);
        let counts = || {
            ["tabellion_register_duration_seconds_count{stage=\"verify\"}", "tabellion_sequence_batch_entries_count"]
                .map(|name| service.metric(name))
        };
        let before = counts();
        let again = connection.post(statement.bytes());
        assert_eq!((again.status, again.header("location")), (201, first.header("location")));
        assert_eq!(counts(), before);
        assert_eq!(service.metric("tabellion_register_total{result=\"duplicate\"}"), 1.0);
        let fresh = connection.get(&format!("/entries/{}", statement.digest()));
        assert_eq!(again.body, fresh.body, "the receipt is under the newest tree");
    }
}

/// Everybody that the transcript names.
struct Company {
    bodies: BTreeMap<&'static str, Vec<u8>>,
    keys: KeySet,
    url: String,
}

impl Company {
    fn new(service: &Service) -> Self {
        let keys = KeySet::parse(&service.connection().get("/.well-known/scitt-keys").body).unwrap();
        Self { bodies: bodies(), keys, url: service.url().to_owned() }
    }

    fn statement(&self, name: &str) -> SignedStatement {
        SignedStatement::parse(self.bodies[name].clone()).unwrap()
    }

    fn kid(&self) -> &[u8] {
        self.keys.keys()[0].kid.as_deref().unwrap()
    }

    fn check_receipt(&self, name: &str, bytes: &[u8]) {
        let receipt = Receipt::parse(bytes.to_vec()).unwrap();
        let claims = receipt.header().claims().unwrap();
        assert_eq!((claims.iss(), claims.sub()), (Some(testkit::LOG_ISS), Some(testkit::ORIGIN)));
        assert_eq!(receipt.header().kid().map(AsRef::as_ref), Some(self.kid()));
        assert_eq!(receipt.attached_root(), None, "the payload is detached (RFC 9942)");
        let leaf = self.statement(name).digest().leaf_hash();
        receipt.verify_inclusion(&leaf, &self.keys.keys()[0].key).unwrap();
    }
}

impl Cast for Company {
    fn text(&self, name: &str) -> String {
        match name {
            "url" => self.url.clone(),
            "kid" => BASE64URL_NOPAD.encode(self.kid()),
            "kid-in-hex" => HEXLOWER.encode(self.kid()),
            "long" => "a".repeat(LONG),
            "ONE" => self.statement("one").digest().to_string().to_uppercase(),
            "end of one" => self.bodies["one"].len().to_string(),
            entry => self.statement(entry).digest().to_string(),
        }
    }

    fn body(&self, name: &str) -> Vec<u8> {
        self.bodies.get(name).unwrap_or_else(|| panic!("nobody is called {name:?}")).clone()
    }

    fn check_body(&self, expected: &str, answer: &Answer) {
        match expected.split_once(" of ") {
            Some(("receipt", name)) => self.check_receipt(name, &answer.body),
            Some(("bytes", name)) => assert_eq!(answer.body, self.bodies[name]),
            _ => match expected {
                "key set" => assert_eq!(KeySet::parse(&answer.body).unwrap(), self.keys),
                "key" => assert_eq!(CoseKey::parse(&answer.body).unwrap(), self.keys.keys()[0]),
                "JSON" => assert!(answer.json().is_object()),
                "transparent one" => {
                    let transparent = SignedStatement::parse(answer.body.clone()).unwrap();
                    assert_eq!(transparent.digest(), self.statement("one").digest());
                    self.check_receipt("one", &transparent.receipts()[0]);
                }
                other => panic!("nothing is known of {other:?}"),
            },
        }
    }
}

fn bodies() -> BTreeMap<&'static str, Vec<u8>> {
    let one = opaque("one");
    let more =
        ["one", "two", "three", "four", "five", "six"].map(|name| (name, opaque(name).bytes().to_vec()));
    let mut bodies = BTreeMap::from(more);
    bodies.insert("one", one.bytes().to_vec());
    bodies.extend(malformed(&one));
    bodies.extend(refused(&one));
    let digest =
        HEXLOWER.decode(b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").unwrap();
    let envelope = HashEnvelope {
        algorithm: -16,
        preimage_content_type: Some("application/json".into()),
        location: None,
    };
    let envelope = named(digest).hash_envelope(&envelope);
    bodies.insert("hash envelope", sign(envelope));
    bodies
}

fn malformed(one: &SignedStatement) -> Vec<(&'static str, Vec<u8>)> {
    let whole = one.bytes().to_vec();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        bytes
    };
    vec![
        ("nothing", vec![]),
        ("text", b"hello".to_vec()),
        ("untagged", whole[1..].to_vec()),
        ("mac", changed(&|bytes| bytes[0] = 0xd1)),
        ("one, with a byte more", changed(&|bytes| bytes.push(0))),
        ("one, cut short", whole[..whole.len() - 1].to_vec()),
        ("deep", [&[0xd2, 0x84, 0x40, 0xa0][..], &vec![0x81; 100_000]].concat()),
        ("label twice", label_twice()),
        ("too large", vec![0; (8 << 20) + 1]),
    ]
}

/// Protected `{1: -7, 1: -7}`.
fn label_twice() -> Vec<u8> {
    [&[0xd2, 0x84, 0x45, 0xa2, 0x01, 0x26, 0x01, 0x26, 0xa0, 0x41, 0x00, 0x58, 0x40][..], &[0; 64]].concat()
}

fn refused(one: &SignedStatement) -> Vec<(&'static str, Vec<u8>)> {
    let stranger =
        testkit::opaque_with(&testkit::es256(), "https://stranger.example", b"key-1", "x", &json!({}));
    let other_key = testkit::opaque_with(&testkit::es384(), testkit::ISSUER, b"key-1", "x", &json!({}));
    let receipt = b"\xd2\x84\x40\xa0\xf6\x40".to_vec();
    vec![
        ("one, transparent", scitt::transparent::attach(one.bytes(), &[receipt]).unwrap()),
        ("of a stranger", stranger.bytes().to_vec()),
        ("with another key", other_key.bytes().to_vec()),
        ("tampered", tampered(one)),
        ("twin of one", twin(one)),
        ("signed with PS256", with_unspoken_algorithm(one)),
        ("detached", sign(named(b"{}".to_vec()).content_type("application/json").detached())),
        ("an image", sign(named(b"png".to_vec()).content_type("image/png"))),
        (
            "without issuer",
            sign(StatementBuilder::new("{}").content_type("application/json").kid("key-1").sub("x")),
        ),
    ]
}

fn opaque(name: &str) -> SignedStatement {
    testkit::opaque(name, &json!({ "name": name }))
}

/// Of the known issuer; the content type is still to be said.
fn named(payload: Vec<u8>) -> StatementBuilder {
    StatementBuilder::new(payload).kid(testkit::KID).iss(testkit::ISSUER).sub("thing")
}

fn sign(statement: StatementBuilder) -> Vec<u8> {
    statement.sign(&testkit::es256()).unwrap().bytes().to_vec()
}

fn tampered(one: &SignedStatement) -> Vec<u8> {
    let mut bytes = one.bytes().to_vec();
    let at = bytes.windows(6).position(|six| six == b"{\"name").unwrap();
    bytes[at + 2] ^= 1;
    bytes
}

fn with_unspoken_algorithm(one: &SignedStatement) -> Vec<u8> {
    let mut bytes = one.bytes().to_vec();
    let at = bytes.windows(2).position(|two| two == [0x01, 0x26]).unwrap();
    bytes.splice(at..at + 2, UNSPOKEN.iter().copied());
    bytes[3] += 1; // The length of the protected header, in its one-byte form.
    bytes
}

/// The same signature with `n - s` in place of `s`, which verifies as well.
fn twin(one: &SignedStatement) -> Vec<u8> {
    let order = HEXLOWER.decode(P256_ORDER).unwrap();
    let mut bytes = one.bytes().to_vec();
    let s = bytes.len() - order.len();
    let mut borrow = 0;
    for place in (0..order.len()).rev() {
        let digit = i16::from(order[place]) - i16::from(bytes[s + place]) - borrow;
        borrow = i16::from(digit < 0);
        bytes[s + place] = digit.rem_euclid(256) as u8;
    }
    bytes
}
