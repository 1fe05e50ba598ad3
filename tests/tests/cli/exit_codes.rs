//! What a script learns from a command without reading a word of it (`tabellion help exit-codes`).

use std::fs;

use black_box::Log;
use black_box::cli::{Dev, Folder, repository};
use scitt::StatementBuilder;
use serde_json::json;

#[test]
fn every_ending_has_its_code() {
    let dev = Dev::start();
    let folder = &dev.folder;
    folder.write("a.json", "{\"n\":1}");
    folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    folder.run(&["issuer", "new", "-o", "stranger.pem"]).must_end_with(0);
    folder.run(&["issuer", "new", "-o", "open.pem"]).must_end_with(0);
    make_readable(folder, "open.pem");
    folder.write("garbage.cose", [0xd2, 0x84, 0x43]);
    folder.write("changed.json", "{\"n\":2}");
    folder.write("empty.toml", "");
    folder.write("broken.toml", "this is not TOML");
    let policy = String::from_utf8(folder.read("tabellion-dev/policy.toml")).expect("text");
    let json = "content_type = \"application/json\"\n";
    folder.write("strict.toml", policy.replace(json, &format!("{json}headers = [\"never\"]\n")));
    let mut tampered = folder.read("a.json.transparent.cose");
    let last = tampered.len() - 1;
    tampered[last] ^= 1;
    folder.write("tampered.cose", tampered);
    folder.write("again.json", "{\"n\":3}");
    folder.write("again.json.cose", folder.read("a.json.cose"));
    let nobody = "0".repeat(64);
    let nowhere = "http://127.0.0.1:1";

    for (arguments, code, why) in [
        (&["version"][..], 0, ""),
        (&["verify", "a.json.transparent.cose"], 0, ""),
        (&["verify", "a.json.transparent.cose", "--payload", "a.json"], 0, ""),
        (&["receipt", "verify", "a.json.receipt", "--statement", "a.json.cose"], 0, ""),
        (&["vrf", "verify", "tabellion-dev/samples/vrf.cose"], 0, ""),
        (&["entry", "get", "a.json.cose"], 0, ""),
        (&["statement", "inspect", "garbage.cose"], 1, "malformed"),
        (&["register", "--dev", "garbage.cose"], 1, "malformed"),
        (&["receipt", "inspect", "a.json"], 1, "malformed"),
        (&["statement", "sign", "--key", "open.pem", "a.json"], 1, "key-not-private"),
        (&["statement", "sign", "--key", "a.json", "a.json", "-o", "x"], 1, "key-not-private"),
        (&["verify", "a.json.transparent.cose", "--trust", "broken.toml"], 1, "trust-unusable"),
        (&["policy", "validate", "broken.toml"], 1, "policy"),
        (&["policy", "test", "tabellion-dev/policy.toml", "a.json.cose"], 0, ""),
        (&["policy", "test", "strict.toml", "a.json.cose"], 6, ""),
        (&["policy", "test", "tabellion-dev/policy.toml", "garbage.cose"], 6, ""),
        (&["policy", "test", "broken.toml", "a.json.cose"], 1, "policy"),
        (&["policy", "test", "tabellion-dev/policy.toml", "-", "-"], 2, "stdin-twice"),
        (&["policy", "show", "--revision", "77"], 5, "policy-unknown"),
        (&["statement", "hash", "a.json.cose", "--no-such-flag"], 2, "usage"),
        (&["register"], 2, "usage"),
        (&["statement", "sign", "a.json", "-o", "y"], 2, "no-key"),
        (&["receipt", "get", "neither"], 2, "not-an-entry"),
        (&["verify", "-", "--payload", "-"], 2, "stdin-twice"),
        (&["key", "show"], 0, ""),
        (&["config", "check"], 2, "setting-unusable"),
        (&["register", "--dev", "-"], 2, "usage"),
        (&["verify", "tampered.cose"], 3, ""),
        (&["verify", "a.json.transparent.cose", "--payload", "changed.json"], 3, ""),
        (&["verify", "garbage.cose"], 3, ""),
        (&["receipt", "verify", "a.json.receipt", "--statement", "tabellion-dev/samples/vrf.cose"], 3, ""),
        (&["vrf", "verify", "a.json.cose"], 3, "vrf-form"),
        (&["execution", "verify", "tabellion-dev/samples/aer.cose"], 0, ""),
        (&["execution", "verify", "a.json.cose"], 4, "no-gateway-key"),
        (&["execution", "verify", "tabellion-dev/samples/vrf.cose"], 3, "profile"),
        (&["verify", "again.json.cose"], 4, ""),
        (&["verify", "a.json.transparent.cose", "--trust", "empty.toml"], 4, ""),
        (&["verify", "no-such-file"], 5, "file-not-found"),
        (&["entry", "get", "0"], 0, ""),
        (&["entry", "get", "77"], 5, "entry-unknown"),
        (&["entry", "search", "--from-time", "2026-11-22"], 0, ""),
        (&["entry", "search", "--from-time", "last week"], 2, "usage"),
        (&["entry", "get", &nobody], 5, "entry-unknown"),
        (&["receipt", "get", &nobody], 5, "entry-unknown"),
        (&["receipt", "detach", "a.json.cose"], 5, "no-receipt"),
        (&["trust", "remove", "https://nobody.example"], 5, "no-such-anchor"),
        (&["config", "show", "--config", "no-such.toml"], 5, "config-not-found"),
        (&["help", "nothing-of-that-name"], 5, "no-such-topic"),
        (&["register", "--key", "stranger.pem", "changed.json"], 6, ""),
        (&["entry", "list", "--url", nowhere], 7, "unreachable"),
        (&["register", "--dev", "a.json", "--url", nowhere], 7, "unreachable"),
        (&["issuer", "new", "-o", "stranger.pem"], 10, "key-exists"),
        (&["statement", "strip", "a.json.transparent.cose", "-o", "a.json"], 10, "exists"),
        (&["register", "--dev", "again.json"], 10, "payload-changed"),
    ] {
        let spoken = folder.run(&[arguments, &["--json"]].concat());
        assert_eq!(spoken.code, Some(code), "{arguments:?}: {spoken}");
        if code != 0 && !why.is_empty() {
            assert_eq!(spoken.error(), why, "{arguments:?}: {spoken}");
        }
    }
}

