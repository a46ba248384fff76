//! Words of our own where the field has one: style that a reader stumbles over.

use std::path::{Path, PathBuf};

use crate::tree::TextFile;

/// A phrase that we do not write, and what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BannedPhrase {
    /// The words, in lower case, separated by single spaces.
    pub phrase: &'static str,
    /// The replacement that a finding suggests.
    pub instead: &'static str,
}

/// The table. Words are matched whole and in any case; identifiers count by their parts, so that `mend_it` is found too.
pub const BANNED: [BannedPhrase; 19] = [
    banned("let told", "answer, result, or no variable"),
    banned("told of", "reported, notified of"),
    banned("has told", "has reported"),
    banned("have told", "have reported"),
    banned("is told what", "gets, receives"),
    banned("be told", "be known, be distinguished"),
    banned("mend", "fix, reset"),
    banned("mends", "fixes, resets"),
    banned("mended", "fixed, reset"),
    banned("chance", "random, seed"),
    banned("for want of", "without, because there is no"),
    banned("stays as it is", "timed out waiting for"),
    banned("again and again", "repeatedly, polls"),
    banned("forgiving", "lenient"),
    banned("reluctance", "score"),
    banned("elders", "legacy kinds"),
    banned("there is none", "not found, missing"),
    banned("is no object", "is not an object"),
    banned("is no name", "is not a name"),
];

/// Single words that documents do not have. In code they are parts of names and sentences that are replaced as they are touched:
/// there they are counted ([`uses_in_code`]).
pub const BANNED_IN_DOCUMENTS: [BannedPhrase; 2] = [
    banned("told", "reported, observed, said by"),
    banned("heir", "successor"),
];

const fn banned(phrase: &'static str, instead: &'static str) -> BannedPhrase {
    BannedPhrase { phrase, instead }
}

/// One use of a phrase that we do not write.
#[derive(Debug, PartialEq, Eq)]
pub struct WordFinding {
    /// The file, from the root of the repository.
    pub path: PathBuf,
    /// The line, counted from one.
    pub line: usize,
    /// The row of the table.
    pub banned: BannedPhrase,
}

/// Every use of a banned phrase in these files. The file with the table itself is left out.
pub fn banned_words(files: &[TextFile]) -> Vec<WordFinding> {
    let own = Path::new("architecture");
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !file.path.starts_with(own)) {
        for (at, line) in file.text.lines().enumerate() {
            let mut rows = uses(&BANNED, &words_of(line));
            if file.has_extension("md") {
                rows.extend(uses(&BANNED_IN_DOCUMENTS, &words_of(&prose_of(line))));
            }
            found.extend(rows.into_iter().map(|banned| WordFinding {
                path: file.path.clone(),
                line: at + 1,
                banned,
            }));
        }
    }
    found
}

/// The rows of a table that these words use, once for each use.
fn uses(table: &[BannedPhrase], words: &str) -> Vec<BannedPhrase> {
    let mut found = Vec::new();
    for banned in table {
        let count = words.matches(&format!(" {} ", banned.phrase)).count();
        found.extend(std::iter::repeat_n(*banned, count));
    }
    found
}

/// A line without the code in it, which may be the name of a test.
fn prose_of(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// How often a word occurs in the Rust sources among these files, the table's own left out.
pub fn uses_in_code(files: &[TextFile], word: &str) -> usize {
    let code = files.iter().filter(|file| file.has_extension("rs"));
    let code = code.filter(|file| !file.path.starts_with("architecture"));
    let lines = code.flat_map(|file| file.text.lines());
    let word = format!(" {word} ");
    lines
        .map(|line| words_of(line).matches(&word).count())
        .sum()
}

/// A line's words in lower case, with one space around each.
fn words_of(line: &str) -> String {
    let parts = line.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = parts
        .filter(|part| !part.is_empty())
        .map(str::to_lowercase)
        .collect();
    format!(" {} ", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(usize, &str)]) {
        let file = TextFile {
            path: "docs/a.md".into(),
            text: text.to_owned(),
        };
        let found: Vec<(usize, &str)> = banned_words(&[file])
            .iter()
            .map(|finding| (finding.line, finding.banned.phrase))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn banned_words_are_found_whole_and_in_any_case() {
        check(
            "It was Mended.\nlet told = 1;",
            &[(1, "mended"), (2, "let told"), (2, "told")],
        );
        check("Untold riches, a recommendation.", &[]);
        check(
            "left out for want\nof a flag; for want of time",
            &[(2, "for want of")],
        );
        check("the key, which stays as it is", &[(1, "stays as it is")]);
    }

    #[test]
    fn single_words_are_found_in_documents_and_counted_in_code() {
        check("The queue was told.", &[(1, "told")]);
        check("shown by `who_is_told`", &[]);
        let code = TextFile {
            path: "crates/cli/src/a.rs".into(),
            text: "// told\nlet was_told = 1;\nlet untold = 2;".to_owned(),
        };
        let files = [code];
        assert_eq!(banned_words(&files), []);
        assert_eq!(uses_in_code(&files, "told"), 2);
    }
}
