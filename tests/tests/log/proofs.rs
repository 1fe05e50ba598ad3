//! Proofs and checkpoints from the command line: fetched, verified before they are handed over, and verified again with the
//! service gone.

use std::fs;
use std::time::Duration;

use black_box::{FaultyService, Log, Ran, Service, WitnessHome, until};
use ed25519_dalek::SigningKey;
use scitt::media::RECEIPT;
use serde_json::Value;
use tlog::cosignature::cosign;
use tlog::note::{LocalKey, Note, NoteSigner};

/// A log with some entries, of which `one.cose` is one, and `trust.toml` that believes it.
fn grown(log: &Log) -> Service {
    let service = log.serve();
    let mut connection = service.connection();
    for n in 0..6 {
        let statement = log.statement();
        if n == 2 {
            fs::write(log.path("one.cose"), statement.bytes()).unwrap();
        }
        assert_eq!(connection.post(statement.bytes()).status, 201);
    }
    let kid = log.tabellion(&["key", "show", "--json"]).json()["receipt"]["kid"].as_str().unwrap().to_owned();
    let vkey = vkey(log);
    let flags = ["trust", "add", "log", "--trust", "trust.toml", "--kid", &kid, "--checkpoint-key", &vkey];
    log.tabellion(&[&flags[..], &["--url", service.url()]].concat()).must_succeed();
    service
}

fn vkey(log: &Log) -> String {
    let pem = fs::read_to_string(log.path("keys/checkpoint.pem")).unwrap();
    LocalKey::from_pkcs8_pem(testkit::ORIGIN.parse().unwrap(), &pem).unwrap().key().to_string()
}

/// Runs a command with the service's URL and the trust file.
fn ask(log: &Log, service: &Service, arguments: &[&str]) -> Ran {
    log.tabellion(&[arguments, &["--url", service.url(), "--trust", "trust.toml", "--json"]].concat())
}

fn offline(log: &Log, arguments: &[&str]) -> Ran {
    log.tabellion(&[arguments, &["--trust", "trust.toml", "--json"]].concat())
}

/// A run that must fail, with this exit code and error code.
#[track_caller]
fn expect(ran: &Ran, exit: i32, code: &str) {
    assert_eq!(ran.code, Some(exit), "{ran}");
    let told = |line: &str| -> Option<Value> { serde_json::from_str(line).ok() };
    let error = ran.stderr.lines().last().and_then(told).map(|error| error["error"]["code"].clone());
    let reason = told(&ran.stdout).map(|verdict| verdict["reason"].clone());
    assert!(error == Some(code.into()) || reason == Some(code.into()), "{code}: {ran}");
}

fn witness(number: u8) -> LocalKey {
    let secret = SigningKey::from_bytes(&[number; 32]);
    LocalKey::cosigner(format!("w{number}.example").parse().unwrap(), secret).unwrap()
}

fn policy(log: &Log) {
    let witnesses: String = (1..=3).map(|n| format!("witness w{n} {}\n", witness(n).key())).collect();
    fs::write(log.path("witnesses.policy"), format!("{witnesses}group two 2 w1 w2 w3\nquorum two\n"))
        .unwrap();
}

/// Adds the lines of these witnesses to the note that a file ends with.
fn cosigned(log: &Log, file: &str, by: &[u8], to: &str) {
    let text = fs::read_to_string(log.path(file)).unwrap();
    // A tlog-proof ends with its checkpoint.
    let note = text.rfind(&format!("{}\n", testkit::ORIGIN)).map_or(&*text, |at| &text[at..]);
    let note = Note::parse(note.as_bytes()).unwrap();
    let lines = by.iter().map(|n| cosign(&witness(*n), note.text(), 1_700_000_000 + u64::from(*n)).unwrap());
    let lines: String = lines.map(|line| line.to_string()).collect();
    fs::write(log.path(to), format!("{text}{lines}")).unwrap();
}

