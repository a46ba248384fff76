//! A map that keeps what was used lately, and no more than so much of it.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries of each cache, as in client-go.
const ENTRIES: usize = 4_096;

/// The entries used last, by key.
#[derive(Debug)]
pub(super) struct Recent<V> {
    entries: BTreeMap<Arc<str>, Entry<V>>,
    /// The keys of `entries`, each once, by `used`.
    order: BTreeMap<u64, Arc<str>>,
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    used: u64,
    value: V,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            order: BTreeMap::new(),
            uses: 0,
        }
    }
}

impl<V> Recent<V> {
    /// The entry of this key, made if it is not there; the one unused for longest makes room.
    pub(super) fn entry(&mut self, key: &str, fresh: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        let used = self.uses;
        let key: Arc<str> = match self.entries.get(key) {
            Some(entry) => self.order.remove(&entry.used).unwrap_or_else(|| key.into()),
            None => key.into(),
        };
        if !self.entries.contains_key(&key) && self.entries.len() >= ENTRIES {
            let oldest = self.order.pop_first();
            oldest.and_then(|(_, oldest)| self.entries.remove(&oldest));
        }
        self.order.insert(used, key.clone());
        let fresh = || Entry {
            used,
            value: fresh(),
        };
        let entry = self.entries.entry(key).or_insert_with(fresh);
        entry.used = used;
        &mut entry.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_unused_for_longest_makes_room() {
        let mut recent = Recent::default();
        for number in 0..ENTRIES {
            recent.entry(&number.to_string(), || number);
        }
        assert_eq!(*recent.entry("0", || usize::MAX), 0, "used again");
        recent.entry("new", || 0);
        assert_eq!(*recent.entry("0", || usize::MAX), 0);
        assert_eq!(*recent.entry("1", || usize::MAX), usize::MAX, "it was gone");
        assert_eq!(recent.entries.len(), ENTRIES);
        assert_eq!(recent.order.len(), ENTRIES);
    }
}
