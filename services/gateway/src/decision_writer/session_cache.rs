//! A bounded cache that evicts the least recently used entry.

use std::collections::{BTreeMap, HashMap};

/// A bounded map from names to values.
#[derive(Debug)]
pub struct SessionCache<V> {
    capacity: usize,
    /// Number of uses so far; the number at an entry's last use is its `last_use`.
    uses: u64,
    entries: HashMap<String, Entry<V>>,
    /// The names of the entries by their last use.
    by_last_use: BTreeMap<u64, String>,
}

#[derive(Debug)]
struct Entry<V> {
    last_use: u64,
    value: V,
}

impl<V> SessionCache<V> {
    /// An empty cache for `capacity` entries, at least one.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), uses: 0, entries: HashMap::new(), by_last_use: BTreeMap::new() }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the value under this name, and marks it as used.
    pub fn get(&mut self, name: &str) -> Option<&V> {
        let entry = self.entries.get_mut(name)?;
        let name = self.by_last_use.remove(&entry.last_use)?;
        self.uses += 1;
        self.by_last_use.insert(self.uses, name);
        entry.last_use = self.uses;
        Some(&entry.value)
    }

    /// Inserts or replaces a value, and evicts the least recently used ones beyond the bound.
    pub fn insert(&mut self, name: String, value: V) {
        self.remove(&name);
        self.uses += 1;
        self.by_last_use.insert(self.uses, name.clone());
        self.entries.insert(name, Entry { last_use: self.uses, value });
        while self.entries.len() > self.capacity {
            let Some((_, oldest)) = self.by_last_use.pop_first() else { break };
            self.entries.remove(&oldest);
        }
    }

    /// Removes the value under this name, if there is one.
    pub fn remove(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.by_last_use.remove(&entry.last_use);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let mut cache = SessionCache::new(2);
        cache.insert("a".into(), 1);
        cache.insert("b".into(), 2);
        assert_eq!(cache.get("a"), Some(&1));
        cache.insert("c".into(), 3);
        for (name, held) in [("a", Some(&1)), ("b", None), ("c", Some(&3))] {
            assert_eq!(cache.get(name), held);
        }
        assert_eq!(cache.len(), 2);
    }

    #[test]
    fn an_entry_is_replaced_by_a_later_one_of_its_name_and_can_be_removed() {
        let mut cache = SessionCache::new(2);
        for round in 0..10 {
            cache.insert("a".into(), round);
        }
        assert_eq!((cache.len(), cache.get("a")), (1, Some(&9)));
        cache.remove("a");
        cache.remove("a");
        assert_eq!((cache.len(), cache.by_last_use.len()), (0, 0));
        assert_eq!(cache.get("a"), None);
    }
}
