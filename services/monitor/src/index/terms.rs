//! Search terms of a statement, with the parameters of `GET /v1/entries` that find them.

use lookup_tree::TermKey;
use registration::{Lookup, LookupKind, SearchValues};
use scitt::SignedStatement;
use url::form_urlencoded::byte_serialize;

/// Finds the term of a statement that has this key.
pub fn term_with_key(statement: &SignedStatement, payload: Option<&[u8]>, key: TermKey) -> Option<Lookup> {
    let values = SearchValues::of_statement(statement, payload).lookups;
    values.into_iter().find(|lookup| lookup.key() == key)
}

/// The query parameter for a term, encoded for a URL; `None` if entries are not searched by its kind.
pub fn query(lookup: &Lookup) -> Option<String> {
    let name = parameter(lookup.kind)?;
    Some(format!("{name}={}", byte_serialize(lookup.value.as_bytes()).collect::<String>()))
}

fn parameter(kind: LookupKind) -> Option<&'static str> {
    use LookupKind::{BackLink, Erasure, Key, Stream};
    match kind {
        BackLink | Stream | Erasure | Key => None,
        kind => Some(kind.name()),
    }
}
