//! The terms of the lookup index, from an entry's search values.

use registration::{Lookup, SearchValues};
use store::lookup::EntryTerms;

/// Returns the terms of the lookup index.
pub fn entry_terms(values: SearchValues) -> EntryTerms {
    let mut terms = EntryTerms::default();
    for Lookup { kind, value } in values.lookups {
        match kind.is_listed() {
            true => terms.add_listed(kind.number(), value),
            false => terms.add(kind.number(), &value),
        }
    }
    values.blind.into_iter().for_each(|code| terms.add_blind(code));
    terms
}
