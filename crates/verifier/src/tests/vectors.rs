//! Golden cases that any implementation can read: `vectors/verifier`, one file per case.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::*;

/// One evidence, one trust store, one answer. Bytes are in hexadecimal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    why: String,
    #[serde(default)]
    #[allow(dead_code, reason = "for readers: where a case comes from, and under which licence")]
    source: String,
    trust: String,
    now: u64,
    statement: String,
    receipts: Vec<String>,
    payload: Option<String>,
    outcome: String,
    reason: Option<String>,
}

#[test]
fn every_golden_case_gets_its_answer() {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/verifier"), &mut files);
    assert!(files.len() >= 30, "only {} cases found", files.len());
    for file in files {
        let case: Case = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let (statement, payload) = (hex(&case.statement), case.payload.as_deref().map(hex));
        let receipts: Vec<Vec<u8>> = case.receipts.iter().map(|receipt| hex(receipt)).collect();
        let receipts: Vec<&[u8]> = receipts.iter().map(Vec::as_slice).collect();
        let trust = TrustStore::from_toml(&case.trust).unwrap_or_else(|why| panic!("{name}: {why}"));
        let evidence =
            StatementEvidence { statement: &statement, receipts: &receipts, payload: payload.as_deref() };
        let verdict = verify(&evidence, &trust, case.now);
        let answer = serde_json::to_value(&verdict).unwrap();
        assert_eq!(answer["outcome"], case.outcome, "{name}: {}\n{verdict:#?}", case.why);
        assert_eq!(answer["reason"].as_str(), case.reason.as_deref(), "{name}: {}\n{verdict:#?}", case.why);
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "json") {
            files.push(entry);
        }
    }
}

fn hex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap()
}
