//! The page of terms: each row names a page, and the page has to have the term.

use std::path::{Path, PathBuf};

use crate::tree::TextFile;

/// Where terms are listed.
pub const TERMS: &str = "docs/terms.md";

/// A term whose page does not have it.
#[derive(Debug, PartialEq, Eq)]
pub struct UnexplainedTerm {
    /// The term as the table has it.
    pub term: String,
    /// The page that should explain it, from the root of the repository.
    pub page: PathBuf,
}

/// One row: a term, and the page that the row links to.
type Row<'a> = (&'a str, &'a str);

/// Terms of [`TERMS`] that do not occur on the page that their row links to. Names in code are compared exactly, words in any
/// case and with any space between them.
pub fn unexplained_terms(pages: &[TextFile]) -> Vec<UnexplainedTerm> {
    let table = pages.iter().find(|page| page.path == Path::new(TERMS));
    let rows = table.map(|page| rows(&page.text)).unwrap_or_default();
    let missing = rows.into_iter().filter_map(|(term, link)| {
        let page = Path::new("docs").join(link);
        let text = pages.iter().find(|it| it.path == page);
        let explained = text.is_some_and(|it| has(&it.text, term));
        (!explained).then(|| UnexplainedTerm {
            term: term.to_owned(),
            page,
        })
    });
    missing.collect()
}

/// The terms of a table with their pages; a cell may have several.
pub fn rows(text: &str) -> Vec<Row<'_>> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let Some((terms, rest)) = line[1..].split_once('|') else {
            continue;
        };
        let link = rest.split("](").nth(1).and_then(|it| it.split(')').next());
        let Some(link) = link else { continue };
        let page = link.split('#').next().unwrap_or(link);
        found.extend(terms.split(", ").map(|term| (term.trim(), page)));
    }
    found
}

fn has(text: &str, term: &str) -> bool {
    match term.strip_prefix('`').and_then(|it| it.strip_suffix('`')) {
        Some(code) => text.contains(code),
        None => {
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            words(text).to_lowercase().contains(&term.to_lowercase())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> TextFile {
        TextFile {
            path: path.into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn terms_that_their_page_does_not_have_are_named() {
        let pages = [
            page(
                TERMS,
                "| term | page |\n|---|---|\n| hot loop, `Key` | [A](a.md#x) |\n| `key` | [A](a.md) |\n| cause | [B](b.md) |",
            ),
            page("docs/a.md", "A Hot\nloop of a `Key`."),
        ];
        let found = unexplained_terms(&pages);
        let found: Vec<&str> = found.iter().map(|it| it.term.as_str()).collect();
        assert_eq!(found, ["`key`", "cause"]);
    }
}
