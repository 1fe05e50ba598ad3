//! What is left out of records, and how it is listed.

use registration::conversation::{ConversationRecord, Form};
use serde_json::{Value, json};
use testkit::conversation;
use translators::{
    EntryType, Format, Redaction, RedactionRule, Selection, SessionRecord, SessionSource, Settings, redact,
    translate,
};

use crate::fixtures::{file, of_type};
use crate::maximal;

fn saying(text: &str) -> SessionSource {
    let line = json!({
        "type": "user", "sessionId": "s", "uuid": "u1", "message": { "role": "user", "content": text },
    });
    SessionSource::file("s.jsonl", line.to_string())
}

fn with_rules(rules: &[RedactionRule]) -> Settings {
    let redaction = Redaction { rules: rules.iter().copied().collect(), ..Redaction::default() };
    Settings { redaction, ..Settings::default() }
}

fn translated(source: &SessionSource, settings: &Settings) -> Value {
    translate(source, settings).unwrap().records[0].0.value()
}

fn content(text: &str, settings: &Settings) -> Value {
    translated(&saying(text), settings)["session"]["entries"][0]["content"].clone()
}

#[test]
fn secrets_are_replaced_by_the_name_of_the_rule() {
    // Written in pieces, so that no scanner of secrets mistakes this file.
    let key = ["-----BEGIN ", "PRIVATE KEY-----\nMIIE\n-----END ", "PRIVATE KEY-----"].concat();
    let web_token = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0", "c2lnbmF0dXJl"].join(".");
    for (secret, left) in [
        (["gh", "p_0123456789abcdefghijABCDEFGHIJ012345"].concat(), "[redacted:token]"),
        (["sk-", "abcdefghij0123456789ABCD"].concat(), "[redacted:token]"),
        (["sk-", "ant-api03-abcdefghij0123456789"].concat(), "[redacted:token]"),
        (["AKI", "AIOSFODNN7EXAMPLE"].concat(), "[redacted:token]"),
        (key, "[redacted:private-key]"),
        (web_token, "[redacted:jwt]"),
        ("https://me:pass@host/x".to_owned(), "https://host/x"),
        ("https://me:p@ss@host/x".to_owned(), "https://host/x"),
    ] {
        let found = content(&format!("before {secret} after"), &Settings::default());
        assert_eq!(found, format!("before {left} after"));
    }
}

#[test]
fn a_private_key_whose_lines_are_separate_texts_is_replaced_as_a_whole() {
    let (begin, end) =
        (["-----BEGIN ", "PRIVATE KEY-----"].concat(), ["-----END ", "PRIVATE KEY-----"].concat());
    let (begin, end) = (format!("+{begin}"), format!("+{end}"));
    let left = "[redacted:private-key]";
    for (lines, expected) in [
        (json!(["-x", begin, "+MIIE", end, "+y"]), json!(["-x", format!("+{left}"), left, left, "+y"])),
        (json!([begin, "+MIIE"]), json!([format!("+{left}"), left])),
        (
            json!([begin, [1], format!("{end} z"), "+y"]),
            json!([format!("+{left}"), [1], format!("{left} z"), "+y"]),
        ),
        (json!([end, "+MIIE"]), json!([end, "+MIIE"])),
    ] {
        let line = json!({
            "type": "user", "sessionId": "s", "message": { "role": "user", "content": "x" }, "lines": lines,
        });
        let record = translated(&SessionSource::file("s.jsonl", line.to_string()), &Settings::default());
        assert_eq!(record.pointer("/session/entries/0/native/lines"), Some(&expected), "{record}");
    }
    // The rest of a key is replaced also if its first line was left out.
    let line = json!({
        "type": "user", "sessionId": "s", "message": { "role": "user", "content": "x" },
        "lines": [begin, "+MIIE", end, "+y"],
    });
    let fields = vec!["/session/entries/0/native/lines/0".parse().unwrap()];
    let settings =
        Settings { redaction: Redaction { fields, ..Redaction::default() }, ..Settings::default() };
    let record = translated(&SessionSource::file("s.jsonl", line.to_string()), &settings).to_string();
    assert!(record.contains("[redacted:private-key]") && !record.contains("MIIE"), "{record}");
}

