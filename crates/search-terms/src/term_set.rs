//! The set of an entry's search values, within its bound.

use std::collections::BTreeSet;

use crate::limits::MAX_LOOKUPS;
use crate::lookup::{Lookup, LookupKind};

/// A set of search values with at most [`MAX_LOOKUPS`] members.
#[derive(Debug, Default)]
pub(crate) struct TermSet {
    found: BTreeSet<Lookup>,
    truncated: bool,
}

impl TermSet {
    /// Adds a value. A new one is dropped if the set is full.
    pub fn add(&mut self, kind: LookupKind, value: &str) {
        let lookup = Lookup::new(kind, value);
        match self.found.len() < MAX_LOOKUPS {
            true => drop(self.found.insert(lookup)),
            false => self.truncated |= !self.found.contains(&lookup),
        }
    }

    /// Returns `true` if a value was dropped: nothing that follows changes the set.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Returns the values in order of kind and value.
    pub fn into_vec(self) -> Vec<Lookup> {
        self.found.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_under_so_many_values_and_no_more() {
        let mut found = TermSet::default();
        for n in (0..MAX_LOOKUPS).chain([0, 1]) {
            found.add(LookupKind::CallId, &n.to_string());
        }
        assert!(!found.is_truncated(), "a value that is there already is not a further one");
        found.add(LookupKind::CallId, "one more");
        assert!(found.is_truncated());
        assert_eq!(found.into_vec().len(), MAX_LOOKUPS);
    }
}
