//! Manners: results on stdout and nothing else there, JSON that keeps its shape, whole files or none, and strangers' text
//! made harmless.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use black_box::cli::{Dev, Folder};
use serde_json::Value;

/// What an attacker would put in a subject or a file name: colour, cursor movement, C1, bidi, invisible, line breaks, HTML.
const HOSTILE: &str = "evil\u{1b}[2K\u{1b}[31m\u{9b}1A\u{202e}yned\u{2066}x\u{200b}y\u{7f}\u{7}\r\nverified (offline)<script>alert(1)</script>";

fn with_a_registered_file(dev: &Dev) -> &Folder {
    dev.folder.write("a.json", "{\"n\":1}");
    dev.folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    &dev.folder
}

#[test]
fn a_list_that_was_cut_off_says_so_beside_it() {
    let dev = Dev::start();
    for cut in [&["entry", "list", "--limit", "2"][..], &["entry", "search", "--limit", "2"]] {
        let ended = dev.folder.run(cut);
        assert_eq!(ended.must_end_with(0).text().lines().count(), 2, "{ended}");
        assert!(ended.stderr.contains("and more"), "{ended}");
        let told = dev.folder.run(&[cut, &["--json"]].concat()).json();
        assert_eq!(told["more"], true, "{told}");
    }
    let all = dev.folder.run(&["entry", "list"]);
    assert_eq!(all.must_end_with(0).stderr, "");
    assert_eq!(dev.folder.run(&["entry", "list", "--json"]).json()["more"], false);
}

#[test]
fn with_json_every_command_prints_one_object_with_these_names() {
    let dev = Dev::start();
    let folder = with_a_registered_file(&dev);
    for (arguments, names) in [
        (&["version"][..], &["version"][..]),
        (&["config", "show"], &["settings"]),
        (&["config", "env"], &["settings"]),
        (
            &["init", "mylog", "--origin", "log.example.org", "--db", "sqlite:data/log.db"],
            &["config", "receipt", "checkpoint", "operator", "next"],
        ),
        (&["config", "check", "--config", "mylog/tabellion.toml"], &["origin", "ready", "warnings"]),
        (&["key", "new", "-o", "k.pem"], &["kid", "alg", "did_key", "file"]),
        (&["key", "show", "--config", "mylog/tabellion.toml"], &["receipt", "checkpoint", "operator"]),
        (&["issuer", "new", "-o", "i.pem"], &["kid", "alg", "did_key", "file"]),
        (&["issuer", "show", "i.pem"], &["kid", "alg", "did_key"]),
        (
            &["trust", "add", "issuer", "--iss", "https://ci.example", "--key", "i.pem", "--trust", "t.toml"],
            &["file", "anchors"],
        ),
        (&["trust", "list"], &["file", "anchors"]),
        (&["trust", "show", "https://dev.issuer.example"], &["file", "anchors"]),
        (&["policy", "show"], &["index", "digest", "revision", "policy", "history", "at", "in_force_from"]),
        (&["policy", "show", "--revision", "0"], &["index", "digest", "revision", "policy", "statement"]),
        (&["policy", "show", "--history"], &["history"]),
        (
            &["policy", "test", "tabellion-dev/policy.toml", "a.json.cose"],
            &["revision", "digest", "results", "admitted", "refused", "undecided"],
        ),
        (&["policy", "validate", "mylog/policy.toml"], &["iss", "origin", "revision", "digest"]),
        (&["statement", "sign", "--key", "i.pem", "a.json", "-o", "b.cose"], &["entry"]),
        (
            &["statement", "inspect", "a.json.cose"],
            &["entry", "protected", "payload", "signature_bytes", "receipts", "verified"],
        ),
        (&["statement", "hash", "a.json.cose"], &["entry"]),
        (&["register", "--dev", "a.json"], &["registered", "failed"]),
        (&["receipt", "inspect", "a.json.receipt"], &["protected", "proofs", "attached_root", "verified"]),
        (
            &["receipt", "verify", "a.json.receipt", "--statement", "a.json.cose"],
            &["outcome", "reason", "checks", "receipts"],
        ),
        (&["verify", "a.json.transparent.cose"], &["outcome", "reason", "statement", "receipts", "checks"]),
        (
            &["entry", "get", "a.json.cose"],
            &["index", "iss", "sub", "facts", "policy", "rule", "size", "erased", "at"],
        ),
        (&["entry", "list"], &["entries"]),
        (&["entry", "tail", "--from-start", "--count", "1"], &["index", "entry_id", "facts"]),
        (&["checkpoint", "get"], &["outcome", "reason", "checkpoint", "checks", "note"]),
        (&["checkpoint", "get", "-o", "head"], &["outcome", "reason", "checkpoint", "checks"]),
        (&["checkpoint", "verify", "head"], &["outcome", "reason", "checkpoint", "checks"]),
        (
            &["proof", "inclusion", "a.json.cose", "--verify"],
            &["index", "entry_id", "tree_size", "leaf_hash", "path", "root"],
        ),
        (&["proof", "consistency", "--first", "0", "--verify"], &["first", "second", "path", "checkpoint"]),
        (
            &["execution", "verify", "tabellion-dev/samples/aer.cose"],
            &[
                "entry",
                "issuer",
                "gateway",
                "aer_id",
                "session",
                "agent",
                "capability",
                "input_hash",
                "decision",
                "denial_reason",
                "denial_code",
                "mode",
                "redacted",
                "verified",
            ],
        ),
        (
            &["vrf", "verify", "tabellion-dev/samples/vrf.cose"],
            &[
                "entry",
                "issuer",
                "agent",
                "receipt_id",
                "verdict",
                "tier",
                "passed",
                "total",
                "output",
                "chain",
                "verified",
            ],
        ),
        (&["help", "trust"], &["topic", "text"]),
    ] {
        let ended = folder.run(&[arguments, &["--json"]].concat());
        let object = ended.must_end_with(0).json();
        for name in names {
            assert!(object.get(name).is_some(), "{arguments:?} has no {name}: {object}");
        }
        assert!(ended.stderr.is_empty(), "{arguments:?}: {ended}");
    }
    assert_eq!(
        dev.serving["samples"].as_array().map(|samples| samples.len() >= 3),
        Some(true),
        "{}",
        dev.serving
    );
}

