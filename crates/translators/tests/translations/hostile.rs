//! Arbitrary and damaged input: no panic, and no entry unaccounted for.

use data_encoding::HEXLOWER;
use proptest::prelude::*;
use registration::conversation::{ConversationRecord, Form};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::conversation;
use translators::{Format, SessionSource, Settings, SourceFile, translate};

use crate::fixtures::sources;

/// Checks a translation, if there is one.
fn check(source: &SessionSource, format: Option<Format>) {
    let Ok(translation) = translate(source, &Settings { format, ..Settings::default() }) else { return };
    assert_eq!(translation.account.accounted(), translation.account.total, "{:?}", translation.account);
    let header = conversation(0, Form::Json);
    for (record, _) in &translation.records {
        let read = ConversationRecord::read(header.header(), record.bytes());
        if let Err(violation) = read.and_then(|read| read.soundness()) {
            panic!("{violation}: {}", record.value());
        }
    }
}

/// Any JSON with the member names and texts that the readers look for.
fn native() -> impl Strategy<Value = Value> {
    let names = "type|subtype|role|message|content|payload|id|uuid|sessionId|timestamp|usage|input_tokens|info|parts\
                 |messages|messageID|sessionID|tool|state|status|output|input|time|created|tokens|cache|toolCalls\
                 |thoughts|result|args|hash|prev_hash|summary|arguments|call_id|native|children|text|\\$set|\\$rewindTo";
    let texts = "user|assistant|message|response_item|event_msg|token_count|tool|text|tool_use|tool_result|thinking|gemini\
                 |session_meta|reasoning|function_call|completed|part|[a-z]{0,3}|2026-01-01T00:00:00Z";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter_map("finite", |number| serde_json::Number::from_f64(number).map(Value::from)),
        texts.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner.clone(), 0..6).prop_map(|members| json!(members)),
            (inner, prop_oneof![Just(0), 50..130usize]).prop_map(|(inner, depth)| in_text(&inner, depth)),
        ]
    })
}

/// JSON in a text, in this many arrays.
fn in_text(inner: &Value, depth: usize) -> Value {
    Value::from(format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth)))
}

#[test]
fn numbers_that_a_record_may_not_have_as_integers_are_kept_with_an_exponent() {
    for number in ["-8.894216322050576e20", "1.8446744073709552e19", "-9.223372036854776e18"] {
        let line = format!("{{\"type\":\"novelty\",\"sessionId\":\"s\",\"n\":{number}}}\n");
        let source = SessionSource::file("x.jsonl", line);
        check(&source, Some(Format::Claude));
        let settings = Settings { format: Some(Format::Claude), ..Settings::default() };
        let record = translate(&source, &settings).unwrap().records.remove(0).0;
        let member = format!("\"n\":{}", number.replace('e', "e+"));
        let text = std::str::from_utf8(record.bytes()).unwrap();
        assert!(text.contains(&member), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in Format::ALL {
            check(&SessionSource::file("x.jsonl", bytes.clone()), Some(format));
        }
    }

    #[test]
    fn arbitrary_lines_are_accounted_for(lines in prop::collection::vec(native(), 1..8)) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        for format in Format::ALL {
            check(&SessionSource::file("x.jsonl", text.clone()), Some(format));
        }
        check(&SessionSource::file("x.jsonl", text), None);
    }

    #[test]
    fn arbitrary_trees_are_accounted_for(objects in prop::collection::vec((0..4usize, native()), 1..8)) {
        let folders = ["session/p", "message/s", "part/m", "share"];
        let file = |(number, (folder, object)): (usize, (usize, Value))| SourceFile {
            path: format!("{}/{number}.json", folders[folder]),
            bytes: object.to_string().into_bytes(),
        };
        check(&SessionSource::tree(objects.into_iter().enumerate().map(file).collect()), None);
    }

    #[test]
    fn damaged_fixtures_are_accounted_for(which in 0..14usize, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let source = sources().remove(which);
        let mut files = source.files().to_vec();
        let file = at.index(files.len());
        if !files[file].bytes.is_empty() {
            let place = at.index(files[file].bytes.len());
            files[file].bytes[place] = byte;
        }
        check(&SessionSource::tree(files), None);
    }
}

