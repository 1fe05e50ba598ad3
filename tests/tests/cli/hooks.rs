//! `tabellion record hook`: hooks of coding agents that record a session when it ends, with the agents' own events and
//! session files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use black_box::cli::{Dev, Ended, Folder};
use black_box::until;
use serde_json::{Value, json};

/// Maximum time until a process that a hook has started is done.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home folder with a recorder's key, and one session of each agent where the agent keeps it.
fn home() -> Folder {
    let folder = Folder::new();
    prepare(&folder);
    folder
}

fn prepare(folder: &Folder) {
    folder.run(&["issuer", "new", "-o", "key.pem", "--alg", "EdDSA"]).must_end_with(0);
    for (fixture, place) in [
        ("claude.jsonl", ".claude/projects/-srv-shop/ses-1.jsonl"),
        ("codex.jsonl", ".codex/sessions/2026/03/01/rollout-2026-03-01T10-00-00-rollout-1.jsonl"),
        ("cursor.jsonl", ".cursor/projects/srv-shop/agent-transcripts/conv-1/conv-1.jsonl"),
    ] {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/translators/tests/fixtures");
        fs::create_dir_all(folder.path(place).parent().unwrap()).unwrap();
        fs::copy(fixtures.join(fixture), folder.path(place)).unwrap();
    }
}

/// An event as Claude Code 2 gives it on standard input.
fn claude_event(folder: &Folder) -> String {
    let path = folder.path(".claude/projects/-srv-shop/ses-1.jsonl");
    json!({
        "session_id": "ses-1", "transcript_path": path, "cwd": "/srv/shop", "permission_mode": "default",
        "hook_event_name": "SessionEnd", "reason": "prompt_input_exit"
    })
    .to_string()
}

/// An event as Codex gives it as the last argument.
const CODEX_EVENT: &str = r#"{"type":"agent-turn-complete","thread-id":"rollout-1","turn-id":"t-1","cwd":"/srv/shop","client":"codex-tui","input-messages":["What is here?"],"last-assistant-message":"A shop."}"#;

/// An event as Cursor's command line gives it on standard input: without the path of the transcript.
const CURSOR_EVENT: &str = r#"{"conversation_id":"conv-1","generation_id":"g-1","model":"m","hook_event_name":"sessionEnd","cursor_version":"3.24.18","workspace_roots":["/srv/shop"],"user_email":null,"transcript_path":null,"session_id":"conv-1","reason":"completed","duration_ms":5}"#;

fn run(folder: &Folder, agent: &str, more: &[&str], event: &str) -> Ended {
    let arguments = ["record", "hook", "run", agent, "--key", "key.pem", "--output", "records", "--wait"];
    folder.run_with(&[&arguments[..], more].concat(), event.as_bytes())
}

/// The names of the signed records, in order.
fn records(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("records")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut signed: Vec<String> = names.filter(|name| name.ends_with(".record.json.cose")).collect();
    signed.sort();
    signed
}

#[test]
fn each_agents_session_becomes_a_signed_record_when_it_ends() {
    let folder = home();
    let event = claude_event(&folder);
    for (agent, more, event, session) in [
        ("claude-code", &[][..], event.as_str(), "ses-1"),
        ("codex", &["--", CODEX_EVENT], "", "rollout-1"),
        ("cursor", &[], CURSOR_EVENT, "conv-1"),
    ] {
        let before = records(&folder);
        let ended = run(&folder, agent, more, event);
        ended.must_end_with(0);
        assert_eq!(ended.stderr, "", "{agent}: {ended}");
        let new: Vec<String> = records(&folder).into_iter().filter(|name| !before.contains(name)).collect();
        assert_eq!(new.len(), 1, "{agent}: {new:?}");
        let file = format!("records/{}", new[0]);
        let verified = folder.run(&["record", "verify", "--json", &file]).must_end_with(0).json();
        assert!(verified["session"].as_str().unwrap().contains(session), "{agent}: {verified}");
        run(&folder, agent, more, event).must_end_with(0);
        assert_eq!(records(&folder).len(), before.len() + 1, "{agent}: an unchanged session has one record");
    }
    assert!(!folder.has("records/hook.log"));
}

