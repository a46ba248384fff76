//! How long descriptions are: a Quantity alone has two and a half thousand letters, for each field.

use serde_json::{Map, Value};

use super::marks::DESCRIPTION_LIMIT;

/// How many letters a description may have. Longer ones end after a sentence, or a word; none at all at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// In types of one's own.
    pub own: Option<usize>,
    /// In the types of Kubernetes.
    pub foreign: Option<usize>,
}

impl Default for Limits {
    /// One's own as they are, Kubernetes' up to 200 letters: a CRD with a pod template is 120 KiB then instead of 500.
    fn default() -> Self {
        Self {
            own: None,
            foreign: Some(200),
        }
    }
}

impl Limits {
    /// Sets the limits of one's own types and of the types of Kubernetes.
    pub fn new(own: Option<usize>, foreign: Option<usize>) -> Self {
        Self { own, foreign }
    }

    /// Shortens the description of a schema as its place asks for, unless it has a limit of its own, which is returned.
    pub(super) fn begin(&self, schema: &mut Map<String, Value>, foreign: bool) -> Option<usize> {
        let own = schema.remove(DESCRIPTION_LIMIT);
        let own = own.and_then(|limit| usize::try_from(limit.as_u64()?).ok());
        if own.is_none() {
            Self::end(schema, if foreign { self.foreign } else { self.own });
        }
        own
    }

    /// Shortens the description of a schema, wherever it comes from.
    pub(super) fn end(schema: &mut Map<String, Value>, limit: Option<usize>) {
        if let (Some(limit), Some(Value::String(text))) = (limit, schema.get("description")) {
            match shorten(text, limit).to_owned() {
                short if short.is_empty() => schema.remove("description"),
                short => schema.insert("description".into(), short.into()),
            };
        }
    }
}

/// The beginning of a text: whole sentences if one fits, else whole words.
fn shorten(text: &str, limit: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(limit) else {
        return text;
    };
    let start = &text[..end];
    let mut ends = start.match_indices(['.', '\n']).filter(|(at, _)| {
        let after = text[at + 1..].chars().next();
        after.is_none_or(char::is_whitespace)
    });
    let sentence = ends.next_back().map(|(at, _)| start[..=at].trim_end());
    let words = || {
        start
            .rfind(char::is_whitespace)
            .map(|at| start[..at].trim_end())
    };
    sentence.or_else(words).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_end_after_a_sentence_or_a_word() {
        let check =
            |text: &str, limit: usize, expected: &str| assert_eq!(shorten(text, limit), expected);
        check("One. Two. Three.", 100, "One. Two. Three.");
        check("One. Two. Three.", 11, "One. Two.");
        check("One two three.", 8, "One two");
        check("Version 1.5 is out. More.", 21, "Version 1.5 is out.");
        check("Onetwothree", 4, "Onet");
        check("Über alles.", 0, "");
    }
}