#[test]
fn records_that_differ_have_different_identifiers() {
    let id = |settings: &Settings| translated(&saying("x"), settings)["id"].clone();
    let fields = |patterns: &[&str]| {
        let fields = patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
        Settings { redaction: Redaction { fields, ..Redaction::default() }, ..Settings::default() }
    };
    assert_ne!(
        id(&fields(&["/vcs", "/session/x"])),
        id(&fields(&["/vcs,/session/x"])),
        "one pattern is not two"
    );
    let qwen = Settings { format: Some(Format::Qwen), ..Settings::default() };
    assert_ne!(id(&Settings::default()), id(&qwen), "another format gives another record");
}

#[test]
fn a_secret_is_found_after_an_escape_a_colour_and_letters_of_other_scripts() {
    let web_token = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0", "c2lnbmF0dXJl"].join(".");
    let url = "https://me:pass@host/x".to_owned();
    for (secret, left) in
        [(token(1), "[redacted:token]"), (web_token, "[redacted:jwt]"), (url, "https://host/x")]
    {
        for before in [
            r#"{"output":"one\n"#,
            r#"{"output":"\u003d"#,
            r"\x1b[1;32m",
            "\u{1b}[32m",
            "\u{1b}[01;31m\u{1b}[K",
            "https://a.example/?q=Bearer%20",
            "https://a.example/?next=%2Fb%3Fq%3DBearer%2520",
            "令牌",
            "é",
        ] {
            let found = content(&format!("{before}{secret}\""), &Settings::default());
            assert_eq!(found, format!("{before}{left}\""));
        }
    }
}

#[test]
fn ordinary_texts_stay() {
    let text = "the risk-averse task-0123456789abcdef0123 of 0123456789abcdef0123456789abcdef01234567, \
                see https://a.example/@b";
    assert_eq!(content(text, &Settings::default()), text);
    assert_eq!(
        content(text, &with_rules(&[RedactionRule::HighEntropy])),
        text,
        "a digest in hex is not a secret"
    );
}

#[test]
fn paths_of_home_folders_and_random_texts_are_redacted_on_request() {
    let home = with_rules(&[RedactionRule::HomePath]);
    assert_eq!(content("/home/alice/x and C:\\Users\\bob\\y", &home), "/home/~/x and C:\\Users\\~\\y");
    let random = "k9Zq2Lw8Xv4Bn7Mc1Pd5Rt3Yh6Gj0Fs2Wa";
    assert_eq!(content(random, &Settings::default()), random);
    assert_eq!(content(random, &with_rules(&[RedactionRule::HighEntropy])), "[redacted:high-entropy]");
}

#[test]
fn each_omission_is_listed_with_rule_count_and_pointers() {
    let record = translated(&saying("a://u@h b://u@h"), &Settings::default());
    let listed = json!([{ "rule": "userinfo", "count": 2, "pointers": ["/session/entries/0/content"] }]);
    assert_eq!(record["source"]["redactions"], listed);
}

#[test]
fn names_of_members_are_redacted_too() {
    let line = json!({
        "type": "user", "sessionId": "s", "message": { "role": "user", "content": "x" },
        "files": { "/home/alice/a": 1, "/home/bob/a": 2 },
    });
    let source = SessionSource::file("s.jsonl", line.to_string());
    let record = translated(&source, &with_rules(&[RedactionRule::HomePath]));
    let files = &record["session"]["entries"][0]["native"]["files"];
    assert_eq!(*files, json!({ "/home/~/a": 1, "/home/~/a (2)": 2 }));
}

