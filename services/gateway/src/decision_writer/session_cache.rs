//! A bounded cache that evicts the least recently used entry.

use std::collections::{BTreeMap, HashMap};

/// A bounded map from names to values.
#[derive(Debug)]
pub struct SessionCache<V> {
    most: usize,
    tick: u64,
    held: HashMap<String, (u64, V)>,
    order: BTreeMap<u64, String>,
}

impl<V> SessionCache<V> {
    /// An empty cache for `most` entries, at least one.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), tick: 0, held: HashMap::new(), order: BTreeMap::new() }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns the value under this name, and marks it as used.
    pub fn get(&mut self, name: &str) -> Option<&V> {
        let (tick, _) = self.held.get(name)?;
        let owned = self.order.remove(tick)?;
        self.tick += 1;
        self.order.insert(self.tick, owned);
        let held = self.held.get_mut(name)?;
        held.0 = self.tick;
        Some(&held.1)
    }

    /// Inserts or replaces a value, and evicts the least recently used ones beyond the bound.
    pub fn put(&mut self, name: String, value: V) {
        self.remove(&name);
        self.tick += 1;
        self.order.insert(self.tick, name.clone());
        self.held.insert(name, (self.tick, value));
        while self.held.len() > self.most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.held.remove(&oldest);
        }
    }

    /// Removes the value under this name, if there is one.
    pub fn remove(&mut self, name: &str) {
        if let Some((tick, _)) = self.held.remove(name) {
            self.order.remove(&tick);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let mut shelf = SessionCache::new(2);
        shelf.put("a".into(), 1);
        shelf.put("b".into(), 2);
        assert_eq!(shelf.get("a"), Some(&1));
        shelf.put("c".into(), 3);
        for (name, held) in [("a", Some(&1)), ("b", None), ("c", Some(&3))] {
            assert_eq!(shelf.get(name), held);
        }
        assert_eq!(shelf.len(), 2);
    }

    #[test]
    fn what_is_put_again_is_replaced_and_what_is_removed_is_gone() {
        let mut shelf = SessionCache::new(2);
        for round in 0..10 {
            shelf.put("a".into(), round);
        }
        assert_eq!((shelf.len(), shelf.get("a")), (1, Some(&9)));
        shelf.remove("a");
        shelf.remove("a");
        assert_eq!((shelf.len(), shelf.order.len()), (0, 0));
        assert_eq!(shelf.get("a"), None);
    }
}
