//! The fixture files, and questions to records.

use std::fs;
use std::path::Path;

use serde_json::Value;
use translators::{Format, SessionSource, Settings, SourceFile, Translation, translate};

pub const FILES: [(&str, Format); 11] = [
    ("claude.jsonl", Format::Claude),
    ("codex.jsonl", Format::Codex),
    ("codex-bare.jsonl", Format::Codex),
    ("codex-items.jsonl", Format::Codex),
    ("gemini.json", Format::Gemini),
    ("gemini.jsonl", Format::Gemini),
    ("gemini-results.jsonl", Format::Gemini),
    ("qwen.jsonl", Format::Qwen),
    ("qwen-agent.jsonl", Format::Qwen),
    ("pi.jsonl", Format::Pi),
    ("cursor.jsonl", Format::Cursor),
];

pub fn file(name: &str) -> SessionSource {
    SessionSource::file(name, fs::read(folder().join(name)).unwrap())
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

/// The storage tree of OpenCode.
pub fn opencode_tree() -> SessionSource {
    let mut files = Vec::new();
    add(&folder().join("opencode"), "", &mut files);
    SessionSource::tree(files)
}

fn add(folder: &Path, prefix: &str, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => add(&entry.path(), &format!("{path}/"), files),
            false => files.push(SourceFile { path, bytes: fs::read(entry.path()).unwrap() }),
        }
    }
}

/// The objects of the storage tree one after another, as OpenCode's own debugging output has them.
pub fn opencode_objects() -> SessionSource {
    let texts = opencode_tree().files().iter().flat_map(|file| file.bytes.clone()).collect::<Vec<_>>();
    SessionSource::file("objects.json", texts)
}

/// The first session of the storage tree as `opencode export` writes it.
pub fn opencode_export() -> SessionSource {
    let read = |path: &str| -> Value {
        let tree = opencode_tree();
        let file = tree.files().iter().find(|file| file.path == path).unwrap().clone();
        serde_json::from_slice(&file.bytes).unwrap()
    };
    let parts = |message: &str, numbers: &[u32]| -> Vec<Value> {
        numbers.iter().map(|number| read(&format!("part/{message}/prt_{number}.json"))).collect()
    };
    let export = serde_json::json!({
        "info": read("session/p1/ses_1.json"),
        "messages": [
            { "info": read("message/ses_1/msg_1.json"), "parts": parts("msg_1", &[1]) },
            { "info": read("message/ses_1/msg_2.json"), "parts": parts("msg_2", &[2, 3, 4, 5, 6, 7]) },
        ],
    });
    SessionSource::file("export.json", serde_json::to_vec_pretty(&export).unwrap())
}

/// All sources.
pub fn sources() -> Vec<SessionSource> {
    let files = FILES.iter().map(|(name, _)| file(name));
    files.chain([opencode_tree(), opencode_objects(), opencode_export()]).collect()
}

pub fn translated(source: &SessionSource) -> Translation {
    translate(source, &Settings::default()).unwrap()
}

/// A limit of records that every fixture exceeds as a whole, and hardly one with a single entry.
pub const SMALL: usize = 3000;

/// The translation with records of at most this many bytes, if they have more than one entry.
pub fn divided(source: &SessionSource, record_bytes: usize) -> Translation {
    translate(source, &Settings { record_bytes, ..Settings::default() }).unwrap()
}

/// The only record of a source.
pub fn record(source: &SessionSource) -> Value {
    let translation = translated(source);
    assert_eq!(translation.records.len(), 1);
    translation.records[0].0.value()
}

/// All entries of a record, children after their parents.
pub fn entries(record: &Value) -> Vec<Value> {
    fn add(entries: &Value, all: &mut Vec<Value>) {
        for entry in entries.as_array().into_iter().flatten() {
            all.push(entry.clone());
            add(&entry["children"], all);
        }
    }
    let mut all = Vec::new();
    add(&record["session"]["entries"], &mut all);
    all
}

/// The entries of a type.
pub fn of_type(record: &Value, kind: &str) -> Vec<Value> {
    entries(record).into_iter().filter(|entry| entry["type"] == kind).collect()
}

/// The token usages of a record.
pub fn usages(record: &Value) -> Vec<Value> {
    let usage = |entry: &Value| entry.get("token-usage").or(entry.pointer("/data/token-usage")).cloned();
    entries(record).iter().filter_map(usage).collect()
}
