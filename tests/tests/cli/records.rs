//! `tabellion record`: session files of coding agents as signed records.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use black_box::cli::{Dev, Folder};
use black_box::{Connection, OwnedChild, free_address};
use serde_json::{Value, json};

/// The files that the tests of the translation use.
fn session(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/translators/tests/fixtures").join(name)
}

/// A folder with a recorder's key.
fn recorder() -> Folder {
    let folder = Folder::new();
    folder.run(&["issuer", "new", "-o", "key.pem", "--alg", "EdDSA"]).must_end_with(0);
    folder
}

fn import(folder: &Folder, name: &str, more: &[&str]) -> Value {
    let file = session(name);
    let arguments = ["record", "import", "--json", "--key", "key.pem", file.to_str().unwrap()];
    folder.run(&[&arguments, more].concat()).must_end_with(0).json()
}

fn parsed(folder: &Folder, name: &str) -> Value {
    serde_json::from_slice(&folder.read(name)).unwrap()
}

#[test]
fn a_session_becomes_a_signed_record_that_verifies() {
    let folder = recorder();
    let imported = import(&folder, "claude.jsonl", &[]);
    assert_eq!(imported["sources"][0]["format"], "claude-jsonl");
    assert_eq!(imported["sources"][0]["account"]["total"], 12);
    let verified =
        folder.run(&["record", "verify", "--json", "claude.record.json.cose"]).must_end_with(0).json();
    assert_eq!((&verified["session"], &verified["trace_metadata"]), (&json!("ses-1"), &json!("agrees")));
    assert_eq!(verified["receipts"], 0);
    import(&folder, "claude.jsonl", &[]);
}

#[test]
fn the_storage_of_opencode_becomes_one_record_for_each_session() {
    let folder = recorder();
    let imported = import(&folder, "opencode", &["--output", "records"]);
    assert_eq!(imported["sources"][0]["records"].as_array().unwrap().len(), 2);
    assert!(folder.has("records/ses_1.record.json.cose") && folder.has("records/ses_2.record.json.cose"));
}

#[test]
fn what_is_no_session_in_a_folder_is_skipped_and_a_file_that_was_named_is_refused() {
    let folder = recorder();
    fs::create_dir(folder.path("sessions")).unwrap();
    folder.write("sessions/notes.json", "{\"a\": 1}");
    fs::copy(session("cursor.jsonl"), folder.path("sessions/cursor.jsonl")).unwrap();
    let imported = folder.run(&["record", "import", "--json", "sessions"]).must_end_with(0).json();
    assert_eq!(imported["skipped"], json!(["sessions/notes.json"]));
    assert!(folder.has("cursor.record.json"));
    let refused = folder.run(&["record", "import", "--json", "sessions/notes.json"]).must_end_with(1).error();
    assert_eq!(refused, "unknown-format");
}

#[test]
fn a_folder_without_sessions_and_links_and_pipes_in_a_folder_are_not_passed_over_in_silence() {
    let folder = recorder();
    fs::create_dir(folder.path("sessions")).unwrap();
    let empty = folder.run(&["record", "import", "sessions"]);
    empty.must_end_with(0);
    assert!(empty.stderr.contains("no session file in sessions"), "{}", empty.stderr);
    std::os::unix::fs::symlink(session("cursor.jsonl"), folder.path("sessions/cursor.jsonl")).unwrap();
    std::os::unix::fs::symlink(session("opencode"), folder.path("sessions/opencode")).unwrap();
    make_pipe(&folder.path("sessions/pipe.jsonl"));
    make_pipe(&folder.path("sessions/pipe"));
    let imported = folder.run(&["record", "import", "--json", "sessions"]).must_end_with(0).json();
    let passed_over = ["sessions/cursor.jsonl", "sessions/opencode", "sessions/pipe.jsonl"];
    assert_eq!(imported["skipped"], json!(passed_over), "what may be a session");
    assert_eq!(imported["sources"], json!([]));
}

