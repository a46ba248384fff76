//! Tells inputs that did something new from those that did not, by the words of the answer.
//!
//! Without instrumentation nobody knows which branches an input took. What a decoder says of it comes close: another
//! error is another branch. Names, numbers and quoted parts are left out, as they differ without meaning anything.

use std::collections::BTreeSet;

/// Words of an answer that are looked at.
const WORDS: usize = 24;
/// Answers that are remembered. When there are so many, they are made of the inputs, and nothing is new any more.
const ANSWERS: usize = 50_000;

/// The outcomes that were seen before.
#[derive(Default)]
pub(crate) struct Novelty(BTreeSet<String>);

impl Novelty {
    /// Whether no outcome like this was seen before.
    pub(crate) fn is_new(&mut self, answer: &str) -> bool {
        self.0.len() < ANSWERS && self.0.insert(gist(answer))
    }

    /// How many different outcomes were seen.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The words outside of quotes, without numbers.
fn gist(answer: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut rest = answer;
    loop {
        let plain = rest.find(['"', '\'', '`']).unwrap_or(rest.len());
        let found = rest[..plain].split(|c: char| !c.is_ascii_alphabetic());
        words.extend(found.filter(|word| word.len() > 1));
        let Some(quote) = rest[plain..].chars().next() else {
            break;
        };
        rest = behind_quote(&rest[plain + 1..], quote);
    }
    words.truncate(WORDS);
    words.join(" ")
}

/// What follows the quote that ends what is quoted; nothing if none does, because an answer may be cut off.
fn behind_quote(text: &str, quote: char) -> &str {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return &text[at + 1..],
            _ => {}
        }
    }
    ""
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

    #[test]
    fn words_of_the_input_are_left_out_whatever_quotes_they_have() {
        for answer in [
            r#"invalid value "a \" b ` c": no label"#,
            r#"invalid value "one ' two": no label"#,
        ] {
            assert_eq!(gist(answer), "invalid value no label");
        }
        assert_eq!(gist(r#"invalid value "cut o"#), "invalid value");
    }
}
