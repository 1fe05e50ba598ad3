//! Evidence bundles: gathered from a log with witnesses, and verified with the log and the witnesses gone.

use std::fs;

use black_box::{AUDITOR_TOKEN, Log, Ran, Service};
use ed25519_dalek::SigningKey;
use scitt::{SignedStatement, Signer};
use serde_json::{Value, json};
use testkit::{
    GATEWAY, SESSION, audit_record, conversation_json, conversation_of, decision_json, gateway, outcome_json,
    recorder, verdict, verdict_json,
};
use tlog::note::{LocalKey, NoteSigner};

use crate::witnessed_logs::{until_served, witnessed};

/// Four entries of one session, at leaves 1 to 4, a verification receipt and one more entry of no session.
fn statements() -> Vec<SignedStatement> {
    let conversation = conversation_of(conversation_json(1).to_string().into_bytes(), SESSION);
    let decision = audit_record(&decision_json(SESSION, 0));
    let outcome = audit_record(&outcome_json(SESSION, 1, &decision.digest()));
    vec![
        conversation.sign(&recorder()).unwrap(),
        decision,
        outcome,
        verdict(&verdict_json()),
        testkit::vrf(1),
        testkit::opaque("nothing", &json!({ "n": 1 })),
    ]
}

fn register_all(service: &Service) -> Vec<SignedStatement> {
    let statements = statements();
    let mut connection = service.connection();
    for statement in &statements {
        assert_eq!(connection.post(statement.bytes()).status, 201);
    }
    statements
}

/// Writes `trust.toml`: the log, the gateway, and every issuer that is its own key.
fn trust(log: &Log, service: &Service) {
    fs::write(log.path("trust.toml"), "self_certified = true\n").unwrap();
    fs::write(log.path("gateway.pem"), gateway().public_key().to_spki_pem()).unwrap();
    let kid = log.tabellion(&["key", "show", "--json"]).json()["receipt"]["kid"].as_str().unwrap().to_owned();
    let pin =
        ["trust", "add", "log", "--trust", "trust.toml", "--kid", &kid, "--checkpoint-key", &log.vkey()];
    log.tabellion(&[&pin[..], &["--url", service.url()]].concat()).must_succeed();
    let issuer =
        ["trust", "add", "issuer", "--trust", "trust.toml", "--iss", GATEWAY, "--key", "gateway.pem"];
    log.tabellion(&issuer).must_succeed();
}

fn pack(log: &Log, service: &Service, arguments: &[&str]) -> Ran {
    log.write_private("auditor.token", AUDITOR_TOKEN);
    let connection = ["--url", service.url(), "--token-file", "auditor.token"];
    log.tabellion(&[&["bundle", "--json"], &connection[..], arguments].concat())
}

fn verify(log: &Log, file: &str, arguments: &[&str]) -> Ran {
    log.tabellion(&[&["verify", file, "--json"], arguments].concat())
}