/// The files that an import wrote, without repetitions.
fn written(imported: &Value) -> BTreeSet<String> {
    let sources = imported["sources"].as_array().unwrap().iter();
    let records = sources.flat_map(|source| source["records"].as_array().unwrap());
    records.map(|record| record["wrote"][0].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_folder_with_sessions_of_all_formats_becomes_a_record_for_each_and_again_the_same() {
    let folder = recorder();
    let fixtures = session("");
    let import = || {
        let arguments = ["record", "import", "--json", "--output", "records", fixtures.to_str().unwrap()];
        folder.run(&arguments).must_end_with(0).json()
    };
    let imported = import();
    let mut formats: Vec<&str> =
        imported["sources"].as_array().unwrap().iter().map(|of| of["format"].as_str().unwrap()).collect();
    formats.sort_unstable();
    let expected = [
        "claude-jsonl",
        "codex-jsonl",
        "codex-jsonl",
        "codex-jsonl",
        "cursor-jsonl",
        "gemini-json",
        "gemini-json",
        "gemini-json",
        "opencode-json",
        "pi-jsonl",
        "qwen-jsonl",
        "qwen-jsonl",
    ];
    assert_eq!(formats, expected, "the storage tree of OpenCode is one source");
    let files = written(&imported);
    assert_eq!(
        files.len(),
        13,
        "OpenCode's tree has two sessions, and gemini.json and gemini.jsonl a file each"
    );
    assert_eq!(written(&import()), files);
    assert_eq!(fs::read_dir(folder.path("records")).unwrap().count(), 13);
}

#[test]
fn different_sessions_in_files_of_equal_names_have_a_record_each() {
    let folder = recorder();
    for (place, file) in [("a", "claude.jsonl"), ("b", "codex.jsonl"), ("c", "claude.jsonl")] {
        fs::create_dir(folder.path(place)).unwrap();
        fs::copy(session(file), folder.path(&format!("{place}/small.jsonl"))).unwrap();
    }
    let import = |files: &[&str]| {
        let imported = folder.run(&[&["record", "import", "--json"], files].concat()).must_end_with(0).json();
        written(&imported)
    };
    let all = import(&["a/small.jsonl", "b/small.jsonl", "c/small.jsonl"]);
    assert_eq!(all.len(), 2, "the files in a and c are the same session");
    assert!(all.contains("./small.record.json"), "{all:?}");
    assert_eq!(
        import(&["b/small.jsonl"]).union(&import(&["c/small.jsonl"])).cloned().collect::<BTreeSet<_>>(),
        all
    );
}

#[test]
fn a_file_of_several_that_is_no_session_does_not_stop_the_others() {
    let folder = recorder();
    folder.write("empty.jsonl", "");
    fs::copy(session("cursor.jsonl"), folder.path("cursor.txt")).unwrap();
    let import = ["record", "import", "--json", "empty.jsonl", "cursor.txt"];
    let imported = folder.run(&import).must_end_with(1).json();
    assert_eq!(imported["sources"][0]["format"], "cursor-jsonl");
    let failed = imported["failed"].as_array().unwrap();
    assert!(failed.len() == 1 && failed[0].as_str().unwrap().contains("empty.jsonl"), "{failed:?}");
}

/// A line of a session of Claude Code.
fn line(number: usize, content: &str) -> String {
    let kind = if number.is_multiple_of(2) { "user" } else { "assistant" };
    let mut message = json!({ "role": kind, "id": format!("m{number}"), "content": content });
    if kind == "assistant" {
        message["usage"] = json!({ "input_tokens": 1, "output_tokens": number });
    }
    json!({ "type": kind, "sessionId": "s", "uuid": format!("u{number}"), "message": message }).to_string()
        + "\n"
}

/// A session whose record would be larger than a statement may be.
fn large_session(entries: usize) -> String {
    let content = "because ".repeat(1024);
    (0..entries).map(|number| line(number, &content)).collect()
}

#[test]
fn a_session_that_is_too_large_for_a_statement_becomes_a_chain_of_records() {
    const ENTRIES: usize = 1300;
    let folder = recorder();
    folder.write("s.jsonl", large_session(ENTRIES));
    let import = ["record", "import", "--json", "--key", "key.pem", "s.jsonl"];
    let imported = folder.run(&import).must_end_with(0).json();
    let records = imported["sources"][0]["records"].as_array().unwrap();
    let (mut before, mut found, mut tokens) = (Value::Null, 0, 0);
    for (number, record) in (1..).zip(records) {
        let file = format!("./s.part-{number}.record.json");
        assert_eq!(record["wrote"], json!([file, format!("{file}.cose")]));
        assert_eq!(
            (&record["part"]["number"], &record["part"]["first-entry"]),
            (&json!(number), &json!(found))
        );
        folder.run(&["record", "verify", &format!("{file}.cose")]).must_end_with(0);
        let value = parsed(&folder, &file);
        assert_eq!(value["previous-record"], before);
        before = record["digest"].clone();
        let entries = value["session"]["entries"].as_array().unwrap();
        found += entries.len();
        tokens += entries.iter().filter_map(|entry| entry["token-usage"]["output"].as_u64()).sum::<u64>();
    }
    assert!(records.len() > 1, "{records:?}");
    assert_eq!(found, ENTRIES);
    assert_eq!(tokens, (0..ENTRIES as u64).filter(|number| number % 2 == 1).sum::<u64>());
    assert_eq!(
        folder.run(&import).must_end_with(0).json(),
        imported,
        "the same import writes the same files"
    );
    let report = folder.run(&["record", "import", "--key", "key.pem", "s.jsonl"]).must_end_with(0).text();
    assert!(report.contains("(part 2: entries 651 to 1300 of 1300)"), "{report}");
}

#[test]
fn watching_a_large_session_continues_the_chain_after_its_last_part() {
    let folder = recorder();
    fs::create_dir(folder.path("sessions")).unwrap();
    folder.write("sessions/a.jsonl", large_session(1300));
    let mut watching = Watching::start(&folder);
    let (number, previous, first) = watching.checkpoint(&folder);
    assert_eq!((number, previous), (1, Value::Null));
    let (number, previous, second) = watching.checkpoint(&folder);
    assert_eq!((number, previous), (2, json!(first)));
    drop(watching);
    // Without its state, the chain is found by its files, and an unchanged session gets no checkpoint.
    fs::remove_file(folder.path("records/watch-state.json")).unwrap();
    let mut watching = Watching::start(&folder);
    let mut session = fs::OpenOptions::new().append(true).open(folder.path("sessions/a.jsonl")).unwrap();
    session.write_all(line(1300, "why?").as_bytes()).unwrap();
    let (number, previous, _) = watching.checkpoint(&folder);
    assert_eq!((number, previous), (3, json!(second)));
    assert_eq!(parsed(&folder, &watching.newest)["source"]["part"]["number"], 1);
}

#[test]
fn an_entry_that_is_too_large_for_a_statement_can_be_left_out() {
    let folder = recorder();
    folder.write("s.jsonl", line(0, "why?") + &line(1, &"because ".repeat((1 << 20) + 1)));
    let import = ["record", "import", "--json", "s.jsonl"];
    assert_eq!(folder.run(&import).must_end_with(1).error(), "record-too-large");
    assert!(!folder.has("s.record.json"));
    folder.run(&[&import[..], &["--without", "assistant"]].concat()).must_end_with(0);
}

#[test]
fn watching_tries_a_session_again_that_was_too_large_when_it_is_started_with_other_settings() {
    let folder = recorder();
    fs::create_dir(folder.path("sessions")).unwrap();
    folder.write("sessions/a.jsonl", line(0, "why?") + &line(1, &"because ".repeat((1 << 20) + 1)));
    fs::copy(session("cursor.jsonl"), folder.path("sessions/b.jsonl")).unwrap();
    let mut watching = Watching::start(&folder);
    assert_eq!(watching.checkpoint(&folder).0, 1);
    assert!(watching.newest.starts_with("records/b"), "{}", watching.newest);
    drop(watching);
    let mut watching = Watching::start_with(&folder, &["--key", "key.pem", "--without", "assistant"]);
    assert_eq!(watching.checkpoint(&folder).0, 1);
    assert!(watching.newest.starts_with("records/a"), "{}", watching.newest);
}

#[test]
fn a_repeated_import_keeps_the_statement_of_a_key_whose_signatures_differ_each_time() {
    let folder = Folder::new();
    folder.run(&["issuer", "new", "-o", "key.pem", "--alg", "ES256"]).must_end_with(0);
    import(&folder, "claude.jsonl", &[]);
    let first = folder.read("claude.record.json.cose");
    import(&folder, "claude.jsonl", &[]);
    assert_eq!(folder.read("claude.record.json.cose"), first);
    folder.run(&["issuer", "new", "-o", "other.pem", "--alg", "ES256"]).must_end_with(0);
    let file = session("claude.jsonl");
    let other = ["record", "import", "--json", "--key", "other.pem", file.to_str().unwrap()];
    assert_eq!(folder.run(&other).must_end_with(10).error(), "exists");
}

#[test]
fn an_entry_with_too_many_values_for_a_record_is_too_large() {
    let folder = recorder();
    let numbers = json!({ "type": "progress", "sessionId": "s", "numbers": vec![1; 1 << 20] });
    folder.write("s.jsonl", line(0, "why?") + &numbers.to_string() + "\n");
    let failed = folder.run(&["record", "import", "--json", "s.jsonl"]);
    failed.must_end_with(1);
    assert_eq!(failed.error(), "record-too-large");
    assert!(!folder.has("s.record.json"));
}

#[test]
fn a_changed_record_does_not_verify() {
    let folder = recorder();
    import(&folder, "claude.jsonl", &[]);
    let mut bytes = folder.read("claude.record.json.cose");
    let place = bytes.windows(4).position(|four| four == b"Two.").unwrap();
    bytes[place] = b't';
    folder.write("changed.cose", &bytes);
    let refused = folder.run(&["record", "verify", "--json", "changed.cose"]).must_end_with(3).error();
    assert_eq!(refused, "issuer-signature-invalid");
}

#[test]
fn a_record_verifies_whose_content_type_has_parameters_or_capitals() {
    let folder = recorder();
    import(&folder, "claude.jsonl", &[]);
    let record = folder.read("claude.record.json");
    let key = scitt::SigningKey::from_pkcs8_pem(&String::from_utf8(folder.read("key.pem")).unwrap()).unwrap();
    let issuer = scitt::Signer::public_key(&key).did_key();
    for content_type in ["application/agent-conversation; charset=utf-8", "Application/Agent-Conversation"] {
        let builder = scitt::StatementBuilder::new(record.clone()).content_type(content_type);
        let statement = builder.kid(issuer.as_str()).iss(&issuer).sub("a session").sign(&key).unwrap();
        folder.write("other.cose", statement.bytes());
        folder.run(&["record", "verify", "other.cose"]).must_end_with(0);
    }
}

#[test]
fn a_record_that_breaks_a_rule_is_not_signed() {
    let folder = recorder();
    import(&folder, "claude.jsonl", &[]);
    let mut record = parsed(&folder, "claude.record.json");
    record["session"]["entries"][0]["type"] = json!("remark");
    folder.write("bad.json", record.to_string());
    let refused =
        folder.run(&["record", "sign", "--json", "--key", "key.pem", "bad.json"]).must_end_with(1).error();
    assert_eq!(refused, "conversation-entry-type");
    assert!(!folder.has("bad.json.cose"));
    let no_record =
        folder.run(&["record", "sign", "--json", "--key", "key.pem", "key.pem"]).must_end_with(1).error();
    assert_eq!(no_record, "no-record");
}

#[test]
fn a_registered_record_verifies_with_its_receipt() {
    let dev = Dev::start();
    let folder = &dev.folder;
    let file = session("codex.jsonl");
    let recorder = ["--key", "tabellion-dev/issuer.key", "--iss", "https://dev.issuer.example"];
    folder.run(&[&["record", "import", file.to_str().unwrap()][..], &recorder].concat()).must_end_with(0);
    folder.run(&["register", "--dev", "codex.record.json.cose"]).must_end_with(0);
    let file = "codex.record.json.cose.transparent.cose";
    let verified = folder.run(&["record", "verify", "--json", file]).must_end_with(0).json();
    assert_eq!((&verified["receipts"], &verified["trace_metadata"]), (&json!(1), &json!("agrees")));
}

#[test]
fn show_prints_the_conversation_and_escapes_what_a_terminal_would_obey() {
    let folder = recorder();
    let line = json!({
        "type": "user", "sessionId": "s", "uuid": "u1",
        "message": { "role": "user", "content": "first\u{1b}[2J\nsecond" },
    });
    folder.write("s.jsonl", format!("{line}\n"));
    folder.run(&["record", "import", "s.jsonl"]).must_end_with(0);
    let shown = folder.run(&["record", "show", "s.record.json"]).must_end_with(0).text();
    assert!(shown.contains("  first\\u{1b}[2J\n  second\n"), "{shown}");
    assert!(!shown.contains('\u{1b}'));
}

#[test]
fn search_finds_entries_by_text_tool_type_and_time() {
    let folder = recorder();
    import(&folder, "claude.jsonl", &[]);
    let found = |flags: &[&str]| -> Vec<Value> {
        let arguments = ["record", "search", "--json", "claude.record.json.cose"];
        let found = folder.run(&[&arguments, flags].concat()).must_end_with(0).json();
        found["entries"].as_array().unwrap().iter().map(|entry| entry["pointer"].clone()).collect()
    };
    assert_eq!(found(&["--tool", "Bash"]), ["/session/entries/3/children/0"]);
    assert_eq!(found(&["--type", "reasoning"]), ["/session/entries/2/children/0"]);
    assert_eq!(found(&["--text", "MAKE test"]), ["/session/entries/3/children/0"]);
    let late = ["--since", "2026-03-01T10:00:02Z", "--until", "2026-03-01T10:00:02Z"];
    assert_eq!(
        found(&late),
        ["/session/entries/3", "/session/entries/3/children/0"],
        "children have their time"
    );
}

#[test]
fn a_redacted_record_names_the_original_and_can_be_signed() {
    let folder = recorder();
    import(&folder, "claude.jsonl", &[]);
    let redact = ["record", "redact", "--json", "claude.record.json.cose", "-o", "less.json"];
    folder.run(&[&redact[..], &["--only", "user,assistant"]].concat()).must_end_with(0);
    let record = parsed(&folder, "less.json");
    let digest = scitt_digest(&folder.read("claude.record.json"));
    assert_eq!(record["redacted-from"], digest);
    assert!(!record.to_string().contains("make test"));
    folder.run(&["record", "sign", "--key", "key.pem", "less.json"]).must_end_with(0);
    folder.run(&["record", "verify", "less.json.cose"]).must_end_with(0);
}

#[test]
fn nothing_is_left_out_without_which_a_record_is_none_and_no_broken_record_is_written() {
    let folder = recorder();
    import(&folder, "claude.jsonl", &[]);
    let redact = |file: &str, field: &str| {
        folder.run(&["record", "redact", "--json", file, "-o", "less.json", "--redact-field", field])
    };
    for field in ["/id", "/**/version"] {
        assert_eq!(redact("claude.record.json", field).must_end_with(2).error(), "usage");
    }
    folder.write("broken.json", r#"{"session":{"session-id":"s","entries":[]}}"#);
    assert_eq!(redact("broken.json", "/vcs").must_end_with(1).error(), "conversation-member");
    assert!(!folder.has("less.json"));
}

fn scitt_digest(bytes: &[u8]) -> String {
    format!("sha256:{}", merkle::EntryDigest::of(bytes))
}

#[test]
fn who_wrote_a_line_is_answered_from_the_file_attribution() {
    let folder = recorder();
    import(&folder, "claude.jsonl", &[]);
    let mut record = parsed(&folder, "claude.record.json");
    record["file-attribution"] = json!({ "files": [{ "path": "src/a.rs", "conversations": [{
        "contributor": { "type": "ai", "model-id": "claude-fixture-1" },
        "ranges": [
            { "start-line": 1, "end-line": 9 },
            { "start-line": 10, "end-line": 12, "contributor": { "type": "human" } },
        ],
    }] }] });
    folder.write("with.json", record.to_string());
    let who = |line: &str| folder.run(&["record", "who", "--json", line, "--record", "with.json"]);
    let found = who("src/a.rs:9").must_end_with(0).json();
    assert_eq!(found["attributions"][0]["model"], "claude-fixture-1");
    assert_eq!(who("src/a.rs:10").must_end_with(0).json()["attributions"][0]["contributor"], "human");
    assert_eq!(who("src/a.rs:13").must_end_with(5).error(), "not-attributed");
}

/// `record import --watch`, with the lines that it prints.
struct Watching {
    _child: OwnedChild,
    lines: BufReader<ChildStdout>,
    /// The file of the newest checkpoint.
    newest: String,
}

impl Watching {
    fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &["--key", "key.pem"])
    }

    fn start_with(folder: &Folder, flags: &[&str]) -> Self {
        Self::follow(folder, flags, "sessions")
    }

    fn follow(folder: &Folder, flags: &[&str], sessions: &str) -> Self {
        let arguments = ["record", "import", "--json", "--watch", "--every", "1", "--output", "records"];
        let mut command = folder.command(&[&arguments, flags, &[sessions]].concat());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Watching { _child: OwnedChild(child), lines, newest: String::new() }
    }

    /// Waits for the next line.
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"))
    }

    /// Waits for the next checkpoint, and returns its number and its record's previous one and digest.
    fn checkpoint(&mut self, folder: &Folder) -> (u64, Value, String) {
        let told = self.line();
        let file = told["file"].as_str().unwrap();
        let digest = scitt_digest(&folder.read(file));
        assert_eq!(told["record"], digest);
        folder.run(&["record", "verify", &format!("{file}.cose")]).must_end_with(0);
        self.newest = file.to_owned();
        (told["number"].as_u64().unwrap(), parsed(folder, file)["previous-record"].clone(), digest)
    }
}

