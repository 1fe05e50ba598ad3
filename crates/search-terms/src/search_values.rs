//! The search values of an entry, and the keys of the search index that are made from them.
//!
//! An entry that cannot be read in full gets a blind posting: it may have any term, and a proven answer lists it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use lookup_tree::{BlindCode, TermKey};
use scitt::SignedStatement;
use scitt::header::Header;
use serde_json::Value as Json;

use crate::document::Document;
use crate::form::{digest_of, format_digest};
use crate::lookup::Lookup;
use crate::node::Node;
use crate::place::{HeaderPath, PayloadPath};
use crate::table::{ContentTerms, ItemTerms, Selector, TermTable};
use crate::term_set::TermSet;

/// The COSE algorithm identifier of SHA-256 (RFC 9054).
const COSE_SHA_256: i64 = -16;

/// The search values of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchValues {
    /// The values, in order of kind and value.
    pub lookups: Vec<Lookup>,
    /// Why there may be more of them.
    pub blind: Vec<BlindCode>,
}

/// A record that was parsed from a statement's payload.
pub trait ParsedPayload {
    /// The JSON of the payload, if the record has kept all of it and [`jose::json`] has parsed it.
    fn payload_json(&self) -> Option<&Json>;
}

impl SearchValues {
    /// No values, for this reason.
    pub fn blind(code: BlindCode) -> Self {
        Self { lookups: Vec::new(), blind: vec![code] }
    }

    /// Reads a statement with the payload that the log serves. If there is none, or it is not JSON or CBOR, there are the
    /// values of the header only.
    pub fn read(header: &Header, payload: Option<&[u8]>) -> Self {
        read(header, payload, None)
    }

    /// Reads a statement like [`read`](Self::read), and parses the payload only if the record has not kept its JSON.
    pub fn of_record(header: &Header, record: &impl ParsedPayload, payload: Option<&[u8]>) -> Self {
        read(header, payload, record.payload_json())
    }

    /// Reads a statement like [`read`](Self::read), with its own payload or the detached one that the log serves.
    pub fn of_statement(statement: &SignedStatement, detached: Option<&[u8]>) -> Self {
        Self::read(statement.header(), statement.payload().or(detached))
    }

    /// The keys of the terms and of the blind codes.
    pub fn keys(&self) -> BTreeSet<TermKey> {
        self.lookups.iter().map(Lookup::key).chain(self.blind.iter().map(|code| code.key())).collect()
    }
}

fn read(header: &Header, payload: Option<&[u8]>, parsed: Option<&Json>) -> SearchValues {
    let table = TermTable::get();
    let mut found = TermSet::default();
    add_header_terms(&table.all_statements.header, header, &mut found);
    if let Some(digest) = payload.and_then(|payload| content_digest(header, payload)) {
        table.all_statements.content_digest.iter().for_each(|kind| found.add(*kind, &digest));
    }
    let is_readable = match table.row_of(header) {
        None => payload.is_some(),
        Some((row, encoding)) => {
            add_header_terms(&row.header, header, &mut found);
            match (payload, parsed) {
                (None, _) => false,
                (Some(_), _) if header.hash_envelope().is_some() => true,
                (Some(_), Some(json)) => {
                    add_payload_terms(row, Some(Document::Json(Cow::Borrowed(json))), &mut found)
                }
                (Some(payload), None) => {
                    add_payload_terms(row, Document::parse(encoding, payload), &mut found)
                }
            }
        }
    };
    let unreadable = (!is_readable).then_some(BlindCode::Unreadable);
    let too_many = found.is_truncated().then_some(BlindCode::TooManyTerms);
    SearchValues { blind: unreadable.into_iter().chain(too_many).collect(), lookups: found.into_vec() }
}

/// Returns the digest of the payload, or the one that is the payload of a hash envelope. `None` for other hash
/// algorithms than SHA-256.
fn content_digest<'p>(header: &Header, payload: &[u8]) -> Option<Cow<'p, str>> {
    match header.hash_envelope() {
        None => Some(digest_of(payload)),
        Some(envelope) if envelope.algorithm == COSE_SHA_256 => Some(format_digest(payload)),
        Some(_) => None,
    }
}

fn add_header_terms(selectors: &[Selector<HeaderPath>], header: &Header, found: &mut TermSet) {
    for selector in selectors {
        if let Some(value) = selector.at.value(header) {
            add_term(selector, Node::Cbor(&value), found);
        }
    }
}

/// Adds the terms of a payload. Returns `false` if it could not be parsed.
fn add_payload_terms(row: &ContentTerms, document: Option<Document<'_>>, found: &mut TermSet) -> bool {
    let Some(document) = document else { return false };
    let root = document.root();
    row.payload.iter().for_each(|selector| add_terms_within(selector, root, found));
    for list in &row.lists {
        list.at.for_each(root, &mut |item| add_item_terms(list, item, found));
    }
    true
}

/// Adds the terms of an item, then those of the items in it.
fn add_item_terms(list: &ItemTerms, item: Node<'_>, found: &mut TermSet) {
    list.terms.iter().for_each(|selector| add_terms_within(selector, item, found));
    if let Some(nested) = &list.nested {
        nested.for_each(item, &mut |inner| add_item_terms(list, inner, found));
    }
}

fn add_terms_within(selector: &Selector<PayloadPath>, node: Node<'_>, found: &mut TermSet) {
    let holds = |(name, texts): (&String, &Vec<String>)| {
        let text = node.member(name).and_then(Node::text);
        text.is_some_and(|text| texts.iter().any(|one| one == text))
    };
    if selector.when.iter().all(holds) {
        selector.at.for_each(node, &mut |value| add_term(selector, value, found));
    }
}

fn add_term<P>(selector: &Selector<P>, value: Node<'_>, found: &mut TermSet) {
    if found.is_truncated() {
        return;
    }
    if let Some(value) = selector.form.value(value).filter(|value| selector.takes(value)) {
        found.add(selector.kind, &value);
    }
}