#[test]
fn a_session_is_bundled_with_its_witnesses_and_verifies_with_the_log_gone() {
    let log = Log::sqlite();
    let (policy, _homes, witnesses) = witnessed(&log, 2);
    let service = log.serve();
    let statements = register_all(&service);
    until_served(&service, &policy, 7, 3);
    trust(&log, &service);
    let quorum = ["--witness-policy", "witnesses.txt"];
    let arguments = [&[SESSION, "-o", "session.bundle"], &quorum[..]].concat();
    let created = pack(&log, &service, &arguments).must_succeed().json();
    assert_eq!(
        (&created["entries"], &created["policies"], &created["tree_size"]),
        (&4.into(), &1.into(), &7.into())
    );
    assert_eq!(created["witnesses"], json!(["w1", "w2", "w3"]));
    service.stop();
    drop(witnesses);

    let verdict = verify(&log, "session.bundle", &quorum).must_succeed().json();
    let entries: Vec<_> =
        verdict["entries"].as_array().unwrap().iter().map(|entry| &entry["statement"]["entry"]).collect();
    let expected: Vec<_> = statements[..4].iter().map(|statement| statement.digest().to_string()).collect();
    assert_eq!(entries, expected.iter().collect::<Vec<_>>());
    let checks = verdict["entries"][1]["checks"].as_array().unwrap();
    let names: Vec<_> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    for name in [
        "issuer-signature",
        "content-rules",
        "inclusion",
        "receipt-signature",
        "checkpoint",
        "witnesses",
        "policy",
    ] {
        assert!(names.contains(&name), "{name}: {checks:#?}");
    }
    assert!(checks.iter().all(|check| check["state"] == "ok"), "{checks:#?}");
    assert_eq!(verdict["checks"][1]["code"], "index-not-proven", "completeness is the word of the index");
    let text = log.tabellion(&["verify", "session.bundle"]).must_succeed().stdout.clone();
    assert!(text.ends_with("verified (offline): entries 4, policies 1, of log.example/test\n"), "{text}");
    assert!(
        text.contains(
            "--    completeness          not checked: no signature shows that session \"session-1\""
        ),
        "{text}"
    );

    fs::write(log.path("nobody.toml"), "").unwrap();
    verify(&log, "session.bundle", &["--trust", "nobody.toml"]).must_fail(4, "no-trust-anchors");
    verify(&log, "session.bundle", &["--payload", "trust.toml"]).must_fail(2, "usage");
    verify(&log, "session.bundle", &["--max-age", "30d"]).must_fail(2, "usage");
    verify(&log, "session.bundle", &["--gateway-key", "gateway.pem"]).must_fail(2, "usage");

    let contents = log.tabellion(&["bundle", "show", "session.bundle", "--json"]).must_succeed().json();
    assert_eq!((&contents["verified"], &contents["selections"][0]["name"]), (&false.into(), &SESSION.into()));
    assert_eq!(contents["entries"][3]["entry_id"], expected[3]);
    let claimed =
        log.tabellion(&["bundle", "show", "session.bundle", "--keys"]).must_succeed().stdout.clone();
    assert!(claimed.starts_with("# Claimed by the bundle") && claimed.contains(GATEWAY), "{claimed}");
    log.tabellion(&["bundle", "show", "trust.toml", "--json"]).must_fail(4, "no-bundle");
}

#[test]
fn nothing_is_written_unless_all_that_was_gathered_verifies() {
    let log = Log::sqlite();
    let service = log.serve();
    let statements = register_all(&service);
    fs::write(log.path("one.cose"), statements[5].bytes()).unwrap();
    let ids: Vec<_> = statements.iter().map(|statement| statement.digest().to_string()).collect();
    fs::write(log.path("trust.toml"), "").unwrap();
    pack(&log, &service, &[&ids[0], "-o", "some.bundle"]).must_fail(4, "no-trust-anchors");
    trust(&log, &service);
    // The issuer of the last entry is none that is trusted here.
    let refused = pack(&log, &service, &[&ids[0], "one.cose", "-o", "some.bundle"]);
    refused.must_fail(4, "unknown-issuer");
    assert!(refused.stderr.contains(&ids[5]), "{refused}");
    let witness = LocalKey::cosigner("w.example".parse().unwrap(), SigningKey::from_bytes(&[7; 32])).unwrap();
    fs::write(log.path("strict.policy"), format!("witness w {}\nquorum w\n", witness.key())).unwrap();
    let strict = ["-o", "some.bundle", "--witness-policy", "strict.policy"];
    pack(&log, &service, &[&[&*ids[0]], &strict[..]].concat()).must_fail(3, "quorum-not-met");
    pack(&log, &service, &["none", "--kind", "session", "-o", "some.bundle"]).must_fail(5, "name-unknown");
    pack(&log, &service, &["did:web:none.example", "-o", "some.bundle"]).must_fail(5, "nothing-selected");
    pack(&log, &service, &[&"0".repeat(64), "-o", "some.bundle"]).must_fail(5, "entry-unknown");
    assert!(!log.path("some.bundle").exists());

    pack(&log, &service, &[&ids[0], &ids[3], "-o", "some.bundle"]).must_succeed();
    let agent = ["did:web:agent.example", "-o", "agent.bundle"];
    pack(&log, &service, &agent).must_succeed();
    service.stop();
    let verdict = verify(&log, "some.bundle", &[]).must_succeed().json();
    assert_eq!(verdict["entries"].as_array().unwrap().len(), 2);
    assert_eq!(verdict["checks"], json!([]), "entries that were named one by one are not a search");
    assert_eq!(verify(&log, "agent.bundle", &[]).must_succeed().json()["checks"][0]["name"], "selection");
}