#[test]
fn a_checkpoint_is_handed_over_only_if_the_log_signed_it() {
    let log = Log::sqlite();
    let service = grown(&log);
    ask(&log, &service, &["checkpoint", "get", "-o", "head"]).must_succeed();
    let shown = offline(&log, &["checkpoint", "verify", "head"]).must_succeed().json();
    assert_eq!(
        (&shown["checkpoint"]["tree_size"], &shown["checkpoint"]["origin"]),
        (&7.into(), &testkit::ORIGIN.into())
    );
    let url = ["--url", service.url()];
    let (vkey, stranger) = (vkey(&log), witness(9));
    let by_key = ["checkpoint", "get", "--key", &vkey, "-o", "by-key"];
    log.tabellion(&[&by_key[..], &url].concat()).must_succeed();
    assert_eq!(fs::read(log.path("by-key")).unwrap(), fs::read(log.path("head")).unwrap());

    fs::write(log.path("nobody.toml"), "").unwrap();
    let nobody = ["--trust", "nobody.toml", "--json"];
    let refused = log.tabellion(&[&["checkpoint", "get", "-o", "unknown"], &nobody[..], &url].concat());
    expect(&refused, 4, "unknown-checkpoint-key");
    assert!(!log.path("unknown").exists());
    log.tabellion(&[&["checkpoint", "get", "--no-verify", "-o", "unknown"][..], &url].concat())
        .must_succeed();
    let key = stranger.key().to_string();
    let by_witness = ["checkpoint", "verify", "unknown", "--key", &key];
    let of_a_witness = log.tabellion(&[&by_witness[..], &nobody].concat());
    expect(&of_a_witness, 4, "unknown-checkpoint-key");

    let text = fs::read_to_string(log.path("head")).unwrap();
    fs::write(log.path("changed"), text.replacen("\n7\n", "\n8\n", 1)).unwrap();
    expect(&offline(&log, &["checkpoint", "verify", "changed"]), 3, "checkpoint-signature-invalid");
    fs::write(log.path("changed"), "nonsense").unwrap();
    expect(&offline(&log, &["checkpoint", "verify", "changed"]), 4, "no-checkpoint");
    fs::write(log.path("changed"), text.replacen("\n7\n", "\nseven\n", 1)).unwrap();
    expect(&offline(&log, &["checkpoint", "verify", "changed"]), 3, "malformed-checkpoint");

    policy(&log);
    let quorum = |file: &str| offline(&log, &["checkpoint", "verify", file, "--policy", "witnesses.policy"]);
    expect(&quorum("head"), 3, "quorum-not-met");
    cosigned(&log, "head", &[1, 3], "cosigned");
    let verdict = quorum("cosigned").must_succeed().json();
    let cosigners = verdict["checkpoint"]["cosigned"].as_array().unwrap().clone();
    assert_eq!(cosigners.iter().map(|by| by["witness"].as_str().unwrap()).collect::<Vec<_>>(), ["w1", "w3"]);
    service.stop();
}

#[test]
fn a_proof_of_inclusion_is_verified_in_every_form() {
    let log = Log::sqlite();
    let service = grown(&log);
    let inclusion = |arguments: &[&str]| ask(&log, &service, &[&["proof", "inclusion"], arguments].concat());
    let view = inclusion(&["one.cose", "--verify"]).must_succeed().json();
    assert_eq!((&view["index"], &view["tree_size"]), (&3.into(), &7.into()));
    assert_eq!(inclusion(&["3"]).must_succeed().json(), view, "an entry by its leaf");
    assert_eq!(inclusion(&["one.cose", "--size", "5", "--verify"]).must_succeed().json()["tree_size"], 5);
    inclusion(&["one.cose", "--form", "receipt", "--verify", "-o", "one.receipt"]).must_succeed();
    inclusion(&["one.cose", "--form", "tlog-proof", "--verify", "-o", "one.tlog-proof"]).must_succeed();
    expect(&inclusion(&["17"]), 6, "proof-none");
    expect(&inclusion(&[&"0".repeat(64)]), 5, "entry-unknown");

    // Whoever trusts another log gets nothing.
    fs::write(log.path("nobody.toml"), "").unwrap();
    let stranger =
        ["one.cose", "--form", "tlog-proof", "--verify", "-o", "never", "--json", "--trust", "nobody.toml"];
    let refused =
        log.tabellion(&[&["proof", "inclusion"], &stranger[..], &["--url", service.url()]].concat());
    expect(&refused, 4, "unknown-checkpoint-key");
    assert!(!log.path("never").exists());
    service.stop();
    offline(&log, &["receipt", "verify", "one.receipt", "--statement", "one.cose"]).must_succeed();
}

