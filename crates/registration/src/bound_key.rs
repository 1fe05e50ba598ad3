//! Public keys in policies, each with its name in statements.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use scitt::key::read_key;
use scitt::{CoseKey, PublicKey};
use serde_json::{Value, json};

use crate::section::{Notebook, Section, name, text};

/// A public key with its name in statements.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundKey {
    /// The `kid` in the protected header.
    pub kid: Vec<u8>,
    /// The public key.
    pub key: PublicKey,
}

/// Parses a key, alone or in a table with its name.
pub(crate) fn bound_key(value: &Value, at: &str, notes: &Notebook) -> Option<BoundKey> {
    if let Value::String(_) = value {
        let bound = public_key(value).and_then(|key| bind(key, None));
        return bound.map_err(|problem| notes.note(at, problem)).ok();
    }
    let mut section = Section::open(value, at, notes)?;
    let key = section.required("key", public_key);
    let text_kid = section.optional("kid", |value| name(value).map(String::into_bytes));
    let hex_kid = section.optional("kid_hex", hex);
    if text_kid.is_some() && hex_kid.is_some() {
        section.note("kid_hex", "give `kid` or `kid_hex`, not both");
    }
    let bound = key.map(|key| bind(key, text_kid.or(hex_kid)));
    let bound = bound.and_then(|bound| bound.map_err(|problem| section.note("key", problem)).ok());
    section.close();
    bound
}

/// Names a key: with the given name, else with the `kid` of its COSE_Key, else with its thumbprint.
fn bind(CoseKey { key, kid: own, .. }: CoseKey, given: Option<Vec<u8>>) -> Result<BoundKey, String> {
    let kid = given.or(own).unwrap_or_else(|| key.thumbprint().to_vec());
    match kid.is_empty() {
        false => Ok(BoundKey { kid, key }),
        true => Err("the kid of this COSE_Key is empty: name the key with `kid` or `kid_hex`".to_owned()),
    }
}

/// Parses a public key.
pub(crate) fn public_key(value: &Value) -> Result<CoseKey, String> {
    read_key(text(value)?).map_err(|error| format!("not a public key we can use: {error}"))
}

fn hex(value: &Value) -> Result<Vec<u8>, String> {
    match data_encoding::HEXLOWER_PERMISSIVE.decode(text(value)?.as_bytes()) {
        Ok(bytes) if !bytes.is_empty() => Ok(bytes),
        _ => Err("hexadecimal digits are needed here".to_owned()),
    }
}

/// Serializes a key with its name.
pub(crate) fn key_document(bound: &BoundKey) -> Value {
    let printable =
        std::str::from_utf8(&bound.kid).ok().filter(|kid| kid.bytes().all(|b| b.is_ascii_graphic()));
    match printable {
        Some(kid) if !kid.is_empty() => json!({ "key": bound.key.did_key(), "kid": kid }),
        _ => json!({ "key": bound.key.did_key(), "kid_hex": HEXLOWER.encode(&bound.kid) }),
    }
}

/// Returns the thumbprints of the operators' different keys.
pub(crate) fn distinct(operators: &[BoundKey]) -> BTreeSet<[u8; 32]> {
    operators.iter().map(|operator| operator.key.thumbprint()).collect()
}