#[test]
fn watching_signs_a_chain_of_checkpoints_that_a_restart_continues() {
    follow_a_growing_session(&[]);
}

#[test]
fn watching_continues_the_chain_of_a_session_however_its_folder_is_named() {
    let folder = recorder();
    fs::create_dir(folder.path("sessions")).unwrap();
    std::os::unix::fs::symlink("sessions", folder.path("link")).unwrap();
    let absolute = folder.path("sessions");
    let mut last = Value::Null;
    for (lines, name) in (1..).zip(["sessions", "./sessions", "link", absolute.to_str().unwrap()]) {
        folder.write("sessions/a.jsonl", (0..lines).map(|number| line(number, "why?")).collect::<String>());
        let mut watching = Watching::follow(&folder, &["--key", "key.pem"], name);
        let (number, previous, digest) = watching.checkpoint(&folder);
        assert_eq!((number, previous), (lines as u64, last), "{name}");
        last = json!(digest);
    }
    let missing = ["record", "import", "--json", "--watch", "--key", "key.pem", "missing"];
    assert_eq!(folder.run(&missing).must_end_with(5).error(), "file-not-found");
}

#[test]
fn a_chain_of_checkpoints_has_its_links_if_the_name_of_the_session_is_left_out() {
    follow_a_growing_session(&["--redact-field", "/session/session-id"]);
}

