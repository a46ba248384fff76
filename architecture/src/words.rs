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
pub const BANNED: [BannedPhrase; 14] = [
    banned("told", "reported, observed, asked, configured"),
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

/// Words that documents do not have. In code they are parts of names that are replaced as they are touched.
pub const BANNED_IN_DOCUMENTS: [BannedPhrase; 1] = [banned("heir", "successor")];

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
        check_in("docs/a.md", text, expected);
    }

    fn check_in(path: &str, text: &str, expected: &[(usize, &str)]) {
        let file = TextFile {
            path: path.into(),
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
            &[(1, "mended"), (2, "told")],
        );
        check("Untold riches, a recommendation.", &[]);
        check(
            "left out for want\nof a flag; for want of time",
            &[(2, "for want of")],
        );
        check("the key, which stays as it is", &[(1, "stays as it is")]);
    }

    #[test]
    fn words_are_found_in_code_and_in_parts_of_names() {
        check_in(
            "crates/cli/src/a.rs",
            "// told\nlet was_told = 1;\nlet untold = 2;",
            &[(1, "told"), (2, "told")],
        );
    }

    #[test]
    fn words_of_documents_are_found_in_their_prose_alone() {
        check("The heir of the leader.", &[(1, "heir")]);
        check("shown by `who_is_heir`", &[]);
        check_in("crates/cli/src/a.rs", "let heir = 1;", &[]);
    }
}