#[test]
fn a_name_of_a_session_and_of_an_agent_is_taken_only_with_its_kind_and_a_file_is_an_entry() {
    let log = Log::sqlite();
    let service = log.serve();
    // The model of every conversation is `model-1`, which is searched for as an agent.
    let mut conversation = conversation_json(2);
    conversation["session"]["session-id"] = "model-1".into();
    let conversation = conversation_of(conversation.to_string().into_bytes(), "model-1");
    let conversation = conversation.sign(&recorder()).unwrap();
    assert_eq!(service.connection().post(conversation.bytes()).status, 201);
    trust(&log, &service);
    let named = |more: &[&str]| pack(&log, &service, &[&["model-1", "-o", "some.bundle"], more].concat());
    let selections = || {
        let shown = log.tabellion(&["bundle", "show", "some.bundle", "--json"]).must_succeed().json();
        shown["selections"].clone()
    };

    named(&[]).must_fail(2, "name-ambiguous");
    named(&["--kind", "entry"]).must_fail(2, "not-an-entry");
    assert!(!log.path("some.bundle").exists());
    for kind in ["session", "agent"] {
        named(&["--kind", kind]).must_succeed();
        assert_eq!(selections()[0]["by"], kind);
    }
    fs::write(log.path("model-1"), conversation.bytes()).unwrap();
    named(&[]).must_succeed();
    assert_eq!(selections(), json!([]), "an entry that was named by a file is not a search");
}

/// What is done to a bundle: the code that `verify` gives then.
type Tampering = (&'static str, fn(&mut Value));

const TAMPERED: &[Tampering] = &[
    ("issuer-signature-invalid", |bundle| flip(&mut bundle["entries"][0]["statement"])),
    ("receipt-root-mismatch", |bundle| flip(&mut bundle["entries"][2]["receipt"])),
    ("receipt-root-mismatch", |bundle| swap(bundle, "receipt")),
    ("tlog-proof-mismatch", |bundle| swap(bundle, "statement")),
    ("tlog-proof-mismatch", |bundle| {
        let (first, second) = ("/entries/0/proof/path", "/entries/1/proof/path");
        let other = bundle.pointer(second).unwrap().clone();
        *bundle.pointer_mut(second).unwrap() = std::mem::replace(bundle.pointer_mut(first).unwrap(), other);
    }),
    ("checkpoint-signature-invalid", |bundle| {
        let text = bundle["checkpoint"].as_str().unwrap().replacen("\n7\n", "\n8\n", 1);
        bundle["checkpoint"] = text.into();
    }),
    ("malformed-tlog-proof", |bundle| bundle["checkpoint"] = "".into()),
    ("policy-missing", |bundle| bundle["policies"] = json!([])),
    ("tlog-proof-mismatch", |bundle| flip(&mut bundle["policies"][0]["statement"])),
    ("entry-missing", |bundle| drop(bundle["entries"].as_array_mut().unwrap().remove(3))),
    ("malformed-bundle", |bundle| drop(bundle["entries"][0].as_object_mut().unwrap().remove("receipt"))),
    ("malformed-bundle", |bundle| bundle["entries"].as_array_mut().unwrap().swap(0, 1)),
];

/// Changes one bit in the last byte of a byte string, whose text may not end in unused bits.
fn flip(text: &mut Value) {
    let encoding = data_encoding::BASE64URL_NOPAD;
    let mut bytes = encoding.decode(text.as_str().unwrap().as_bytes()).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    *text = encoding.encode(&bytes).into();
}

fn swap(bundle: &mut Value, member: &str) {
    let other = bundle["entries"][1][member].clone();
    bundle["entries"][1][member] = std::mem::replace(&mut bundle["entries"][0][member], other);
}

#[test]
fn whatever_member_of_a_bundle_is_changed_dropped_or_swapped_is_noticed() {
    let log = Log::sqlite();
    let service = log.serve();
    register_all(&service);
    trust(&log, &service);
    pack(&log, &service, &[SESSION, "-o", "session.bundle"]).must_succeed();
    service.stop();
    let sound = fs::read(log.path("session.bundle")).unwrap();
    let sound: Value = serde_json::from_slice(&sound).unwrap();
    for (code, tamper) in TAMPERED {
        let mut bundle = sound.clone();
        tamper(&mut bundle);
        // The members are sorted and all text is ASCII: this is the canonical form.
        fs::write(log.path("tampered.bundle"), bundle.to_string()).unwrap();
        verify(&log, "tampered.bundle", &[]).must_fail(3, code);
    }
    let mut claims = sound.clone();
    claims["claims"]["trust"] = "self_certified = true\n".into();
    fs::write(log.path("claims.bundle"), claims.to_string()).unwrap();
    verify(&log, "claims.bundle", &[]).must_succeed();
    fs::write(log.path("newer.bundle"), sound.to_string().replacen("\"bundle\":1", "\"bundle\":2", 1))
        .unwrap();
    verify(&log, "newer.bundle", &[]).must_fail(4, "malformed-bundle");
}
