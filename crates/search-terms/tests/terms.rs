//! `vectors/search-terms`: one file per statement with its terms, by the table.
//!
//! The first four families are laid out like the table: what all statements have, what a content type adds, the forms of
//! values, and payloads that cannot be read. The last one is about bounds. `vectors/sources/search-terms` describes the
//! statements; after a change there, write the files again with `WRITE_VECTORS=1 cargo test -p search-terms --test terms`.

#![allow(clippy::unwrap_used)]

use data_encoding::HEXLOWER;
use scitt::SignedStatement;
use search_terms::SearchValues;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Number of terms up to which a vector lists them.
const LISTED_TERMS: usize = 100;

#[test]
fn the_vectors_have_the_terms_of_the_table() {
    testkit::vectors::assert_kinds_match_sources("search-terms", |_, _, vector| with_terms(vector));
}

/// Adds its terms to a statement.
fn with_terms(mut vector: Value) -> Value {
    let statement = SignedStatement::parse(bytes(&vector["statement"]).unwrap()).unwrap();
    let served = bytes(&vector["payload"]);
    let values = SearchValues::read(statement.header(), statement.payload().or(served.as_deref()));
    let blind: Vec<u8> = values.blind.iter().map(|code| *code as u8).collect();
    vector["statement"] = HEXLOWER.encode(statement.bytes()).into();
    vector["blind"] = blind.into();
    if values.lookups.len() <= LISTED_TERMS {
        vector["terms"] = values.lookups.iter().map(|term| json!([term.kind.number(), term.value])).collect();
    } else {
        let keys: Vec<u8> = values.keys().iter().flat_map(|key| *key.as_bytes()).collect();
        vector["keys_sha256"] = HEXLOWER.encode(&Sha256::digest(keys)).into();
    }
    vector
}

/// Returns the bytes of a member in hexadecimal; `None` if it is null.
fn bytes(hex: &Value) -> Option<Vec<u8>> {
    hex.as_str().map(|hex| HEXLOWER.decode(hex.as_bytes()).unwrap())
}
