//! Tells inputs that did something new from those that did not, by the words of the answer.
//!
//! Without instrumentation nobody knows which branches an input took. What a decoder says of it comes close: another
//! error is another branch. Names, numbers and quoted parts are left out, as they differ without meaning anything.

use std::collections::BTreeSet;

/// Words of an answer that are looked at.
const WORDS: usize = 24;

/// What was said before.
#[derive(Default)]
pub(crate) struct Novelty(BTreeSet<String>);

impl Novelty {
    /// Whether nothing like this was said before.
    pub(crate) fn is_new(&mut self, answer: &str) -> bool {
        self.0.insert(gist(answer))
    }

    /// How many different things were said.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The words outside of quotes, without numbers.
fn gist(answer: &str) -> String {
    let mut words = Vec::new();
    for (at, part) in answer.split(['"', '\'', '`']).enumerate() {
        if at % 2 == 0 {
            let found = part.split(|c: char| !c.is_ascii_alphabetic());
            words.extend(found.filter(|word| word.len() > 1).take(WORDS));
        }
    }
    words.truncate(WORDS);
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_differ_in_names_and_numbers_are_the_same() {
        let mut novelty = Novelty::default();
        assert!(novelty.is_new("unknown field \"spec.a\" at 7"));
        assert!(!novelty.is_new("unknown field \"status.b\" at 12"));
        assert!(novelty.is_new("duplicate field \"spec.a\" at 7"));
        assert_eq!(novelty.len(), 2);
    }
}
