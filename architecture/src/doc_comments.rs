//! Doc comments of public items that say too little to be read alone, in an editor's hover.

use std::path::PathBuf;

use crate::tree::TextFile;

/// Fewer words than these say nothing that the name does not.
pub const LEAST_WORDS: usize = 4;

/// A public item whose documentation is shorter than [`LEAST_WORDS`].
#[derive(Debug, PartialEq, Eq)]
pub struct ShortDoc {
    /// The file, from the root of the repository.
    pub path: PathBuf,
    /// The line of the item, counted from one.
    pub line: usize,
    /// The whole comment.
    pub text: String,
}

/// Public items, fields and variants with a doc comment of too few words. Items without one are rustc's business.
pub fn short_docs(files: &[TextFile]) -> Vec<ShortDoc> {
    let mut found = Vec::new();
    for file in files {
        let mut doc: Vec<&str> = Vec::new();
        for (at, line) in file.text.lines().enumerate() {
            let line = line.trim();
            if line == "mod tests {" {
                break;
            }
            if let Some(text) = line.strip_prefix("///") {
                doc.push(text.trim());
            } else if !line.starts_with("#[") {
                let text = doc.join(" ");
                let words = text.split_whitespace().count();
                if (1..LEAST_WORDS).contains(&words) && is_public(line) {
                    found.push(ShortDoc {
                        path: file.path.clone(),
                        line: at + 1,
                        text,
                    });
                }
                doc.clear();
            }
        }
    }
    found
}

/// Whether a line begins something that others can see: an item or field with `pub`, or a variant.
fn is_public(line: &str) -> bool {
    let name = line.split(|c: char| !c.is_alphanumeric()).next();
    let variant = name.is_some_and(|name| {
        let after = line[name.len()..].trim_start();
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && (after.is_empty() || after.starts_with([',', '(', '{', '=']))
    });
    variant || line.starts_with("pub ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lines: &[usize]) {
        let file = TextFile {
            path: "a.rs".into(),
            text: text.to_owned(),
        };
        let found: Vec<usize> = short_docs(&[file]).iter().map(|doc| doc.line).collect();
        assert_eq!(found, lines, "{text}");
    }

    #[test]
    fn public_items_with_two_words_are_found() {
        check("/// The name.\npub name: String,", &[2]);
        check("/// It goes.\n#[non_exhaustive]\nDelete,", &[3]);
        check("/// Why.\npub fn why() {}", &[2]);
    }

    #[test]
    fn sentences_and_private_items_pass() {
        check("/// Returns the name of the object.\npub fn name() {}", &[]);
        check("/// The name.\nname: String,", &[]);
        check(
            "/// The name.\n///\n/// It never changes.\npub name: String,",
            &[],
        );
        check("pub fn undocumented() {}", &[]);
    }
}
