//! `vectors/lookup-tree`: one file per case, and every case gets what it expects.
//!
//! `vectors/sources/lookup-tree` describes the cases; after a change there, write the files again with
//! `WRITE_VECTORS=1 cargo test -p tabellion-lookup-tree --test runs vectors`.

mod answers;
mod heads;
mod postings;
mod proofs;
mod roots;

use data_encoding::HEXLOWER;
use lookup_tree::LeafRange;
use serde::de::DeserializeOwned;
use serde_json::Value;
use testkit::vectors::{ByteEdit, DocumentEdit, assert_kinds_match_sources};

#[test]
fn the_vectors_are_what_the_cases_describe() {
    assert_kinds_match_sources("lookup-tree", vector);
}

/// Returns the vector of a case, which must get what it expects.
fn vector(kind: &str, expected: Option<&str>, mut case: Value) -> Value {
    let why = case.as_object_mut().unwrap().remove("why").unwrap();
    let mut vector = match kind {
        "key" => roots::key(&read(&case)),
        "root" => roots::root(&read(&case)),
        "schedule" => heads::runs(&read(&case)),
        "head" => heads::head(&read(&case)),
        "proof" => proofs::proof(&read(&case)),
        "answer" => answers::answer(&read(&case)),
        _ => panic!("{kind}: there is no such kind of cases"),
    };
    assert_eq!(vector.get("expected").and_then(Value::as_str), expected, "{kind}: {why}");
    vector["why"] = why;
    vector
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value:#}: {error}"))
}

fn edited(mut document: Value, edits: &[DocumentEdit]) -> Value {
    let digest = |name: &str| panic!("{name}: there is no such statement");
    edits.iter().for_each(|edit| edit.apply(&mut document, &digest));
    document
}

fn edited_bytes(bytes: Vec<u8>, edits: &[ByteEdit]) -> Vec<u8> {
    edits.iter().fold(bytes, |bytes, edit| edit.apply(bytes))
}

fn unhex(hex: &str) -> Vec<u8> {
    HEXLOWER.decode(hex.as_bytes()).unwrap_or_else(|error| panic!("{hex}: {error}"))
}

/// Returns the range from its first leaf to before its end.
fn range((start, end): (u64, u64)) -> LeafRange {
    LeafRange::new(start, end)
}