#[test]
fn a_secret_in_a_name_is_nowhere_in_the_record() {
    let secret = ["gh", "p_0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let line = json!({
        "type": "user", "sessionId": "s", "message": { "role": "user", "content": "x" },
        "by": { &secret: { "password": "p", "url": "https://u@h", "inner": 1 } },
    });
    let fields = vec![format!("/**/{secret}/inner").parse().unwrap()];
    let settings =
        Settings { redaction: Redaction { fields, ..Redaction::default() }, ..Settings::default() };
    let record = translate(&SessionSource::file("s.jsonl", line.to_string()), &settings).unwrap();
    let text = std::str::from_utf8(record.records[0].0.bytes()).unwrap();
    assert!(!text.contains(&secret), "{text}");
    assert!(!text.contains("inner\":1"), "patterns name members as the source does: {text}");
    assert!(text.contains("/session/entries/0/native/by/[redacted:token]/password"), "{text}");
}

#[test]
fn members_named_after_secrets_are_replaced_whatever_their_value_is() {
    let open = json!({
        "tokens": 1, "token-usage": 2, "input_tokens": 3, "maxTokens": 4, "token_count": 5, "secretary": "s",
        "password": null,
    });
    let closed = json!({
        "x-api-key": "k", "token": 12, "GITHUB_TOKEN": "t", "aws_secret_access_key": "a", "db_password": ["p"],
        "AWSSecretAccessKey": "a", "apiKey": { "k": 1 }, "Proxy-Authorization": "b", "shareSecret": false,
        "access_token": "[redacted: not really] t", "passphrase": "[redacted:jwt]x",
    });
    let line = json!({
        "type": "user", "sessionId": "s", "message": { "role": "user", "content": "x" }, "a": open, "b": closed,
    });
    let record = translated(&SessionSource::file("s.jsonl", line.to_string()), &Settings::default());
    let native = &record["session"]["entries"][0]["native"];
    for (name, value) in open.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()) {
        assert_eq!(native["a"][name], *value, "{name}");
    }
    for name in closed.as_object().unwrap().keys() {
        assert_eq!(native["b"][name], "[redacted:secret-member]", "{name}");
    }
}

#[test]
fn the_source_of_a_foreign_record_is_redacted_too() {
    let foreign = json!({ "session": { "entries": [] }, "source": { "url": "https://me:pass@host/x" } });
    let (record, _) = redact(foreign.to_string().as_bytes(), &Redaction::default()).unwrap();
    assert_eq!(record.value()["source"]["url"], "https://host/x");
    assert_eq!(record.value()["source"]["redactions"][0]["pointers"][0], "/source/url");
    let odd = json!({ "session": { "entries": [] }, "source": "https://me:pass@host/x" });
    let (record, _) = redact(odd.to_string().as_bytes(), &Redaction::default()).unwrap();
    assert_eq!(record.value()["source"]["native"], "https://host/x");
    assert_eq!(record.value()["source"]["redactions"][0]["rule"], "userinfo");
}

#[test]
fn fields_are_left_out_by_pointer_patterns() {
    let fields = ["/session/entries/*/native", "/**/input/command", "/vcs"].map(|text| text.parse().unwrap());
    let redaction = Redaction { fields: fields.into(), ..Redaction::default() };
    let record = translated(&file("claude.jsonl"), &Settings { redaction, ..Settings::default() });
    assert!(record.get("vcs").is_none());
    assert!(
        record["session"]["entries"].as_array().unwrap().iter().all(|entry| entry.get("native").is_none())
    );
    assert!(of_type(&record, "tool-call").iter().all(|call| call["input"].get("command").is_none()));
    let listed = record["source"]["redactions"].as_array().unwrap();
    assert!(listed.iter().any(|listed| listed["rule"] == "field"));
}

/// Checks that a record keeps the rules of the profile.
fn check_rules(record: &SessionRecord, case: &str) {
    let header = conversation(0, Form::Json);
    let read = ConversationRecord::read(header.header(), record.bytes());
    if let Err(violation) = read.and_then(|read| read.soundness()) {
        panic!("{case}: {violation}: {}", record.value());
    }
}

fn leaving_out(field: &str) -> Redaction {
    Redaction { fields: vec![field.parse().unwrap()], ..Redaction::default() }
}