#[test]
fn every_verifier_tells_a_file_in_which_something_is_wrong_from_one_that_is_something_else() {
    let dev = Dev::start();
    let folder = &dev.folder;
    folder.write("a.json", "{\"n\":1}");
    folder.write("empty", "");
    folder.write("alone.json", "{\"n\":2}");
    folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    folder.write("cut.cose", &folder.read("a.json.cose")[..40]);
    folder.write("cut.receipt", &folder.read("a.json.receipt")[..40]);
    let of_statement = ["--statement", "a.json.cose"];
    for (verifier, more, something_else) in [
        (&["verify"][..], &[][..], "no-statement"),
        (&["vrf", "verify"], &[], "no-statement"),
        (&["execution", "verify"], &[], "no-statement"),
        (&["receipt", "verify"], &of_statement, "no-receipt"),
        (&["checkpoint", "verify"], &[], "no-checkpoint"),
        (&["backup", "verify"], &[], "not-an-archive"),
        (&["verdict", "verify"], &[], "no-verdict"),
    ] {
        for file in ["alone.json", "empty"] {
            let ended = folder.run(&[verifier, &[file], more, &["--json"]].concat());
            assert_eq!(ended.must_end_with(4).error(), something_else, "{verifier:?} {file}: {ended}");
        }
        let damaged = if more.is_empty() { "cut.cose" } else { "cut.receipt" };
        if something_else == "no-statement" || something_else == "no-receipt" {
            folder.run(&[verifier, &[damaged], more].concat()).must_end_with(3);
        }
    }
    for (verifier, more, something_else) in [
        (&["record", "verify"][..], &[][..], "no-statement"),
        (&["bundle", "show"], &[], "no-bundle"),
        (
            &["roa", "verify"],
            &["--registry", "registry.json", "--registry-key", "tabellion-dev/issuer.key"],
            "not-a-chain",
        ),
        (&["audit", "session", "--opened"], &[], "not-a-disclosure"),
        (&["gateway", "approval", "verify"], &["--key", "tabellion-dev/issuer.key"], "no-approval"),
        (&["proof", "consistency", "--verify", "--known"], &[], "no-checkpoint"),
        (&["verify", "a.json.cose", "--receipt"], &[], "no-receipt"),
        (&["verify", "a.json.transparent.cose", "--checkpoint"], &[], "no-checkpoint"),
        (&["verify", "a.json.transparent.cose", "--proof"], &[], "no-tlog-proof"),
    ] {
        for file in ["alone.json", "empty"] {
            let ended = folder.run(&[verifier, &[file], more, &["--json"]].concat());
            assert_eq!(ended.must_end_with(4).error(), something_else, "{verifier:?} {file}: {ended}");
        }
    }
    folder.write("cut.chain", "[{\"envelope");
    folder.write("cut.disclosures", "[{\"statement");
    folder.write("cut.verdict", "{\"type\":\"verdict\",");
    folder.write("cut.approval", "{\"question\":{");
    folder.write("other.approval", "{\"question\":{},\"answer\":\"a.b.c\"}");
    for (verifier, more) in [
        (
            &["roa", "verify", "cut.chain"][..],
            &["--registry", "registry.json", "--registry-key", "tabellion-dev/issuer.key"][..],
        ),
        (&["audit", "session", "--opened", "cut.disclosures"], &[]),
        (&["record", "verify", "cut.cose"], &[]),
        (&["verdict", "verify", "cut.verdict"], &[]),
        (&["gateway", "approval", "verify", "cut.approval"], &["--key", "tabellion-dev/issuer.key"]),
        (&["gateway", "approval", "verify", "other.approval"], &["--key", "tabellion-dev/issuer.key"]),
        (&["verify", "a.json.cose", "--receipt", "cut.receipt"], &[]),
        (&["vrf", "recheck", "cut.cose"], &["--artifact", "a.json", "--tests", "a.json"]),
    ] {
        folder.run(&[verifier, more].concat()).must_end_with(3);
    }
    let recheck =
        folder.run(&["vrf", "recheck", "alone.json", "--artifact", "a.json", "--tests", "a.json", "--json"]);
    assert_eq!(recheck.must_end_with(4).error(), "no-receipt", "{recheck}");
    let empty_stdin = folder.run(&["verify", "-", "--json"]);
    assert_eq!(empty_stdin.must_end_with(4).error(), "no-statement", "{empty_stdin}");

    let receipt = folder.run(&["verify", "a.json.receipt"]);
    receipt.must_end_with(4);
    assert!(receipt.stderr.contains("tabellion receipt verify a.json.receipt --statement"), "{receipt}");
}

