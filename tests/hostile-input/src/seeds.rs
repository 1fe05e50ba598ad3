//! Where inputs come from: `/vectors`, which hold them as hex or text in JSON, and `/fuzz/corpus`, which
//! holds them as they are.

use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER_PERMISSIVE;
use scitt::SignedStatement;
use serde_json::Value;

use crate::Parser;

/// Members of a vector that hold an input as hex, and as text.
const HEX: [&str; 3] = ["input", "hex", "statement"];
const TEXT: [&str; 3] = ["text", "note", "request"];

const fn vectors(parser: Parser) -> &'static [&'static str] {
    match parser {
        Parser::Statement => &["scitt/statement"],
        Parser::Receipt => &["scitt/receipt", "scitt/ledger-receipt"],
        Parser::Problem => &["scitt/problem"],
        Parser::Cbor => &["scitt"],
        Parser::Json => &["jose"],
        Parser::Note => &["tlog/note", "tlog/checkpoint", "tlog/cosignature", "tlog/add-checkpoint"],
        Parser::Condition => &["expression"],
        Parser::Vap => &["admission/message", "admission/signature"],
        Parser::Record | Parser::Payload => &["vrf", "aer", "conversation", "vap", "jwk-set", "erasure"],
    }
}

/// All seeds of a parser.
pub(crate) fn of(parser: Parser) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cases = vectors(parser).iter().flat_map(|folder| files(&root.join("vectors").join(folder)));
    let corpus = files(&root.join("fuzz/corpus").join(parser.name()));
    let inputs = cases.filter_map(|case| input(&read(&case)));
    let inputs =
        inputs.filter_map(|input| if parser == Parser::Payload { json_payload(&input) } else { Some(input) });
    let seeds: Vec<_> = inputs.chain(corpus.iter().map(|file| read(file))).collect();
    assert!(!seeds.is_empty(), "no seeds for {}", parser.name());
    seeds
}

/// The input of a vector; none if it is made by the test that reads it.
fn input(case: &[u8]) -> Option<Vec<u8>> {
    let case: Value = serde_json::from_slice(case).ok()?;
    let member = |names: &[&str]| names.iter().find_map(|name| case.get(name)?.as_str().map(str::to_owned));
    match member(&HEX) {
        Some(hex) => HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok(),
        None => member(&TEXT).map(String::into_bytes),
    }
}

/// What a statement carries, if it is JSON.
fn json_payload(statement: &[u8]) -> Option<Vec<u8>> {
    let statement = SignedStatement::parse(statement.to_vec()).ok()?;
    statement.payload().filter(|payload| payload.first() == Some(&b'{')).map(<[u8]>::to_vec)
}

/// Every file below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