#[test]
fn a_record_stays_valid_whatever_is_left_out_of_it() {
    let record = maximal::record().to_string();
    check_rules(&redact(record.as_bytes(), &Redaction::default()).unwrap().0, "nothing");
    for field in maximal::fields() {
        let redaction = leaving_out(&field);
        let is_refused = redaction.check().is_err();
        let named = |name: &str| field == format!("/{name}") || field == format!("/**/{name}");
        assert_eq!(is_refused, named("id") || named("version"), "{field}");
        let (redacted, listed) = redact(record.as_bytes(), &redaction).unwrap();
        check_rules(&redacted, &field);
        assert_eq!(listed.count() == 0, field == "/id" || field == "/version", "{field}: {listed:?}");
    }
}

#[test]
fn a_range_is_left_out_with_its_lines_and_an_entry_with_its_type() {
    let record = maximal::record();
    let redacted =
        |field: &str| redact(record.to_string().as_bytes(), &leaving_out(field)).unwrap().0.value();
    let ranges = "/file-attribution/files/0/conversations/0/ranges";
    assert_eq!(redacted("/**/start-line").pointer(ranges), Some(&json!([])));
    let without_type = redacted("/session/entries/0/type");
    let entries = |record: &Value| record["session"]["entries"].as_array().unwrap().clone();
    assert_eq!(entries(&without_type), entries(&record)[1..]);
    let listed = json!([{ "rule": "field", "count": 1, "pointers": ["/session/entries/0"] }]);
    assert_eq!(without_type["source"]["redactions"], listed);
}

#[test]
fn a_hash_is_left_out_with_its_algorithm() {
    let range = "/file-attribution/files/0/conversations/0/ranges/0";
    for (algorithm, hash) in
        [("blake3", "a".repeat(64)), ("sha-512", "b".repeat(128)), ("murmur3", "9f2e8a1b".to_owned())]
    {
        let mut record = maximal::record();
        record.pointer_mut(range).unwrap()["content-hash-alg"] = algorithm.into();
        record.pointer_mut(range).unwrap()["content-hash"] = hash.into();
        let (redacted, listed) =
            redact(record.to_string().as_bytes(), &leaving_out(&format!("{range}/content-hash-alg")))
                .unwrap();
        check_rules(&redacted, algorithm);
        let value = redacted.value();
        assert!(value.pointer(range).unwrap().get("content-hash").is_none(), "{algorithm}");
        assert_eq!(listed.count(), 2, "{algorithm}");
    }
}

#[test]
fn secrets_in_the_recording_agent_of_a_foreign_record_are_left_out() {
    let mut record = maximal::record();
    record["recording-agent"] =
        json!({ "name": "x", "url": "https://me:pass@host/x", "api_key": "k", "env": "e" });
    let (redacted, _) = redact(record.to_string().as_bytes(), &leaving_out("/recording-agent/env")).unwrap();
    let agent = json!({ "name": "x", "url": "https://host/x", "api_key": "[redacted:secret-member]" });
    assert_eq!(redacted.value()["recording-agent"], agent);
    check_rules(&redacted, "recording-agent");
}

#[test]
fn a_redacted_record_is_valid_with_numbers_that_canonical_json_writes_as_long_integers() {
    for number in ["1e20", "-1e20", "1.8446744073709552e19", "-9.223372036854776e18"] {
        let mut record = maximal::record();
        record["session"]["entries"][1]["input"] = json!({ "n": "NUMBER" });
        let text = record.to_string().replace("\"NUMBER\"", number);
        let (redacted, _) = redact(text.as_bytes(), &Redaction::default()).unwrap();
        check_rules(&redacted, number);
        let kept = redacted.value()["session"]["entries"][1]["input"]["n"].as_f64();
        assert_eq!(kept, number.parse().ok(), "{number}");
    }
}

