//! Prints the account of session files as JSON, one line for each: `cargo run -p translators --example account --
//! FILE…`. A folder is read as one storage tree. Use it to compare the translation of files that are not in this
//! repository with counts that were taken otherwise.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use translators::{SessionSource, Settings, SourceFile, Translation, translate};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args_os().skip(1).map(PathBuf::from) {
        let source = source(&path)?;
        match translate(&source, &Settings::default()) {
            Ok(translation) => println!("{}", summary(&path, &translation)),
            Err(error) => println!("{}", json!({ "path": path, "error": error.to_string() })),
        }
    }
    Ok(())
}

fn source(path: &Path) -> Result<SessionSource, Box<dyn Error>> {
    if path.is_dir() {
        let mut files = Vec::new();
        add_files(path, path, &mut files)?;
        return Ok(SessionSource::tree(files));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(SessionSource::file(name, fs::read(path)?))
}

fn add_files(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_files(root, &path, files)?;
        } else {
            let name = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            files.push(SourceFile { path: name, bytes: fs::read(&path)? });
        }
    }
    Ok(())
}

fn summary(path: &Path, translation: &Translation) -> Value {
    let sessions: Vec<Value> =
        translation.records.iter().map(|(record, _)| session(&record.value())).collect();
    json!({ "path": path, "format": translation.format, "account": translation.account, "sessions": sessions })
}

fn session(record: &Value) -> Value {
    let mut totals = Totals::default();
    totals.add(&record["session"]["entries"]);
    json!({
        "session": record["session"]["session-id"],
        "start": record["session"].get("session-start"),
        "end": record["session"].get("session-end"),
        "agent": record["session"]["agent-meta"],
        "entries": totals.entries,
        "tokens": totals.tokens,
        "redactions": record["source"]["redactions"],
    })
}

/// Counts over the entries of a record, children included.
#[derive(Default)]
struct Totals {
    entries: BTreeMap<String, u64>,
    tokens: BTreeMap<String, u64>,
}

impl Totals {
    fn add(&mut self, entries: &Value) {
        for entry in entries.as_array().into_iter().flatten() {
            let kind = entry["type"].as_str().unwrap_or_default().to_owned();
            *self.entries.entry(kind).or_default() += 1;
            let usage = entry.get("token-usage").or_else(|| entry.pointer("/data/token-usage"));
            for (name, count) in usage.and_then(Value::as_object).into_iter().flatten() {
                *self.tokens.entry(name.clone()).or_default() += count.as_u64().unwrap_or(0);
            }
            self.add(&entry["children"]);
        }
    }
}