#[test]
fn entries_are_listed_with_who_says_what_about_what() {
    let dev = Dev::start();
    let folder = with_a_registered_file(&dev);
    let listed = folder.run(&["entry", "list", "--after", "2"]).must_end_with(0).text();
    let entry = folder.run(&["statement", "hash", "a.json.cose"]).text();
    for expected in [entry.trim(), "application/json", "https://dev.issuer.example", "a.json"] {
        assert!(listed.contains(expected), "no {expected}: {listed}");
    }
    let page = folder.run(&["entry", "list", "--limit", "2", "--json"]).json();
    let indices: Vec<&Value> =
        page["entries"].as_array().expect("a list").iter().map(|entry| &entry["index"]).collect();
    assert_eq!(indices, [0, 1]);
}

#[test]
fn streams_carry_the_result_and_a_reader_that_leaves_is_no_error() {
    let dev = Dev::start();
    let folder = with_a_registered_file(&dev);
    folder.run(&["issuer", "new", "-o", "i.pem"]).must_end_with(0);
    let signed = folder.run_with(&["statement", "sign", "--key", "i.pem", "--sub", "s", "-"], b"hello");
    let hash = folder.run_with(&["statement", "hash", "-"], &signed.must_end_with(0).stdout);
    assert_eq!(hash.must_end_with(0).text().trim().len(), 64);

    let statement = folder.read("a.json.transparent.cose");
    let stripped = folder.run_with(&["statement", "strip", "-"], &statement);
    assert_eq!(stripped.must_end_with(0).stdout, folder.read("a.json.cose"));
    let attached = folder.run(&["receipt", "attach", "a.json.cose", "a.json.receipt", "-o", "-"]);
    assert_eq!(attached.must_end_with(0).stdout, statement);
    folder.run_with(&["verify", "-"], &statement).must_end_with(0);
    let registered = folder.run_with(&["register", "--dev", "-", "-o", "-"], b"{\"n\":2}");
    folder.run_with(&["verify", "-"], &registered.must_end_with(0).stdout).must_end_with(0);
    let receipt = folder.run(&["receipt", "get", "a.json.cose"]);
    folder
        .run_with(&["receipt", "verify", "-", "--statement", "a.json.cose"], &receipt.stdout)
        .must_end_with(0);

    for arguments in ["config env", "help errors", "entry list", "completion bash", "issuer export i.pem"] {
        let program = black_box::program().display();
        let mut piped = Command::new("bash");
        folder.settle(&mut piped);
        piped.args(["-c", &format!("set -o pipefail; {program} {arguments} | head -c 1 >/dev/null")]);
        let ended = piped.stdin(Stdio::null()).output().expect("bash");
        assert!(ended.status.success(), "{arguments}: {ended:?}");
    }
}

#[test]
fn quiet_commands_print_results_and_errors_only() {
    let dev = Dev::start();
    let folder = with_a_registered_file(&dev);
    for arguments in [
        &["entry", "list", "--limit", "1"][..],
        &["trust", "add", "issuer", "--iss", "https://b.example", "--key", "tabellion-dev/issuer.key"],
        &["verify", "a.json"],
    ] {
        assert_ne!(folder.run(arguments).must_end_with(0).stderr, "", "{arguments:?}");
        let quiet = folder.run(&[arguments, &["--quiet"]].concat());
        assert_eq!(quiet.must_end_with(0).stderr, "", "{arguments:?}");
        assert_ne!(quiet.text(), "", "{arguments:?}");
    }
    let absent = folder.run(&["verify", "absent.json", "--quiet"]);
    assert!(absent.must_end_with(5).stderr.contains("file-not-found"), "{absent}");
}

