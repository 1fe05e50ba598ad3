//! Every native entry is kept, skipped with a reason, or reported as broken.

use serde_json::{Value, json};
use translators::{
    Format, NativeOutcome, SessionSource, Settings, SourceFile, Translation, TranslationAccount, translate,
};

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
fn an_event_that_says_more_than_a_response_item_is_no_echo_of_it() {
    let line = |kind: &str, payload: Value| json!({ "type": kind, "payload": payload }).to_string() + "\n";
    let content =
        json!([{ "type": "input_text", "text": "go on" }, { "type": "input_image", "image_url": "data:x" }]);
    let item = line("response_item", json!({ "type": "message", "role": "user", "content": content }));
    let nothing = json!({ "kind": "plain", "images": null, "local_images": [], "text_elements": [] });
    for (more, skipped) in [
        (nothing, 1),
        (json!({ "images": ["data:x"] }), 1),
        (json!({ "images": ["data:y"] }), 0),
        (json!({ "local_images": ["/srv/shop/p.png"] }), 0),
        (json!({ "of_tomorrow": 1 }), 0),
        (json!({ "text": "another" }), 0),
    ] {
        let mut event = json!({ "type": "user_message", "message": "go on" });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let text = item.clone() + &line("event_msg", event);
        let account = translated(&SessionSource::file("s.jsonl", text)).account;
        assert_eq!(account.skipped().values().sum::<u64>(), skipped, "{more}");
    }
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
        (b"\xff\xfe{\0}\0", "UTF-16"),
        (b"hello", "format is not one of"),
        (b"[1, 2]", "format is not one of"),
        (b"{\"a\": 1}", "format is not one of"),
        (
            b"{\n\"type\": \"user\", \"sessionId\": \"s\"\n}",
            "no session in claude-jsonl found; line 1: at byte 1",
        ),
    ] {
        let error =
            translate(&SessionSource::file("x", bytes), &Settings::default()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_byte_order_mark_and_line_breaks_of_windows_change_nothing_in_the_entries() {
    for (name, format) in FILES {
        let plain = file(name);
        let text = String::from_utf8(plain.files()[0].bytes.clone()).unwrap();
        let windows = SessionSource::file(name, format!("\u{feff}{}", text.replace('\n', "\r\n")));
        let (plain, windows) = (translated(&plain), translated(&windows));
        assert_eq!((windows.format, &windows.account), (format, &plain.account), "{name}");
        let entries = |translation: &Translation| translation.records[0].0.value()["session"].clone();
        assert_eq!(entries(&windows), entries(&plain), "{name}");
    }
}

#[test]
fn a_file_that_ends_in_the_middle_of_a_line_loses_only_this_line() {
    let whole = file("codex.jsonl").files()[0].bytes.clone();
    let lines = u64::try_from(whole.iter().filter(|byte| **byte == b'\n').count()).unwrap();
    let end = whole.iter().rposition(|byte| *byte == b'}').unwrap();
    let account = translated(&SessionSource::file("codex.jsonl", &whole[..end])).account;
    assert_eq!((account.total, account.accounted(), account.broken.len()), (lines, lines, 1));
}

/// A line of Claude Code with this JSON text, without its quotes, as what the user says.
fn claude_line(content: &str) -> Vec<u8> {
    let line =
        r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"CONTENT"}}"#.to_owned() + "\n";
    line.replace("CONTENT", content).into_bytes()
}

