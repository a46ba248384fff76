//! A small sorted map of strings in one allocation: labels and selectable fields of a record.

use std::fmt::{self, Write};

/// Sorted pairs of strings. A hundred thousand records carry two of them each, so they are packed: keys and values one
/// after the other, each with its length in front (`3:app3:web`).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    text: Box<str>,
}

impl Pairs {
    /// The number of pairs. Counts them.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// All pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = &*self.text;
        std::iter::from_fn(move || Some((take(&mut rest)?, take(&mut rest)?)))
    }

    /// Length of all keys and values together, packed.
    pub(super) fn packed_len(&self) -> usize {
        self.text.len()
    }
}

/// Takes the first piece off a packed text.
fn take<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let (length, pieces) = rest.split_once(':')?;
    let (piece, pieces) = pieces.split_at_checked(length.parse().ok()?)?;
    *rest = pieces;
    Some(piece)
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Pairs {
    /// Sorts by key. Of equal keys the last one stays, as in a JSON object.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(K, V)> = pairs.into_iter().collect();
        pairs.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
        let mut text = String::new();
        for (i, (key, value)) in pairs.iter().enumerate() {
            let next = pairs.get(i + 1).map(|next| next.0.as_ref());
            if next == Some(key.as_ref()) {
                continue;
            }
            for piece in [key.as_ref(), value.as_ref()] {
                write!(text, "{}:{piece}", piece.len()).expect("a String takes everything");
            }
        }
        Self { text: text.into() }
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
        check(
            &[("3:a", "1:"), ("12", ":::")],
            &[("12", ":::"), ("3:a", "1:")],
        );
    }
}