#[test]
fn a_proof_in_json_is_verified_with_every_member() {
    let log = Log::sqlite();
    let service = grown(&log);
    let verified =
        ["proof", "inclusion", "one.cose", "--verify", "-o", "never", "--trust", "trust.toml", "--json"];
    let other = "0".repeat(64);
    for (member, wrong) in [
        ("entry_id", Value::from(other.as_str())),
        ("leaf_hash", other.as_str().into()),
        ("root", other.as_str().into()),
        ("path", Value::from(vec![other.as_str(); 3])),
        ("index", 4.into()),
        ("tree_size", 6.into()),
    ] {
        let liar = FaultyService::of(service.connection().address(), move |_, answer| {
            if let Ok(Value::Object(mut view)) = serde_json::from_slice(&answer.body) {
                view.insert(member.to_owned(), wrong.clone());
                answer.body = Value::Object(view).to_string().into_bytes();
            }
        });
        let ran = log.tabellion(&[&verified[..], &["--size", "7", "--url", &liar.url()]].concat());
        expect(&ran, 3, "tlog-proof-mismatch");
        assert!(!log.path("never").exists(), "{member}");
    }
    service.stop();
}

#[test]
fn a_genuine_proof_of_another_tree_or_leaf_is_refused() {
    let log = Log::sqlite();
    let service = grown(&log);
    let inclusion = |arguments: &[&str]| ask(&log, &service, &[&["proof", "inclusion"], arguments].concat());
    let mut view = inclusion(&["2", "--size", "7"]).must_succeed().json();
    view["index"] = 3.into();
    for (form, media_type) in [("receipt", RECEIPT), ("tlog-proof", "text/x.tlog.proof")] {
        for genuine_for in [["3", "--size", "5"], ["2", "--size", "7"]] {
            inclusion(&[&genuine_for[..], &["--form", form, "-o", "genuine"]].concat()).must_succeed();
            let (view, genuine) = (view.to_string().into_bytes(), fs::read(log.path("genuine")).unwrap());
            let liar = FaultyService::of(service.connection().address(), move |request, answer| {
                let is_proof = request.accept.as_deref() == Some(media_type);
                answer.body.clone_from(if is_proof { &genuine } else { &view });
            });
            // For leaf 3, the liar names the entry of leaf 2, of which it has a genuine proof.
            let entry = if genuine_for[0] == "2" { "3" } else { "one.cose" };
            let verified =
                ["proof", "inclusion", entry, "--size", "7", "--form", form, "--verify", "-o", "never"];
            let more = ["--trust", "trust.toml", "--json", "--url", &liar.url()];
            expect(&log.tabellion(&[&verified[..], &more].concat()), 3, "tlog-proof-mismatch");
            assert!(!log.path("never").exists(), "{form} for {genuine_for:?}");
        }
    }
    service.stop();
}