#[test]
fn a_session_file_that_has_become_smaller_since_its_last_checkpoint_is_noted() {
    let folder = home();
    let event = claude_event(&folder);
    let session = folder.path(".claude/projects/-srv-shop/ses-1.jsonl");
    let text = fs::read_to_string(&session).unwrap();
    let record = || run(&folder, "claude-code", &[], &event);
    assert_eq!(record().must_end_with(0).stderr, "");
    let beginning: String = text.split_inclusive('\n').take(3).collect();
    for smaller in [beginning.as_str(), ""] {
        fs::write(&session, smaller).unwrap();
        let noted = record().must_end_with(0).stderr.clone();
        let size = format!("smaller: {} bytes, after ", smaller.len());
        assert!(noted.contains(&size), "{noted}");
    }
    assert_eq!(records(&folder).len(), 2);
    fs::write(&session, text).unwrap();
    assert_eq!(record().must_end_with(0).stderr, "");
    assert_eq!(records(&folder).len(), 3);
}

#[test]
fn a_session_that_goes_on_becomes_a_chain_and_waits_for_a_log_that_does_not_answer() {
    let dev = Dev::start();
    let folder = &dev.folder;
    prepare(folder);
    let record = |url: &str| {
        let agent = ["record", "hook", "run", "claude-code", "--output", "records", "--wait"];
        let key = ["--key", "tabellion-dev/issuer.key", "--iss", "https://dev.issuer.example"];
        let log = ["--register", "--trust", "tabellion-dev/trust.toml", "--timeout", "1", "--url", url];
        folder.run_with(&[&agent[..], &key, &log].concat(), claude_event(folder).as_bytes()).must_end_with(0);
    };
    record("http://127.0.0.1:1");
    let first = records(folder);
    assert_eq!(first.len(), 1);
    assert!(!folder.has(&format!("records/{}.receipt", first[0])));

    let session = folder.path(".claude/projects/-srv-shop/ses-1.jsonl");
    let mut text = fs::read_to_string(&session).unwrap();
    let question = text.lines().find(|line| line.contains("\"type\":\"user\"")).unwrap();
    let mut more: Value = serde_json::from_str(question).unwrap();
    more["uuid"] = "later".into();
    text.push_str(&format!("{more}\n"));
    fs::write(&session, text).unwrap();
    record(dev.url());
    let both = records(folder);
    assert_eq!(both.len(), 2, "{both:?}");
    for name in &both {
        folder.run(&["verify", &format!("records/{name}.transparent.cose")]).must_end_with(0);
    }
    let follows = |name: &&String| {
        let record = folder.read(&format!("records/{}", name.trim_end_matches(".cose")));
        !serde_json::from_slice::<Value>(&record).unwrap()["previous-record"].is_null()
    };
    assert_eq!(both.iter().filter(follows).count(), 1, "{both:?}");
}

