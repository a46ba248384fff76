//! A small sorted map of strings in two allocations: labels and selectable fields of a record.

use std::fmt;

/// Sorted pairs of strings. A hundred thousand records carry one each, so it is packed: one text and the places where
/// its pieces end.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Keys and values one after the other.
    text: Box<str>,
    /// End of each piece in `text`; even positions are keys, odd ones values.
    ends: Box<[u32]>,
}

impl Pairs {
    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// All pairs, by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        (0..self.len()).map(|i| (self.piece(2 * i), self.piece(2 * i + 1)))
    }

    /// Length of all keys and values together.
    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    fn piece(&self, index: usize) -> &str {
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1] as usize,
        };
        &self.text[start..self.ends[index] as usize]
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Pairs {
    /// Sorts by key. Of equal keys the last one stays, as in a JSON object.
    ///
    /// # Panics
    /// When the text exceeds four gigabytes: request limits lie far below.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(K, V)> = pairs.into_iter().collect();
        pairs.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
        let mut text = String::new();
        let mut ends = Vec::with_capacity(2 * pairs.len());
        for (i, (key, value)) in pairs.iter().enumerate() {
            let replaced = pairs
                .get(i + 1)
                .is_some_and(|next| next.0.as_ref() == key.as_ref());
            if replaced {
                continue;
            }
            for piece in [key.as_ref(), value.as_ref()] {
                text.push_str(piece);
                ends.push(u32::try_from(text.len()).expect("labels stay below four gigabytes"));
            }
        }
        Self {
            text: text.into(),
            ends: ends.into(),
        }
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[(&str, &str)], expect: &[(&str, &str)]) {
        let pairs: Pairs = input.iter().copied().collect();
        assert_eq!(pairs.iter().collect::<Vec<_>>(), expect);
        assert_eq!(pairs.len(), expect.len());
        for (key, value) in expect {
            assert_eq!(pairs.get(key), Some(*value));
        }
        assert_eq!(pairs.get("absent"), None);
    }

    #[test]
    fn pairs_are_sorted_and_the_last_of_equal_keys_stays() {
        check(&[], &[]);
        check(&[("b", "2"), ("a", "1")], &[("a", "1"), ("b", "2")]);
        check(&[("a", "1"), ("a", ""), ("", "x")], &[("", "x"), ("a", "")]);
        check(&[("schlüssel", "größe")], &[("schlüssel", "größe")]);
    }
}