#[test]
fn the_log_of_a_service_has_no_colour_in_a_file() {
    let folder = Folder::new();
    let serve =
        ["serve", "--dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "info"];
    let mut child = folder.command(&serve);
    let file = fs::File::create(folder.path("log")).expect("our own folder");
    let mut child = child.stdout(Stdio::null()).stderr(file).stdin(Stdio::null()).spawn().expect("it starts");
    let mut said = String::new();
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(100));
        said = fs::read_to_string(folder.path("log")).unwrap_or_default();
        if said.contains("serving") {
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    assert!(said.contains("serving") && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn an_output_is_whole_or_not_there_whenever_the_program_is_killed() {
    let folder = Folder::new();
    folder.run(&["issuer", "new", "-o", "i.pem", "--alg", "EdDSA"]).must_end_with(0);
    folder.write("big.bin", vec![7; 4 << 20]);
    let sign = ["statement", "sign", "--key", "i.pem", "big.bin", "-o", "big.cose"];
    folder.run(&sign).must_end_with(0);
    let whole = folder.read("big.cose");
    for milliseconds in (0..60).step_by(3) {
        let _ = fs::remove_file(folder.path("big.cose"));
        let mut child = folder.command(&sign);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        let _ = child.wait();
        if folder.has("big.cose") {
            assert!(folder.read("big.cose") == whole, "half an output after {milliseconds} ms");
        }
    }
}

#[test]
fn a_terminal_never_obeys_what_a_stranger_wrote() {
    let dev = Dev::start();
    let folder = &dev.folder;
    let named = "evil\u{1b}[31m\u{202e}.json";
    folder.write(named, format!("{{\"say\":{}}}", Value::from(HOSTILE)));
    folder.write("text.txt", HOSTILE);
    let mut printed = vec![
        folder.run(&["register", "--dev", "--sub", HOSTILE, named, "text.txt"]),
        folder.run(&["verify", "no-such\u{1b}[31m"]),
        folder.run(&["verify", "--no-such\u{1b}[31m"]),
        folder.run(&["help", HOSTILE]),
        folder.run(&["issuer", "new", "-o", "i.pem"]),
        folder.run(&["trust", "add", "issuer", "--iss", HOSTILE, "--key", "i.pem", "--trust", "t.toml"]),
        folder.run(&["trust", "remove", HOSTILE]),
    ];
    printed[0].must_end_with(0);
    let transparent = format!("{named}.transparent.cose");
    let (statement, receipt) = (format!("{named}.cose"), format!("{named}.receipt"));
    for arguments in [
        &["statement", "inspect", "text.txt.cose"][..],
        &["statement", "inspect", &statement],
        &["verify", "text.txt.transparent.cose"],
        &["verify", &transparent, "--payload", "text.txt"],
        &["verify", &transparent, "--trust", "t.toml"],
        &["receipt", "inspect", &receipt],
        &["receipt", "verify", &receipt, "--statement", &statement],
        &["receipt", "detach", &transparent],
        &["vrf", "verify", "text.txt.cose"],
        &["execution", "verify", "text.txt.cose"],
        &["entry", "list"],
        &["entry", "tail", "--from-start", "--count", "6"],
        &["proof", "inclusion", &statement, "--verify"],
        &["checkpoint", "get", "-o", HOSTILE],
        &["checkpoint", "verify", HOSTILE],
        &["checkpoint", "verify", &statement],
        &["entry", "get", &statement],
        &["trust", "list", "--trust", "t.toml"],
        &["trust", "show", HOSTILE, "--trust", "t.toml"],
        &[
            "trust", "add", "log", "--iss", HOSTILE, "--origin", HOSTILE, "--key", "i.pem", "--trust",
            "t2.toml",
        ],
        &["config", "show"],
        &["register", "--dev", &statement],
    ] {
        printed.push(folder.run(arguments));
        printed.push(folder.run(&[arguments, &["--json"]].concat()));
    }
    for ended in printed {
        for text in [ended.text(), ended.stderr.clone()] {
            let dangerous = text.chars().find(|c| {
                (c.is_control() && *c != '\n')
                    || matches!(*c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}')
            });
            assert_eq!(dangerous, None, "{ended}");
            let forged = text.lines().filter(|line| *line == "verified (offline)").count();
            assert!(forged <= 1, "a line was forged: {ended}");
        }
    }
}
