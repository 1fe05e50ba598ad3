//! Hash-chained files of other tools.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use translators::{Format, SessionSource, Settings, TranslateError, translate};

fn chain(length: usize, hash: impl Fn(&Value) -> String) -> Vec<Value> {
    let mut before = "0".repeat(64);
    let mut lines = Vec::new();
    for number in 0..length {
        let mut line = json!({
            "event_type": "tool", "number": number, "prev_hash": before, "session_id": "run-7",
            "timestamp": format!("2026-03-01T10:00:0{number}Z"),
        });
        before = hash(&line);
        line["hash"] = json!(before);
        lines.push(line);
    }
    lines
}

fn of_jcs(line: &Value) -> String {
    HEXLOWER.encode(&Sha256::digest(jose::jcs::canonical(line)))
}

fn source(lines: &[Value]) -> SessionSource {
    SessionSource::file("log.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

#[test]
fn a_chain_is_verified_and_its_lines_are_events_with_their_own_times() {
    let lines = chain(3, of_jcs);
    let translation = translate(&source(&lines), &Settings::default()).unwrap();
    assert_eq!(translation.format, Format::Chained);
    let record = &translation.records[0].0.value();
    assert_eq!(
        record["source"]["hash-chain"],
        json!({ "rule": "sha-256-jcs", "lines": 3, "head": lines[2]["hash"], "unverified-previous": "0".repeat(64) })
    );
    assert_eq!(record["session"]["session-id"], "run-7");
    assert_eq!(record["session"]["entries"][1]["timestamp"], "2026-03-01T10:00:01Z");
    assert_eq!(record["session"]["entries"][1]["data"]["number"], 1);
}

#[test]
fn a_changed_a_removed_and_a_moved_line_break_the_chain() {
    let lines = chain(4, of_jcs);
    let mut changed = lines.clone();
    changed[1]["number"] = json!(7);
    let mut removed = lines.clone();
    removed.remove(1);
    let mut moved = lines;
    moved.swap(1, 2);
    for broken in [changed, removed, moved] {
        let error = translate(&source(&broken), &Settings::default()).unwrap_err();
        assert!(matches!(error, TranslateError::BrokenChain { line: 2, .. }), "{error}");
    }
}

#[test]
fn a_chain_with_a_number_that_canonical_json_writes_as_a_long_integer_is_verified() {
    for number in ["1e20", "-1e20", "1.8446744073709552e19"] {
        let hash = |line: &Value| of_jcs(&with_number(line, number));
        let lines: Vec<Value> = chain(3, hash).iter().map(|line| with_number(line, number)).collect();
        let translation = translate(&source(&lines), &Settings::default()).unwrap();
        let record = translation.records[0].0.value();
        assert_eq!(record["source"]["hash-chain"]["rule"], "sha-256-jcs", "{number}");
        assert!(record["session"]["entries"][1]["data"]["number"].is_f64(), "{number}");
    }
}

/// The line with this number in place of 1.
fn with_number(line: &Value, number: &str) -> Value {
    let mut line = line.clone();
    if line["number"] == 1 {
        line["number"] = serde_json::from_str(number).unwrap();
    }
    line
}

#[test]
fn of_hashes_by_an_unknown_rule_only_the_links_are_verified() {
    let lines = chain(3, |line| HEXLOWER.encode(&Sha256::digest(format!("salt {line}"))));
    let translation = translate(&source(&lines), &Settings::default()).unwrap();
    assert_eq!(translation.records[0].0.value()["source"]["hash-chain"]["rule"], "links");
    assert_eq!(translation.account.remarks.len(), 1);
    let end = translate(&source(&lines[1..]), &Settings::default()).unwrap();
    assert_eq!(end.records[0].0.value()["source"]["hash-chain"]["unverified-previous"], lines[0]["hash"]);
    assert_eq!(end.account.remarks.len(), 2, "it may be only the end of a chain");
    let without_second = [lines[0].clone(), lines[2].clone()];
    assert!(translate(&source(&without_second), &Settings::default()).is_err());
}
