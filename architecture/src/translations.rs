//! Translations of pages: each section says which text it translates, so that a change of the original is noticed.
//!
//! A translation has a line `<!-- section: TITLE; FINGERPRINT -->` above each of its sections. The title is that of the original, and
//! the fingerprint that of its text when it was translated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::tree::TextFile;

/// Originals with their translations.
pub const TRANSLATED: [(&str, [&str; 2]); 2] = [
    ("README.md", ["README.zh.md", "README.ru.md"]),
    (
        "docs/quick-start.md",
        ["docs/zh/quick-start.md", "docs/ru/quick-start.md"],
    ),
];

/// A section of a translation that does not follow its original.
#[derive(Debug, PartialEq, Eq)]
pub struct OutOfDate {
    /// The translation, from the root of the repository.
    pub page: PathBuf,
    /// The title of the section in the original.
    pub section: String,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

/// Every section of a translation that is missing, was made from another text, or has no original any more.
pub fn out_of_date(pages: &[TextFile]) -> Vec<OutOfDate> {
    let text_of = |path: &str| {
        let page = pages.iter().find(|page| page.path == Path::new(path));
        page.map(|page| page.text.as_str())
    };
    let mut found = Vec::new();
    for (original, translations) in TRANSLATED {
        let Some(original) = text_of(original) else {
            continue;
        };
        let sections = sections(original);
        for page in translations {
            let text = text_of(page).unwrap_or_default();
            let mut problems = compare(&sections, &markers(text));
            if problems.is_empty() && code_blocks(text) != code_blocks(original) {
                let problem = "the code differs from that of the original; copy it".to_owned();
                problems.push(("code".to_owned(), problem));
            }
            let problems = problems.into_iter();
            found.extend(problems.map(|(section, problem)| OutOfDate {
                page: page.into(),
                section,
                problem,
            }));
        }
    }
    found
}

fn compare(
    sections: &BTreeMap<String, String>,
    translated: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    for (title, fingerprint) in sections {
        let problem = match translated.get(title) {
            Some(found) if found == fingerprint => continue,
            Some(_) => format!("changed since it was translated; then write {fingerprint}"),
            None => format!("not translated; mark it <!-- section: {title}; {fingerprint} -->"),
        };
        problems.push((title.clone(), problem));
    }
    let gone = translated.keys().filter(|it| !sections.contains_key(*it));
    problems.extend(gone.map(|it| (it.clone(), "has no original any more".to_owned())));
    problems
}

/// The titles of a page's sections with the fingerprints of their texts. What is before the first section has the page's title.
fn sections(text: &str) -> BTreeMap<String, String> {
    let (mut found, mut in_code) = (BTreeMap::<String, String>::new(), false);
    let mut title = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let heading = line.strip_prefix("## ").or_else(|| line.strip_prefix("# "));
        if let (Some(heading), false) = (heading, in_code) {
            title = heading.to_owned();
        }
        let section = found.entry(title.clone()).or_default();
        section.push_str(line.trim());
        section.push('\n');
    }
    let with_text = found
        .into_iter()
        .filter(|(_, text)| !text.trim().is_empty());
    with_text
        .map(|(title, text)| (title, fingerprint(text.trim())))
        .collect()
}

/// The code of a page, which is not translated.
fn code_blocks(text: &str) -> Vec<&str> {
    text.split("```").skip(1).step_by(2).collect()
}

/// What a translation says that it translates.
fn markers(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| {
        let inner = line.strip_prefix("<!-- section: ")?.strip_suffix(" -->")?;
        let (title, fingerprint) = inner.rsplit_once("; ")?;
        Some((title.to_owned(), fingerprint.to_owned()))
    });
    lines.collect()
}

/// A short number for a text: FNV-1a, which needs no dependency. Nobody attacks it.
fn fingerprint(text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &str =
        "# Title\n\nHello.\n\n## One\n\n```\n## not a section\n```\n\n## Two\n\nText.\n";

    fn page(path: &str, text: &str) -> TextFile {
        TextFile {
            path: path.into(),
            text: text.to_owned(),
        }
    }

    /// A translation in which every section is current, as it would be marked.
    fn current() -> String {
        let marks = sections(ORIGINAL).into_iter();
        let marks = marks.map(|(title, mark)| format!("<!-- section: {title}; {mark} -->\n## x\n"));
        let marks: String = marks.collect();
        format!("{marks}```\n## not a section\n```\n")
    }

    /// Titles of the sections of one translation that are out of date.
    fn check(translation: &str, expected: &[&str]) {
        let pages = [
            page("README.md", ORIGINAL),
            page("README.zh.md", translation),
            page("README.ru.md", &current()),
        ];
        let found = out_of_date(&pages);
        let found: Vec<&str> = found.iter().map(|it| it.section.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_section_that_changed_is_missing_or_is_gone_is_named() {
        check(&current(), &[]);
        check("", &["One", "Title", "Two"]);
        let stale = current().replace(&fingerprint("## Two\n\nText."), "0123");
        check(&stale, &["Two"]);
        let more = format!("{}<!-- section: Three; 00 -->\n", current());
        check(&more, &["Three"]);
        let other_code = current().replace("not a section", "nicht so");
        check(&other_code, &["code"]);
    }
}