#[test]
fn a_proof_in_json_has_the_tree_size_of_the_checkpoint() {
    let log = Log::sqlite();
    let service = grown(&log);
    let of_seven = ["proof", "inclusion", "one.cose", "--size", "7", "--form", "tlog-proof", "-o", "seven"];
    ask(&log, &service, &of_seven).must_succeed();
    let genuine = fs::read(log.path("seven")).unwrap();
    // In trees of 6 and of 7 leaves, the path of leaf 3 has the same sides, so that it leads to the same root.
    let liar = FaultyService::of(service.connection().address(), move |request, answer| {
        if request.accept.as_deref() == Some("text/x.tlog.proof") {
            answer.status = 200;
            answer.set_header("content-type", Some("text/x.tlog.proof"));
            answer.body.clone_from(&genuine);
        } else if let Ok(Value::Object(mut view)) = serde_json::from_slice(&answer.body) {
            view.insert("tree_size".to_owned(), 6.into());
            answer.body = Value::Object(view).to_string().into_bytes();
        }
    });
    let verified = ["proof", "inclusion", "one.cose", "--verify", "-o", "never", "--trust", "trust.toml"];
    let ran = log.tabellion(&[&verified[..], &["--json", "--url", &liar.url()]].concat());
    expect(&ran, 3, "tlog-proof-mismatch");
    assert!(!log.path("never").exists());
    service.stop();
}

#[test]
fn a_genuine_proof_of_consistency_with_another_size_is_refused() {
    let log = Log::sqlite();
    let service = grown(&log);
    ask(&log, &service, &["checkpoint", "get", "-o", "known"]).must_succeed();
    let mut connection = service.connection();
    for _ in 0..5 {
        assert_eq!(connection.post(log.statement().bytes()).status, 201);
    }
    let consistency = |arguments: &[&str]| {
        ask(&log, &service, &[&["proof", "consistency", "--known", "known"], arguments].concat())
    };
    for (form, media_type) in [("json", "application/json"), ("receipt", RECEIPT)] {
        consistency(&["--second", "9", "--form", form, "-o", "genuine"]).must_succeed();
        let genuine = fs::read(log.path("genuine")).unwrap();
        let liar = FaultyService::of(service.connection().address(), move |request, answer| {
            if request.path.contains("proof/consistency") {
                answer.status = 200;
                answer.set_header("content-type", Some(media_type));
                answer.body.clone_from(&genuine);
            }
        });
        let asked =
            ["proof", "consistency", "--known", "known", "--second", "12", "--form", form, "--verify"];
        let more = ["-o", "never", "--trust", "trust.toml", "--json", "--url", &liar.url()];
        expect(&log.tabellion(&[&asked[..], &more].concat()), 3, "consistency-mismatch");
        assert!(!log.path("never").exists(), "{form}");
        consistency(&["--second", "9", "--form", form, "--verify", "-o", "right"]).must_succeed();
    }
    service.stop();
}