#[test]
fn types_of_entries_are_left_out_and_their_children_stay() {
    let selection = Selection::default().without([EntryType::Assistant, EntryType::Reasoning]);
    let redaction = Redaction { selection, ..Redaction::default() };
    let record = translated(&file("claude.jsonl"), &Settings { redaction, ..Settings::default() });
    assert!(of_type(&record, "assistant").is_empty() && of_type(&record, "reasoning").is_empty());
    assert_eq!(of_type(&record, "tool-call").len(), 2);
    let listed = record["source"]["redactions"].as_array().unwrap();
    let counts: Vec<(&Value, &Value)> =
        listed.iter().map(|listed| (&listed["rule"], &listed["count"])).collect();
    assert_eq!(counts, [(&json!("without:assistant"), &json!(3)), (&json!("without:reasoning"), &json!(1))]);
}

#[test]
fn a_redacted_record_is_a_new_one_that_names_the_original() {
    let original = translate(&file("claude.jsonl"), &Settings::default()).unwrap().records.remove(0).0;
    let redaction = Redaction { selection: Selection::only([EntryType::User]), ..Redaction::default() };
    let (redacted, listed) = redact(original.bytes(), &redaction).unwrap();
    assert!(listed.count() > 0);
    assert_eq!(redacted.value()["redacted-from"], original.digest());
    assert_ne!(redacted.value()["id"], original.value()["id"]);
    assert_eq!(redacted.session_id(), original.session_id());
    assert!(redact(b"{}", &redaction).is_err());
}

#[test]
fn redacting_twice_changes_nothing_more() {
    let redaction = Redaction { rules: RedactionRule::ALL.into_iter().collect(), ..Redaction::default() };
    let text = "https://me:pass@host/home/alice/x k9Zq2Lw8Xv4Bn7Mc1Pd5Rt3Yh6Gj0Fs2Wa";
    let once =
        translate(&saying(text), &Settings { redaction: redaction.clone(), ..Settings::default() }).unwrap();
    let (_, listed) = redact(once.records[0].0.bytes(), &redaction).unwrap();
    assert_eq!(listed.count(), 0, "{listed:?}");
}

/// A token whose last digits are the number.
fn token(number: usize) -> String {
    format!("{}p_0123456789abcdefghijABCDEFGH{number:08}", "gh")
}

fn entry_with_id(id: &str, parent: &str) -> Value {
    json!({ "type": "user", "id": id, "parent-id": parent, "content": "x" })
}

#[test]
fn identifiers_that_redaction_makes_equal_stay_unique_and_linked() {
    let entries = [
        entry_with_id(&token(1), "none"),
        entry_with_id(&token(2), &token(1)),
        entry_with_id("[redacted:token] (2)", &token(2)),
    ];
    let record = json!({ "session": { "session-id": "s", "entries": entries } });
    let (redacted, _) = redact(record.to_string().as_bytes(), &Redaction::default()).unwrap();
    let redacted_value = redacted.value();
    let entries = &redacted_value["session"]["entries"];
    let links: Vec<_> =
        entries.as_array().unwrap().iter().map(|entry| (&entry["id"], &entry["parent-id"])).collect();
    let [first, second, third] =
        ["[redacted:token]", "[redacted:token] (3)", "[redacted:token] (2)"].map(Value::from);
    assert_eq!(links, [(&first, &json!("none")), (&second, &first), (&third, &second)]);
    let (again, listed) = redact(redacted.bytes(), &Redaction::default()).unwrap();
    assert_eq!((&again.value()["session"], listed.count()), (&redacted.value()["session"], 0));
}

#[test]
fn many_identifiers_and_names_that_become_equal_take_linear_time() {
    // Time that grows with the square would exceed the limit of any test.
    let count = 50_000;
    let entries: Vec<Value> =
        (0..count).map(|number| entry_with_id(&token(number), &token(number + 1))).collect();
    let names: serde_json::Map<String, Value> = (0..count).map(|number| (token(number), json!(1))).collect();
    let record = json!({ "session": { "session-id": "s", "entries": entries }, "native": names });
    let (redacted, _) = redact(record.to_string().as_bytes(), &Redaction::default()).unwrap();
    assert_eq!(redacted.value()["native"].as_object().unwrap().len(), count);
}