#[test]
fn unsigned_trace_metadata_is_compared_with_the_record_or_listed_as_not_compared() {
    let folder = Folder::new();
    let metadata = |session: &str| {
        testkit::json_as_cbor(&json!({ "session-id": session, "agent-vendor": "provider",
            "trace-format": "ietf-vac-v3.0", "timestamp-start": 1_769_947_200_000_u64 }))
    };
    let payload = testkit::conversation_json(0).to_string();
    let record = || testkit::conversation_of(payload.clone().into_bytes(), "session-0");
    let write = |name: &str, builder: StatementBuilder| {
        folder.write(name, builder.encode(&testkit::recorder()).expect("a statement"));
    };
    write("plain.cose", record());
    write("repeats.cose", record().unprotected(100, metadata("session-0")));
    write("lies.cose", record().unprotected(100, metadata("session-1")));
    write("detached.cose", record().detached().unprotected(100, metadata("session-1")));
    folder.write("record.json", &payload);
    folder.write("trust.toml", "self_certified = true\n");
    let verify = |arguments: &[&str]| {
        let ended = folder.run(&[&["verify", "--json"], arguments].concat());
        let verdict = ended.json();
        let check = verdict["checks"].as_array().expect("a list").iter();
        let check = check.clone().find(|check| check["name"] == "trace-metadata").cloned();
        (ended.code, check.map(|check| check["state"].as_str().expect("a word").to_owned()))
    };
    // No log has these: without a contradiction the verdict is "not verified".
    assert_eq!(verify(&["plain.cose"]), (Some(4), None));
    assert_eq!(verify(&["repeats.cose"]), (Some(4), Some("ok".into())));
    assert_eq!(verify(&["lies.cose"]), (Some(3), Some("failed".into())));
    assert_eq!(verify(&["detached.cose"]), (Some(4), Some("not-done".into())));
    assert_eq!(verify(&["detached.cose", "--payload", "record.json"]), (Some(3), Some("failed".into())));
}

#[test]
fn a_kid_that_begins_with_a_hyphen_is_no_flag() {
    let dev = Dev::start();
    let kid = "-BzvZPp1sFM9Zy2l1mYtO8W6kqXn0aR5cE3uT7hJdIw";
    let add = ["trust", "add", "log", "--kid", kid, "--url", dev.url(), "--trust", "new.toml"];
    dev.folder.run(&add).must_end_with(5);
    dev.folder
        .run(&["key", "revoke", kid, "--compromised-since", "1", "--config", "nowhere.toml"])
        .must_end_with(5);
}

#[test]
fn a_log_that_was_tampered_with_ends_a_check_with_8() {
    let log = Log::sqlite();
    let service = log.serve();
    service.connection().post(log.statement().bytes());
    service.stop();
    let wrong = ["log", "adopt", "--size", "2", "--root", &"ab".repeat(32)];
    assert_eq!(log.tabellion(&wrong).code, Some(8));
    let unknown = ["log", "adopt", "--size", "77", "--root", &"ab".repeat(32)];
    assert_ne!(log.tabellion(&unknown).code, Some(0));
    assert_eq!(log.tabellion(&["log", "fsck", "--deep"]).code, Some(0));
}

#[test]
fn the_table_in_the_help_is_the_one_that_is_tested() {
    let shown = Folder::new().run(&["help", "exit-codes"]).text();
    let page =
        fs::read_to_string(repository("services/tabellion/src/topics/exit-codes.txt")).expect("the page");
    assert_eq!(shown, page);
    for code in 0..=10 {
        assert!(page.lines().any(|line| line.trim_start().starts_with(&format!("{code}  "))), "{code}");
    }
}

fn make_readable(folder: &Folder, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o644)).expect("our own file");
}

#[test]
fn a_checkpoint_that_is_verified_as_a_statement_names_the_command_for_it() {
    let folder = Folder::new();
    folder.write("checkpoint", "log.example\n0\nAAAA\n\n\u{2014} log.example AAAA\n");
    let refused = folder.run(&["verify", "checkpoint"]);
    refused.must_end_with(4);
    for text in ["[no-statement]", "tabellion checkpoint verify checkpoint"] {
        assert!(refused.stderr.contains(text), "{refused}");
    }
}