#[test]
fn a_statement_verifies_offline_only_if_enough_witnesses_cosigned_its_tree() {
    let log = Log::sqlite();
    let service = grown(&log);
    policy(&log);
    let issuer = testkit::es256();
    fs::write(log.path("issuer.pem"), scitt::Signer::public_key(&issuer).to_spki_pem()).unwrap();
    let add = ["trust", "add", "issuer", "--iss", testkit::ISSUER, "--key", "issuer.pem"];
    offline(&log, &add).must_succeed();
    let fetch = |arguments: &[&str]| ask(&log, &service, arguments).must_succeed().clone();
    fetch(&["proof", "inclusion", "one.cose", "--form", "tlog-proof", "-o", "bare.tlog-proof"]);
    fetch(&["proof", "inclusion", "one.cose", "--form", "receipt", "-o", "fetched.receipt"]);
    fetch(&["checkpoint", "get", "-o", "bare"]);
    service.stop();

    let verify = |flags: &[&str]| offline(&log, &[&["verify", "one.cose"], flags].concat());
    let with_policy = |flags: &[&str]| verify(&[flags, &["--witness-policy", "witnesses.policy"]].concat());
    expect(&verify(&[]), 4, "no-receipt");
    verify(&["--proof", "bare.tlog-proof"]).must_succeed();
    expect(&with_policy(&["--receipt", "fetched.receipt"]), 4, "no-checkpoint");
    expect(&with_policy(&["--proof", "bare.tlog-proof"]), 3, "quorum-not-met");
    cosigned(&log, "bare.tlog-proof", &[2], "few.tlog-proof");
    expect(&with_policy(&["--proof", "few.tlog-proof"]), 3, "quorum-not-met");
    cosigned(&log, "bare.tlog-proof", &[1, 2], "one.tlog-proof");
    let verdict = with_policy(&["--proof", "one.tlog-proof"]).must_succeed().json();
    let line = verdict["checks"].as_array().unwrap().last().unwrap();
    assert_eq!(line["detail"], "2 of 3 (w1, w2), newest 2023-11-14T22:13:22Z");
    cosigned(&log, "bare", &[1, 3], "head");
    with_policy(&["--receipt", "fetched.receipt", "--checkpoint", "head"]).must_succeed();

    let arguments =
        ["verify", "one.cose", "--proof", "one.tlog-proof", "--witness-policy", "witnesses.policy"];
    let told = log.tabellion(&[&arguments[..], &["--trust", "trust.toml"]].concat());
    assert!(told.must_succeed().stdout.contains("ok    witnesses             2 of 3 (w1, w2)"), "{told}");

    let other = log.statement();
    fs::write(log.path("other.cose"), other.bytes()).unwrap();
    let flags = ["verify", "other.cose", "--proof", "one.tlog-proof", "--witness-policy", "witnesses.policy"];
    expect(&offline(&log, &flags), 3, "tlog-proof-mismatch");
    fs::write(log.path("wrong.policy"), "quorum 2 of 3\n").unwrap();
    let unusable = offline(
        &log,
        &["verify", "one.cose", "--proof", "one.tlog-proof", "--witness-policy", "wrong.policy"],
    );
    expect(&unusable, 2, "witness-policy-unusable");
    let by_its_other_name = ["checkpoint", "verify", "head", "--witness-policy", "wrong.policy"];
    expect(&offline(&log, &by_its_other_name), 2, "witness-policy-unusable");
    verify(&["--proof", "one.tlog-proof", "--policy", "witnesses.policy"]).must_succeed();
}

#[test]
fn a_proof_as_the_log_serves_it_meets_the_quorum_of_its_witnesses() {
    let log = Log::sqlite();
    let home = WitnessHome::of(&[&vkey(&log)]);
    let witness = home.serve();
    let url = witness.url();
    let add = ["witness", "add", "w1", witness.vkey(), &url, "--policy", "witnesses.txt", "--quorum", "1"];
    log.tabellion(&add).must_succeed();
    log.configure("witness_policy = \"witnesses.txt\"\nwitness_interval_seconds = 2");
    let service = grown(&log);
    let issuer = testkit::es256();
    fs::write(log.path("issuer.pem"), scitt::Signer::public_key(&issuer).to_spki_pem()).unwrap();
    let add = ["trust", "add", "issuer", "--iss", testkit::ISSUER, "--key", "issuer.pem"];
    offline(&log, &add).must_succeed();

    let quorum = ["--verify", "--witness-policy", "witnesses.txt", "-o", "one.tlog-proof"];
    let fetch = ["proof", "inclusion", "one.cose", "--form", "tlog-proof"];
    until(
        Duration::from_secs(60),
        || "never cosigned",
        || ask(&log, &service, &[&fetch[..], &quorum].concat()).code == Some(0),
    );
    service.stop();
    let verify = ["verify", "one.cose", "--proof", "one.tlog-proof", "--witness-policy", "witnesses.txt"];
    let verdict = offline(&log, &verify).must_succeed().json();
    let line = verdict["checks"].as_array().unwrap().last().unwrap();
    assert!(line["detail"].as_str().unwrap().starts_with("1 of 1 (w1)"), "{line}");
}

