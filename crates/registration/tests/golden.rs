//! The worked example of our VRF reading, byte for byte: what another implementation must reproduce.

#![allow(clippy::unwrap_used)]

use registration::vrf::{Chain, VrfRecord};
use scitt::SignedStatement;
use serde_json::Value;
use testkit::{receipt, verifier};

fn golden() -> Value {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/vrf/golden.json"));
    serde_json::from_str(&text.expect("the vector is checked in")).expect("the vector is JSON")
}

fn field<'a>(vector: &'a Value, name: &str) -> &'a str {
    vector[name].as_str().unwrap_or_else(|| panic!("{name} is missing"))
}

#[test]
fn the_worked_example_is_built_byte_for_byte() {
    let vector = golden();
    let statement = receipt(0).sign(&verifier()).unwrap();
    assert_eq!(statement.bytes().len(), 755);
    assert_eq!(statement.header().bytes().len(), 344);
    assert_eq!(statement.payload().map(<[u8]>::len), Some(336));
    assert_eq!(data_encoding::HEXLOWER.encode(statement.bytes()), field(&vector, "statement"));
    assert_eq!(statement.digest().to_string(), field(&vector, "entry_id"));
}

#[test]
fn the_worked_example_is_what_its_description_says() {
    let vector = golden();
    let json = field(&vector, "canonical_json");
    assert_eq!(json.len(), 333);
    assert_eq!(
        merkle::EntryDigest::of(json.as_bytes()).to_string(),
        "e71c30fb741357b7a1540fa5073a1325f2f643bc16b4256ece6576157cf480c0"
    );
    let statement = field(&vector, "statement");
    assert!(statement.starts_with("d2845901"));
    let signature = &statement[statement.len() - 128..];
    assert!(signature.starts_with("7ccf47ec") && signature.ends_with("5a147902"), "{signature}");
}

#[test]
fn the_next_receipt_names_the_worked_example_by_its_entry_id() {
    let first = receipt(0).sign(&verifier()).unwrap();
    assert_eq!(
        first.digest().to_string(),
        "21e9e561d4cfe5e7c073f557680f347c7217894a5c2a97c8a855bbe62615d2db"
    );
    let second = receipt(1).after(first.digest(), 1).sign(&verifier()).unwrap();
    let record = VrfRecord::verify(&second, None).unwrap();
    assert_eq!(record.chain, Chain::Link { position: 1, previous: first.digest() });
}

#[test]
fn the_worked_example_verifies_on_its_own() {
    let bytes = data_encoding::HEXLOWER.decode(field(&golden(), "statement").as_bytes()).unwrap();
    let statement = SignedStatement::parse(bytes).unwrap();
    assert_eq!(VrfRecord::verify(&statement, None).unwrap().chain, Chain::Genesis);
}
