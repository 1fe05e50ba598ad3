//! The search values of an entry, and the terms of the lookup index that are made from them.
//!
//! An entry that cannot be read in full gets a blind posting: it may have any term, and a proven answer lists it.

use lookup_tree::BlindCode;
use registration::{Lookup, Record};
use scitt::header::Header;
use store::lookup::EntryTerms;

/// The search values of one entry.
#[derive(Debug, Default)]
pub struct SearchValues {
    /// The values, in order of kind and value.
    pub lookups: Vec<Lookup>,
    /// Why there may be more of them.
    blind: Vec<BlindCode>,
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

    /// The terms of the lookup index.
    pub fn into_terms(self) -> EntryTerms {
        let mut terms = EntryTerms::default();
        for Lookup { kind, value } in self.lookups {
            match kind.is_listed() {
                true => terms.add_listed(kind.number(), value),
                false => terms.add(kind.number(), &value),
            }
        }
        self.blind.into_iter().for_each(|code| terms.add_blind(code));
        terms
    }
}
