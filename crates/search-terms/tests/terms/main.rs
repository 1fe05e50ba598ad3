//! `vectors/search-terms`: one file per statement with its terms, by the table.
//!
//! `WRITE_VECTORS=1` writes the files anew. The first four families are laid out like the table: what all statements have,
//! what a content type adds, the forms of values, and payloads that cannot be read. The last one is about bounds.

#![allow(clippy::unwrap_used)]

mod bounds;
mod content_types;
mod forms;
mod header;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use scitt::{SignedStatement, SigningKey, StatementBuilder};
use search_terms::SearchValues;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::vectors;

/// Number of terms up to which a vector lists them.
const LISTED_TERMS: usize = 100;

/// A statement, and the detached payload that the log serves.
struct Case {
    why: &'static str,
    statement: SignedStatement,
    served: Option<Vec<u8>>,
}

/// The cases of a family, by their names.
type Cases = BTreeMap<&'static str, Case>;

impl Case {
    fn new(why: &'static str, statement: StatementBuilder) -> Self {
        let key = SigningKey::from_ed25519_seed(&[0x5e; 32]).unwrap();
        Self { why, statement: statement.sign(&key).unwrap(), served: None }
    }

    /// A case about the payload of a statement of this content type.
    fn of(why: &'static str, content_type: &str, payload: impl Into<Vec<u8>>) -> Self {
        Self::new(why, statement(payload).content_type(content_type))
    }

    fn serving(self, payload: &str) -> Self {
        Self { served: Some(payload.into()), ..self }
    }

    fn vector(&self) -> Value {
        let payload = self.statement.payload().or(self.served.as_deref());
        let values = SearchValues::read(self.statement.header(), payload);
        let blind: Vec<u8> = values.blind.iter().map(|code| *code as u8).collect();
        let mut vector = json!({
            "why": self.why,
            "statement": HEXLOWER.encode(self.statement.bytes()),
            "payload": self.served.as_deref().map(|payload| HEXLOWER.encode(payload)),
            "blind": blind,
        });
        if values.lookups.len() <= LISTED_TERMS {
            vector["terms"] =
                values.lookups.iter().map(|term| json!([term.kind.number(), term.value])).collect();
        } else {
            let keys: Vec<u8> = values.keys().iter().flat_map(|key| *key.as_bytes()).collect();
            vector["keys_sha256"] = HEXLOWER.encode(&Sha256::digest(keys)).into();
        }
        vector
    }
}

/// A statement without a content type.
fn statement(payload: impl Into<Vec<u8>>) -> StatementBuilder {
    StatementBuilder::new(payload).kid("key-1").iss("https://issuer.example").sub("subject-1")
}

#[test]
fn the_vectors_have_the_terms_of_the_table() {
    let families = [
        ("header", header::cases()),
        ("content-type", content_types::cases()),
        ("form", forms::cases()),
        ("unreadable", unreadable::cases()),
        ("bound", bounds::cases()),
    ];
    let folder = vectors::root().join("search-terms");
    let mut made = BTreeMap::new();
    for (family, cases) in families {
        for (name, case) in cases {
            vectors::insert(&mut made, folder.join(family).join(format!("{name}.json")), &case.vector());
        }
    }
    let present = made.keys().filter_map(|path| path.parent()).collect::<BTreeSet<_>>();
    let present: Vec<_> =
        present.into_iter().filter(|folder| folder.is_dir()).flat_map(vectors::entries).collect();
    vectors::compare(&present, &made);
}