#[test]
fn messages_of_a_broken_chat_and_rows_with_odd_keys_are_accounted_for() {
    let message = json!({ "type": 1, "text": "x" }).to_string();
    let rows = [
        ("composerData:a", "{}"),
        ("composerData:b", "{"),
        ("bubbleId:a:1", message.as_str()),
        ("bubbleId:b:2", message.as_str()),
        ("bubbleId:odd", message.as_str()),
    ];
    let row = |(path, value): (&str, &str)| SourceFile { path: path.to_owned(), bytes: value.into() };
    let source = SessionSource::rows(rows.map(row).into());
    check(&source, None);
    let account = translate(&source, &Settings::default()).unwrap().account;
    let reasons = ["belongs to no session of the source", "its key names no chat and message"];
    assert_eq!(account.skipped(), reasons.map(|reason| (reason, 1)).into());
    assert_eq!((account.total, account.broken.len()), (5, 1));
}

#[test]
fn json_that_cannot_be_in_a_record_leaves_its_digest() {
    let first = json!({ "type": "user", "sessionId": "s", "message": { "role": "user", "content": "x" } });
    let deep = format!("{{\"type\":\"x\",\"d\":{}}}", in_text(&json!(1), 60).as_str().unwrap());
    let reserved = r#"{"$serde_json::private::Number":"1"}"#;
    for line in [deep.as_str(), r#"{"a":1,"a":2}"#, reserved, r#"{"n":1e400}"#] {
        let source = SessionSource::file("s.jsonl", format!("{first}\n{line}\n"));
        for format in
            [Format::Claude, Format::Codex, Format::Cursor, Format::Gemini, Format::Qwen, Format::Pi]
        {
            check(&source, Some(format));
            let settings = Settings { format: Some(format), ..Settings::default() };
            let translation = translate(&source, &settings).unwrap();
            let record = translation.records[0].0.value();
            let entry = &record["session"]["entries"][1];
            assert_eq!(entry["event-type"], "unreadable-line", "{format}: {entry}");
            let digest = HEXLOWER.encode(&Sha256::digest(line));
            assert_eq!(entry["data"]["digest"], format!("sha256:{digest}"), "{format}: {entry}");
            assert_eq!(translation.account.remarks[0].line, Some(2), "{format}");
        }
    }
}

#[test]
fn a_document_that_cannot_be_in_a_record_leaves_its_digest() {
    let unreadable = "{\n  \"a\": 1,\n  \"a\": 2\n}";
    let digest = HEXLOWER.encode(&Sha256::digest(unreadable));
    let message = json!({ "id": "1", "type": "user", "content": "x" });
    let gemini = json!({ "sessionId": "s", "projectHash": "h", "messages": [message] });
    let opencode = json!({ "id": "s", "directory": "/w", "time": { "created": 1 } });
    for (format, first) in [(Format::Gemini, gemini), (Format::OpenCode, opencode)] {
        let first = format!("{first:#}\n");
        let source = SessionSource::file("s.json", format!("{first}{unreadable}\n"));
        check(&source, Some(format));
        let settings = Settings { format: Some(format), ..Settings::default() };
        let translation = translate(&source, &settings).unwrap();
        let record = translation.records[0].0.value().to_string();
        assert!(record.contains(&format!("sha256:{digest}")), "{format}: {record}");
        assert_eq!(translation.account.broken, [], "{format}");
        assert_eq!(translation.account.remarks[0].line, Some(first.lines().count() + 1), "{format}");
    }
}

#[test]
fn an_entry_nested_too_deep_is_not_recognized_and_the_deepest_allowed_one_fits_in_a_record() {
    let nested = |depth: usize| {
        let line = format!(
            "{{\"type\":\"x\",\"sessionId\":\"s\",\"d\":{}{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        );
        SessionSource::file("s.jsonl", line)
    };
    let deepest = translators::limits::NATIVE_DEPTH - 1;
    check(&nested(deepest), Some(Format::Claude));
    assert!(translate(&nested(deepest), &Settings::default()).is_ok());
    assert!(translate(&nested(deepest + 1), &Settings::default()).is_err());
}

#[test]
fn arguments_in_a_text_are_parsed_unless_they_nest_too_deep_for_a_record() {
    let nested = |depth: usize| {
        let arguments = in_text(&json!(1), depth);
        let payload = json!({ "type": "function_call", "name": "f", "arguments": arguments });
        let line = json!({ "type": "response_item", "payload": payload });
        SessionSource::file("s.jsonl", line.to_string())
    };
    let input = |source: &SessionSource| {
        check(source, Some(Format::Codex));
        let translation = translate(source, &Settings::default()).unwrap();
        translation.records[0].0.value()["session"]["entries"][0]["input"].clone()
    };
    let deepest = translators::limits::NATIVE_DEPTH;
    assert!(input(&nested(deepest)).is_array());
    assert!(input(&nested(deepest + 1)).is_string());
}