fn contents(translation: &Translation) -> Vec<String> {
    let record = translation.records[0].0.value();
    let entries = record["session"]["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_character_that_no_record_can_have_is_replaced_and_noted_and_the_entry_stays() {
    let not_utf8: Vec<u8> =
        claude_line("a~b").into_iter().map(|byte| if byte == b'~' { 0xff } else { byte }).collect();
    let lines = [
        claude_line(r"cut \ud83d"),
        claude_line(r"\ude00 \ud83d\ude00 \\ud83d \ud83d\ud83d\uDE00 \u00e9"),
        not_utf8,
        claude_line("plain"),
    ];
    let translation = translated(&SessionSource::file("s.jsonl", lines.concat()));
    assert_eq!(
        contents(&translation),
        ["cut \u{fffd}", "\u{fffd} \u{1f600} \\ud83d \u{fffd}\u{1f600} \u{e9}", "a\u{fffd}b", "plain"]
    );
    let noted: Vec<_> = translation.account.remarks.iter().map(|remark| remark.line).collect();
    assert_eq!((noted, translation.account.broken.len()), (vec![Some(1), Some(2), Some(3)], 0));
}

#[test]
fn such_a_character_does_not_cost_a_session_of_one_document_or_of_a_database() {
    let gemini = br#"{"sessionId":"g","projectHash":"h","messages":[{"id":"1","type":"user","content":"cut \ud83d"}]}"#;
    let row = |path: &str, columns: Value| SourceFile {
        path: path.to_owned(),
        bytes: columns.to_string().into_bytes(),
    };
    let part = r#"{"type":"text","text":"cut \ud83d"}"#;
    let rows = vec![
        row("session/s", json!({ "id": "s", "directory": "/w" })),
        row("message/m", json!({ "id": "m", "session_id": "s", "data": r#"{"role":"user"}"# })),
        row("part/p", json!({ "id": "p", "session_id": "s", "message_id": "m", "data": part })),
    ];
    for source in [SessionSource::file("g.json", gemini.as_slice()), SessionSource::rows(rows)] {
        let translation = translated(&source);
        assert_eq!(contents(&translation), ["cut \u{fffd}"], "{}", translation.format);
        assert_eq!(translation.account.remarks.len(), 1, "{}", translation.format);
    }
}

#[test]
fn files_that_were_joined_lose_nothing_but_what_was_cut_off() {
    let line = |content: &str| String::from_utf8(claude_line(content)).unwrap();
    let joined = [line("one").trim_end(), &line("two"), "\u{feff}", &line("three")].concat();
    let translation = translated(&SessionSource::file("s.jsonl", joined));
    assert_eq!(contents(&translation), ["one", "two", "three"]);
    assert_eq!((translation.account.total, translation.account.broken.len()), (3, 0));
    let cut = [line("one").trim_end(), r#"{"type":"us"#, "\n", &line("two")].concat();
    let translation = translated(&SessionSource::file("s.jsonl", cut));
    assert_eq!(contents(&translation), ["one", "two"]);
    assert_eq!((translation.account.total, translation.account.broken.len()), (3, 1));
}

#[test]
fn documents_that_were_joined_lose_nothing_but_what_was_cut_off() {
    let session = |id: &str| {
        let call =
            json!({ "id": "c", "name": "t", "args": { "files": ["a.txt", "b.txt"] }, "status": "success" });
        let messages = json!([
            { "id": format!("{id}-1"), "type": "user", "content": format!("{id} asks") },
            { "id": format!("{id}-2"), "type": "gemini", "content": format!("{id} hears"), "toolCalls": [call] },
        ]);
        json!({ "sessionId": id, "projectHash": "h", "messages": messages })
    };
    let indented = |id: &str| serde_json::to_string_pretty(&session(id)).unwrap();
    let compact = |id: &str| session(id).to_string();
    let (one, both) = (&["s asks", "s hears"][..], &["s asks", "s hears", "r asks", "r hears"][..]);
    for (text, expected, broken) in [
        (indented("s") + "\n{\n  \"sessionId\": \"r\",\n  \"mess", one, 1),
        (indented("s") + "\n}\n", one, 1),
        (indented("s") + &indented("r"), both, 0),
        (compact("s") + "\n" + &indented("r")[..9], one, 2),
        (compact("s") + "\n" + &compact("r"), both, 0),
        (compact("s") + "\n" + &indented("r"), both, 0),
        (compact("s") + &indented("r"), both, 0),
        (compact("s") + "\n{\"cut\":\n" + &indented("r"), both, 1),
    ] {
        let translation = translated(&SessionSource::file("s.json", text.clone()));
        let account = &translation.account;
        assert_eq!((account.broken.len(), account.accounted()), (broken, account.total), "{text}");
        let record = translation.records[0].0.value();
        let entries = record["session"]["entries"].as_array().unwrap();
        let said: Vec<&str> = entries.iter().filter_map(|entry| entry["content"].as_str()).collect();
        assert_eq!((said.as_slice(), translation.records[0].0.session_id()), (expected, "s"), "{text}");
    }
    let settings = Settings { format: Some(Format::Gemini), ..Settings::default() };
    let whole = indented("s");
    let cut = SessionSource::file("s.json", &whole[..whole.len() - 20]);
    let error = translate(&cut, &settings).unwrap_err().to_string();
    assert!(error.contains("no session in gemini-json found"), "{error}");
}

#[test]
fn lines_after_one_that_was_cut_off_at_the_beginning_of_a_gemini_session_are_kept() {
    let message = json!({ "id": "1", "type": "user", "content": "one" });
    let end = json!({ "$set": { "lastUpdated": "2026-03-01T10:00:00Z" } });
    let settings = Settings { format: Some(Format::Gemini), ..Settings::default() };
    for cut in ["", "\"directories\":", "\"directories\":["] {
        let text = format!("{{\"sessionId\":\"s\",{cut}\n{message}\n{end}\n");
        let translation = translate(&SessionSource::file("s.jsonl", text), &settings).unwrap();
        assert_eq!(contents(&translation), ["one"], "{cut}");
        assert_eq!((translation.account.total, translation.account.broken.len()), (3, 1), "{cut}");
    }
}

#[test]
fn a_text_that_is_joined_to_one_with_a_flaw_is_an_entry_of_its_own() {
    let not_utf8 =
        b"{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{\"role\":\"user\",\"content\":\"\xff\"}}";
    let flawed: [(&[u8], usize); 4] = [
        (not_utf8, 0),
        (br#"{"type":"user","sessionId":"s","uuid":"\ud83d"}"#, 0),
        (br#"{"type":"x","type":"y"}"#, 0),
        (b"{]", 1),
    ];
    for (flawed, broken) in flawed {
        let bytes = [claude_line("one").as_slice(), flawed, b"\xef\xbb\xbf ", &claude_line("two")].concat();
        let account = translated(&SessionSource::file("s.jsonl", bytes)).account;
        assert_eq!((account.total, account.broken.len()), (3 - broken as u64, broken), "{account:?}");
        assert_eq!(account.remarks.len(), 1 - broken, "{account:?}");
    }
}

#[test]
fn another_session_in_the_same_file_is_noted_and_the_first_one_names_the_record() {
    let text = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let codex = |id: &str| json!({ "type": "session_meta", "payload": { "id": id } });
    let gemini = |id: &str| json!({ "sessionId": id, "projectHash": "h" });
    let message = json!({ "id": "1", "type": "user", "content": "x" });
    for lines in [
        text(&[codex("first"), codex("second"), codex("first")]),
        text(&[gemini("first"), message, gemini("second"), gemini("first")]),
    ] {
        let translation = translated(&SessionSource::file("s.jsonl", lines));
        assert_eq!(translation.records[0].0.session_id(), "first");
        let remarks: Vec<&str> =
            translation.account.remarks.iter().map(|remark| remark.reason.as_str()).collect();
        assert_eq!(remarks, ["some lines name another session, \"second\""], "{}", translation.format);
        let record = translation.records[0].0.value().to_string();
        assert!(record.contains("second"), "what describes it is kept: {record}");
    }
}

#[test]
fn sessions_of_qwen_code_and_pi_are_not_taken_for_those_of_codex_or_claude_code() {
    let pi = [
        json!({ "type": "session", "version": 3, "id": "p", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/w" }),
        json!({ "type": "message", "id": "a", "parentId": null, "message": { "role": "assistant", "content": [] } }),
    ];
    let qwen = |kind: &str, member: &str, content: Value| {
        let mut line =
            json!({ "uuid": "1", "parentUuid": null, "sessionId": "q", "type": kind, "cwd": "/w" });
        line[member] = content;
        line
    };
    let qwen = [
        qwen("system", "systemPayload", json!({ "uiEvent": {} })),
        qwen("user", "message", json!({ "role": "user", "parts": [{ "text": "x" }] })),
    ];
    for (lines, format) in [(pi, Format::Pi), (qwen, Format::Qwen)] {
        for line in lines {
            assert_eq!(
                translated(&SessionSource::file("s.jsonl", line.to_string())).format,
                format,
                "{line}"
            );
        }
    }
}

#[test]
fn lines_of_unknown_types_and_with_repeated_identifiers_are_kept_however_long_they_are() {
    let long = "x".repeat(1 << 20);
    let line = |kind: &str, text: &str| {
        json!({ "type": kind, "sessionId": "s", "uuid": "u", "data": text }).to_string() + "\n"
    };
    let text = [line("user", "one"), line("of-tomorrow", &long), line("of-tomorrow", "two")].concat();
    let translation = translated(&SessionSource::file("s.jsonl", text));
    let kept = [(NativeOutcome::Kept("system-event"), 2)].into();
    assert_eq!(translation.account.entries["of-tomorrow"], kept);
    let record = translation.records[0].0.value();
    let entries = &record["session"]["entries"];
    assert_eq!(entries[1]["data"]["data"].as_str().unwrap().len(), long.len());
    let ids: Vec<&Value> = entries.as_array().unwrap().iter().map(|entry| &entry["id"]).collect();
    assert_eq!(ids, [&json!("u"), &Value::Null, &Value::Null]);
}