fn follow_a_growing_session(flags: &[&str]) {
    let folder = recorder();
    let flags = [&["--key", "key.pem"], flags].concat();
    let start = || Watching::start_with(&folder, &flags);
    fs::create_dir(folder.path("sessions")).unwrap();
    let text = fs::read_to_string(session("claude.jsonl")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let append = |lines: &[&str]| {
        let file = fs::OpenOptions::new().create(true).append(true).open(folder.path("sessions/a.jsonl"));
        file.unwrap().write_all(lines.concat().as_bytes()).unwrap();
    };
    append(&lines[..2]);
    let mut watching = start();
    let (number, previous, first) = watching.checkpoint(&folder);
    assert_eq!((number, previous), (1, Value::Null));
    append(&lines[2..4]);
    let (number, previous, second) = watching.checkpoint(&folder);
    assert_eq!((number, previous), (2, json!(first)));
    drop(watching);
    // Half a line waits for its end: the next checkpoint has five lines.
    append(&[lines[4], &lines[5][..20]]);
    let mut watching = start();
    let (number, previous, third) = watching.checkpoint(&folder);
    assert_eq!((number, previous), (3, json!(second)));
    assert_eq!(parsed(&folder, &watching.newest)["source"]["lines"], 5);
    drop(watching);
    // Signed checkpoints that a crash kept out of the state are found by their names.
    fs::remove_file(folder.path("records/watch-state.json")).unwrap();
    append(&[&lines[5][20..]]);
    let (number, previous, _) = start().checkpoint(&folder);
    assert_eq!((number, previous), (4, json!(third)));
}

#[test]
fn of_the_sessions_of_a_source_only_the_one_that_has_grown_gets_a_checkpoint() {
    for flags in [&[][..], &["--redact-field", "/session/session-id"]] {
        let folder = recorder();
        copy(&session("opencode"), &folder.path("sessions"));
        let mut watching = Watching::start_with(&folder, &[&["--key", "key.pem"], flags].concat());
        let first = [watching.checkpoint(&folder), watching.checkpoint(&folder)];
        let more = json!({ "id": "prt_9", "type": "text", "text": "more", "messageID": "msg_2", "sessionID": "ses_1" });
        folder.write("sessions/part/msg_2/prt_9.json", more.to_string());
        let (number, previous, _) = watching.checkpoint(&folder);
        assert_eq!(number, 2);
        assert!(first.iter().any(|(_, _, digest)| previous == *digest), "{previous}");
        let records = fs::read_dir(folder.path("records")).unwrap();
        let signed = records
            .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "cose"));
        assert_eq!(signed.count(), 3);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[test]
fn checkpoints_wait_for_the_log_over_a_restart_and_are_registered_in_their_order() {
    let dev = Dev::start();
    let folder = &dev.folder;
    fs::create_dir(folder.path("sessions")).unwrap();
    let text = fs::read_to_string(session("claude.jsonl")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let recorder = ["--key", "tabellion-dev/issuer.key", "--iss", "https://dev.issuer.example", "--register"];
    let nowhere = free_address();
    folder.write("sessions/a.jsonl", lines[..2].concat());
    let unreachable = format!("http://{nowhere}");
    let mut watching = Watching::start_with(folder, &[&recorder[..], &["--url", &unreachable]].concat());
    let (_, _, first) = watching.checkpoint(folder);
    drop(watching);
    folder.write("sessions/a.jsonl", lines[..4].concat());
    let log = ["--url", dev.url(), "--trust", "tabellion-dev/trust.toml"];
    let mut watching = Watching::start_with(folder, &[&recorder[..], &log].concat());
    let (number, previous, _) = watching.checkpoint(folder);
    assert_eq!((number, previous), (2, json!(first)));
    for number in [1, 2] {
        let registered = watching.line();
        let name = registered["name"].as_str().unwrap();
        assert!(name.ends_with(&format!(".{number}.record.json.cose")), "{registered}");
        let file = format!("records/{name}.transparent.cose");
        let verified = folder.run(&["record", "verify", "--json", &file]).must_end_with(0).json();
        assert_eq!(verified["receipts"], 1);
        let entry = registered["entry"].as_str().unwrap();
        let found = Connection::to(dev.url()).get(&format!("/entries/{entry}"));
        assert_eq!(found.status, 200);
    }
}

#[test]
fn one_bad_session_in_a_folder_does_not_stop_the_others() {
    let folder = recorder();
    fs::create_dir(folder.path("sessions")).unwrap();
    let broken = "{\"type\":\"t\",\"hash\":\"a\",\"prev_hash\":\"\"}\n{\"type\":\"t\",\"hash\":\"b\",\"prev_hash\":\"c\"}\n";
    folder.write("sessions/broken.jsonl", broken);
    make_pipe(&folder.path("sessions/pipe.jsonl"));
    fs::copy(session("cursor.jsonl"), folder.path("sessions/cursor.jsonl")).unwrap();
    let imported = folder.run(&["record", "import", "--json", "sessions"]).must_end_with(1).json();
    assert_eq!(imported["failed"].as_array().unwrap().len(), 1);
    assert!(folder.has("cursor.record.json"));
}

#[test]
fn watching_tells_sources_of_similar_names_apart_and_goes_on_after_a_bad_one() {
    let folder = recorder();
    fs::create_dir_all(folder.path("sessions/a")).unwrap();
    make_pipe(&folder.path("sessions/0.jsonl"));
    fs::copy(session("cursor.jsonl"), folder.path("sessions/a/b.jsonl")).unwrap();
    fs::copy(session("cursor.jsonl"), folder.path("sessions/a-b.jsonl")).unwrap();
    let mut watching = Watching::start(&folder);
    for _ in 0..2 {
        assert_eq!(watching.checkpoint(&folder).0, 1);
    }
    let names = fs::read_dir(folder.path("records")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().ends_with(".cose")).count(), 2);
}

#[test]
fn watching_notes_a_link_that_it_does_not_follow() {
    let folder = recorder();
    fs::create_dir(folder.path("sessions")).unwrap();
    std::os::unix::fs::symlink(session("cursor.jsonl"), folder.path("sessions/cursor.jsonl")).unwrap();
    let arguments = ["record", "import", "--watch", "--key", "key.pem", "--output", "records", "sessions"];
    let mut command = folder.command(&arguments);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut note = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut note).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let link = fs::canonicalize(folder.path("sessions")).unwrap().join("cursor.jsonl");
    assert_eq!(note, format!("{}: a link, which is not followed\n", link.display()));
}

/// Makes a pipe, which nobody writes to.
fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