#[test]
fn with_json_every_form_of_a_proof_is_one_object_on_stdout() {
    let log = Log::sqlite();
    let service = grown(&log);
    let inclusion = |more: &[&str]| {
        ask(&log, &service, &[&["proof", "inclusion", "one.cose", "--form"], more].concat())
            .must_succeed()
            .json()
    };
    let receipt = inclusion(&["receipt", "--verify"]);
    assert_eq!(
        (&receipt["media_type"], &receipt["verified"]),
        (&"application/scitt-receipt+cose".into(), &true.into())
    );
    let bytes = data_encoding::BASE64.decode(receipt["proof"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!(scitt::Receipt::parse(bytes).unwrap().inclusion_proofs().len(), 1);
    let bundle = inclusion(&["tlog-proof"]);
    assert_eq!(bundle["verified"], false);
    let text = bundle["proof"].as_str().unwrap();
    assert!(text.starts_with("c2sp.org/tlog-proof@v1\n"), "{text}");
    let between = ["proof", "consistency", "--first", "3", "--form", "receipt"];
    let between = ask(&log, &service, &between).must_succeed().json();
    assert_eq!(between["media_type"], "application/scitt-receipt+cose");
    service.stop();
}

#[test]
fn a_proof_that_cannot_be_asked_for_is_refused_without_the_service() {
    let log = Log::sqlite();
    let nobody = ["--url", "http://127.0.0.1:1"];
    let absent = offline(&log, &[&["proof", "inclusion", "nofile"], &nobody[..]].concat());
    expect(&absent, 5, "file-not-found");
    let unsaid = offline(&log, &[&["proof", "consistency"], &nobody[..]].concat());
    assert_eq!(unsaid.code, Some(2), "{unsaid}");
    assert!(unsaid.stderr.contains("--known") && unsaid.stderr.contains("--first"), "{unsaid}");
}

#[test]
fn a_tree_that_is_known_leads_on_to_a_newer_one_and_a_rewritten_one_does_not() {
    let log = Log::sqlite();
    let service = grown(&log);
    ask(&log, &service, &["checkpoint", "get", "-o", "known"]).must_succeed();
    let mut connection = service.connection();
    for _ in 0..5 {
        assert_eq!(connection.post(log.statement().bytes()).status, 201);
    }
    let consistency =
        |arguments: &[&str]| ask(&log, &service, &[&["proof", "consistency"], arguments].concat());
    let view = consistency(&["--known", "known", "--verify"]).must_succeed().json();
    assert_eq!((&view["first"], &view["second"]), (&7.into(), &12.into()));
    assert!(view["checkpoint"].as_str().unwrap().starts_with(testkit::ORIGIN));
    consistency(&["--known", "known", "--second", "9", "--verify"]).must_succeed();
    consistency(&["--known", "known", "--form", "receipt", "--verify", "-o", "newer.receipt"]).must_succeed();
    consistency(&["--first", "0", "--verify"]).must_succeed();
    expect(&consistency(&["--first", "7", "--verify"]), 4, "no-known-root");
    let root = "7".repeat(64);
    expect(&consistency(&["--first", "7", "--root", &root, "--verify"]), 3, "consistency-mismatch");
    let rewritten = ["--first", "7", "--root", &root, "--form", "receipt", "--verify", "-o", "never"];
    expect(&consistency(&rewritten), 3, "consistency-mismatch");
    assert!(!log.path("never").exists());
    expect(&consistency(&["--first", "99"]), 6, "proof-none");

    // What somebody made of the checkpoint is not known.
    let text = fs::read_to_string(log.path("known")).unwrap();
    fs::write(log.path("changed"), text.replacen("\n7\n", "\n6\n", 1)).unwrap();
    expect(&consistency(&["--known", "changed", "--verify"]), 3, "checkpoint-signature-invalid");
    service.stop();

    let from_file = ["proof", "consistency", "--known", "known", "--receipt", "newer.receipt", "--verify"];
    let verdict = offline(&log, &from_file).must_succeed().json();
    assert_eq!((&verdict["outcome"], &verdict["newer"]), (&"verified".into(), &12.into()));
    assert_eq!(verdict["root"].as_str().unwrap().len(), 64);
}
