//! The terms of an entry, as the log's index reads them.

use std::collections::BTreeSet;

use lookup_tree::TermKey;
use registration::{Lookup, LookupKind, SearchValues};
use scitt::SignedStatement;
use verifier::index::SearchTerm;

/// Returns `true` if entries can have the term: its kind is known, and its value has the form in which the index has it. A
/// term of another form is proven to be absent whatever the entries say.
pub(crate) fn can_be_found(term: &SearchTerm) -> bool {
    let kind = LookupKind::ALL.into_iter().find(|kind| kind.number() == term.kind);
    let (Some(kind), Ok(value)) = (kind, str::from_utf8(&term.value)) else { return false };
    let is_digest = matches!(kind, LookupKind::PayloadDigest | LookupKind::Digest);
    Lookup::new(kind, value).value == value && (!is_digest || value.starts_with("sha256:"))
}

/// The term for a search value, as evidence has it.
pub fn search_term(lookup: &Lookup) -> SearchTerm {
    SearchTerm { kind: lookup.kind.number(), value: lookup.value.clone().into_bytes() }
}

/// The terms that a statement and its payload have.
pub(crate) struct StatementTerms {
    keys: BTreeSet<TermKey>,
    terms: BTreeSet<SearchTerm>,
    /// `false` if the entry may have more terms.
    pub(crate) is_whole: bool,
}

impl StatementTerms {
    /// Reads the terms. Without a detached payload, there are those of the header only.
    pub(crate) fn read(statement: &SignedStatement, payload: Option<&[u8]>) -> Self {
        let values = SearchValues::of_statement(statement, payload);
        let (keys, is_whole) = (values.keys(), values.blind.is_empty());
        Self { keys, terms: values.lookups.iter().map(search_term).collect(), is_whole }
    }

    /// Returns `true` if the entry has the term.
    pub(crate) fn has(&self, term: &SearchTerm) -> bool {
        self.terms.contains(term)
    }

    /// Returns `true` if the entry has the term, or another one with its key, so that an index names it for this term.
    pub(crate) fn has_key_of(&self, term: &SearchTerm) -> bool {
        self.keys.contains(&term.key())
    }

    /// The keys of the terms and of blind codes.
    pub(crate) fn into_keys(self) -> BTreeSet<TermKey> {
        self.keys
    }
}
