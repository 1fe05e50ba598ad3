//! Every native entry is kept, skipped with a reason, or reported as broken.

use translators::{Format, SessionSource, Settings, TranslationAccount, translate};

use crate::fixtures::{FILES, file, opencode_export, opencode_objects, opencode_tree, sources, translated};

#[test]
fn the_format_of_each_fixture_is_detected() {
    for (name, format) in FILES {
        assert_eq!(translated(&file(name)).format, format, "{name}");
    }
    for source in [opencode_tree(), opencode_objects(), opencode_export()] {
        assert_eq!(translated(&source).format, Format::OpenCode);
    }
}

#[test]
fn kept_skipped_and_broken_entries_add_up() {
    for source in sources() {
        let account = translated(&source).account;
        assert_eq!(account.accounted(), account.total, "{}: {account:#?}", source.files()[0].path);
    }
}

#[test]
fn a_broken_line_is_a_diagnostic_with_its_number() {
    let account = translated(&file("claude.jsonl")).account;
    assert_eq!(account.total, 12);
    assert_eq!(account.broken.iter().map(|broken| broken.line).collect::<Vec<_>>(), [Some(12)]);
}

#[test]
fn echoes_are_counted_and_other_events_of_the_same_type_are_kept() {
    let account = translated(&file("codex.jsonl")).account;
    assert_eq!(account.skipped(), [("echo of a response item", 2)].into());
    let count = |account: &TranslationAccount, kind: &str| account.entries[kind].values().sum::<u64>();
    assert_eq!(count(&account, "event_msg/agent_message"), 1);
    assert_eq!(count(&account, "event_msg/token_count"), 2);
}

#[test]
fn two_runs_give_the_same_bytes() {
    for source in sources() {
        let (one, two) = (translated(&source), translated(&source));
        assert_eq!(one.records[0].0.bytes(), two.records[0].0.bytes());
    }
}

#[test]
fn the_identifier_depends_on_source_session_and_settings() {
    let id = |source: &SessionSource, settings: &Settings| {
        translate(source, settings).unwrap().records[0].0.value()["id"].as_str().unwrap().to_owned()
    };
    let default = Settings::default();
    let after = Settings {
        previous_records: [("ses-1".to_owned(), "sha256:00".to_owned())].into(),
        ..Settings::default()
    };
    let (claude, cursor) = (file("claude.jsonl"), file("cursor.jsonl"));
    assert_ne!(id(&claude, &default), id(&cursor, &default));
    assert_ne!(id(&claude, &default), id(&claude, &after));
    assert_eq!(&id(&claude, &default)[14..15], "8", "a UUID of version 8");
}

#[test]
fn what_is_no_session_is_an_error() {
    for (bytes, what) in [
        (&b""[..], "empty"),
        (b"hello", "format is not one of"),
        (b"[1, 2]", "format is not one of"),
        (b"{\"a\": 1}", "format is not one of"),
    ] {
        let error =
            translate(&SessionSource::file("x", bytes), &Settings::default()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
