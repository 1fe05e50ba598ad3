//! The search values of an entry, and the keys of the search index that are made from them.
//!
//! An entry that cannot be read in full gets a blind posting: it may have any term, and a proven answer lists it.

use std::collections::BTreeSet;

use lookup_tree::{BlindCode, TermKey};
use scitt::header::Header;

use crate::lookups::Lookup;
use crate::record::Record;

/// The search values of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchValues {
    /// The values, in order of kind and value.
    pub lookups: Vec<Lookup>,
    /// Why there may be more of them.
    pub blind: Vec<BlindCode>,
}

impl SearchValues {
    /// No values, for this reason.
    pub fn blind(code: BlindCode) -> Self {
        Self { lookups: Vec::new(), blind: vec![code] }
    }

    /// Reads a statement with the payload that the log serves. Without it, or if the payload breaks the rules of its
    /// content type, there are the values of the header only.
    pub fn read(header: &Header, payload: Option<&[u8]>) -> Self {
        if let Some(Ok(record)) = payload.map(|payload| Record::of(header, payload)) {
            return Self::of_record(header, &record, payload);
        }
        let mut values = Self::of_record(header, &Record::opaque(), payload);
        values.blind.push(BlindCode::Unreadable);
        values
    }

    /// The values of a statement whose record was read.
    pub fn of_record(header: &Header, record: &Record, payload: Option<&[u8]>) -> Self {
        let found = record.gather_lookups(header, payload);
        let blind = if found.truncated() { vec![BlindCode::TooManyTerms] } else { Vec::new() };
        Self { lookups: found.into_vec(), blind }
    }

    /// The keys of the terms and of the blind codes.
    pub fn keys(&self) -> BTreeSet<TermKey> {
        let key = |lookup: &Lookup| TermKey::of(lookup.kind.number(), lookup.value.as_bytes());
        self.lookups.iter().map(key).chain(self.blind.iter().map(|code| code.key())).collect()
    }
}