#[test]
fn what_is_wrong_is_written_down_and_never_fails_the_agent() {
    let folder = home();
    folder.write("outside.jsonl", "{}");
    let elsewhere = claude_event(&folder).replace("-srv-shop/ses-1.jsonl", "../../outside.jsonl");
    let absent = claude_event(&folder).replace("ses-1", "ses-9");
    let long = format!("{{\"hook_event_name\":\"SessionEnd\",\"session_id\":\"{}\"}}", "a".repeat(9 << 20));
    for (event, why) in [
        ("", "not an event of claude-code"),
        ("\u{1b}[2J{", "not an event of claude-code"),
        (r#"{"hook_event_name":"SessionEnd","session_id":"../x"}"#, "not an event of claude-code"),
        (&elsewhere, "another user's file"),
        (&absent, "no file of session ses-9"),
        (&long, "not an event of claude-code"),
    ] {
        let ended = run(&folder, "claude-code", &[], event);
        ended.must_end_with(0);
        assert!(ended.text().is_empty() && ended.stderr.contains(why), "{why}: {ended}");
        let log = String::from_utf8(folder.read("records/hook.log")).unwrap();
        assert!(log.lines().last().unwrap().contains(why), "{log}");
        assert!(!log.contains('\u{1b}'), "{log}");
    }
    assert!(records(&folder).is_empty());
    let other = run(&folder, "claude-code", &[], r#"{"hook_event_name":"PreToolUse","session_id":"a"}"#);
    assert_eq!(other.must_end_with(0).stderr, "", "{other}");
}

#[test]
fn the_hook_ends_before_the_session_is_recorded() {
    let folder = home();
    let arguments = ["record", "hook", "run", "cursor", "--key", "key.pem", "--output", "records"];
    folder.run_with(&arguments, CURSOR_EVENT.as_bytes()).must_end_with(0);
    until(PATIENCE, || "no record", || !records(&folder).is_empty());
}

#[test]
fn installing_and_undoing_leaves_everything_else_as_it_was() {
    let folder = home();
    let claude = "{\n  \"model\": \"m\",\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n";
    let codex = "model = \"m\" # mine\nnotify = [\"touch\", \"notified\"]\n\n[tui]\ntheme = \"dark\"\n";
    folder.write(".claude/settings.json", claude);
    folder.write(".codex/config.toml", codex);
    let install = |agent: &str, more: &[&str]| {
        folder.run(&[&["record", "hook", "install", agent, "--json"], more].concat()).must_end_with(0).json()
    };
    let flags = ["--key", "key.pem", "--output", "records"];
    for (agent, file, before) in [
        ("claude-code", ".claude/settings.json", Some(claude)),
        ("codex", ".codex/config.toml", Some(codex)),
        ("cursor", ".cursor/hooks.json", None),
    ] {
        assert_eq!(install(agent, &flags)["changed"], true, "{agent}");
        let installed = folder.read(file);
        assert_eq!(install(agent, &flags)["changed"], false, "{agent}");
        assert_eq!(folder.read(file), installed, "{agent}");
        let text = String::from_utf8(installed).unwrap();
        assert!(
            text.contains("record") && text.contains(&folder.path("key.pem").display().to_string()),
            "{text}"
        );
        start_as_the_agent_does(&folder, agent, &text);
        assert_eq!(install(agent, &["--undo"])["changed"], true, "{agent}");
        let after = String::from_utf8(folder.read(file)).unwrap();
        assert_eq!(after, before.unwrap_or("{\n  \"version\": 1\n}\n"), "{agent}");
        assert_eq!(install(agent, &["--undo"])["changed"], false, "{agent}");
    }
    assert!(folder.has("notified"), "the program that Codex notified before is still notified");
    folder.write(".claude/settings.json", "{\"hooks\": 1}");
    let refused = ["record", "hook", "install", "claude-code", "--json"];
    let refused = folder.run(&[&refused[..], &flags].concat());
    assert_eq!(refused.must_end_with(2).error(), "hook-config");
    assert_eq!(folder.read(".claude/settings.json"), b"{\"hooks\": 1}");
}

/// Starts the command in an agent's configuration as the agent does, and waits for the record.
fn start_as_the_agent_does(folder: &Folder, agent: &str, configuration: &str) {
    let before = records(folder).len();
    let mut command = match agent {
        "codex" => {
            let config: toml::Table = configuration.parse().unwrap();
            let words = config["notify"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
            let words: Vec<&str> = words.chain([CODEX_EVENT]).collect();
            let mut command = std::process::Command::new(words[0]);
            command.args(&words[1..]);
            command
        }
        _ => {
            let config: Value = serde_json::from_str(configuration).unwrap();
            let path = match agent {
                "cursor" => "/hooks/sessionEnd/0/command",
                _ => "/hooks/SessionEnd/0/hooks/0/command",
            };
            let mut command = std::process::Command::new("sh");
            command.arg("-c").arg(config.pointer(path).unwrap().as_str().unwrap());
            command
        }
    };
    folder.settle(&mut command);
    folder.write("event", if agent == "cursor" { CURSOR_EVENT.to_owned() } else { claude_event(folder) });
    command.stdin(fs::File::open(folder.path("event")).unwrap());
    assert!(command.status().unwrap().success(), "{agent}");
    until(PATIENCE, || format!("{agent}: no record"), || records(folder).len() != before);
}
