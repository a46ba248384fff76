//! Pages of documentation: links that lead nowhere, and pages that no contents list names.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::tree::TextFile;

/// The contents of the book.
pub const CONTENTS: &str = "docs/SUMMARY.md";

/// A link whose target does not exist.
#[derive(Debug, PartialEq, Eq)]
pub struct DeadLink {
    /// The page, from the root of the repository.
    pub page: PathBuf,
    /// The line, counted from one.
    pub line: usize,
    /// The target as it is written.
    pub target: String,
}

/// Relative links of Markdown pages whose file, or whose heading, does not exist. `exists` answers for files.
pub fn dead_links(pages: &[TextFile], exists: impl Fn(&Path) -> bool) -> Vec<DeadLink> {
    let mut dead = Vec::new();
    for page in pages {
        for (line, target) in links(&page.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() {
                page.path.clone()
            } else {
                normalized(&page.path.parent().unwrap_or(Path::new("")).join(file))
            };
            let other = pages.iter().find(|other| other.path == path);
            let heading_exists = heading.is_empty()
                || other.is_none_or(|page| anchors(&page.text).contains(heading));
            if !(other.is_some() || exists(&path)) || !heading_exists {
                dead.push(DeadLink {
                    page: page.path.clone(),
                    line,
                    target,
                });
            }
        }
    }
    dead
}

/// Pages below `docs` that the contents do not name.
pub fn unlisted_pages(pages: &[TextFile]) -> Vec<PathBuf> {
    let contents = pages.iter().find(|page| page.path == Path::new(CONTENTS));
    let listed: BTreeSet<PathBuf> = contents
        .map(|page| links(&page.text))
        .unwrap_or_default()
        .into_iter()
        .map(|(_, target)| Path::new("docs").join(target))
        .collect();
    let is_page = |path: &Path| path.starts_with("docs") && path != Path::new(CONTENTS);
    pages
        .iter()
        .filter(|page| is_page(&page.path) && !listed.contains(&page.path))
        .map(|page| page.path.clone())
        .collect()
}

/// Pages of `docs` with Rust in them that none of these sources includes, so that nobody compiles their blocks. Translations have the
/// code of their originals.
pub fn uncompiled_pages(pages: &[TextFile], sources: &[TextFile]) -> Vec<PathBuf> {
    let is_page = |page: &&TextFile| page.path.parent() == Some(Path::new("docs"));
    let has_rust = |page: &&TextFile| page.text.contains("\n```rust");
    let found = pages.iter().filter(is_page).filter(has_rust);
    let is_included = |page: &&TextFile| {
        let name = page.path.file_name().and_then(|name| name.to_str());
        let (here, there) = (
            format!(", \"{}\");", name.unwrap_or_default()),
            format!(
                "include_str!(\"../../../docs/{}\")",
                name.unwrap_or_default()
            ),
        );
        let includes = |it: &&str| it.contains(&here) || it.contains(&there);
        sources
            .iter()
            .map(|it| it.text.as_str())
            .any(|it| includes(&it))
    };
    let left_out = found.filter(|page| !is_included(page));
    left_out.map(|page| page.path.clone()).collect()
}

/// How many Rust blocks a page has.
pub fn rust_blocks(text: &str) -> usize {
    text.matches("\n```rust").count()
}

/// The targets of the links of a page, with their lines. Code is passed over.
fn links(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut in_code) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut rest = line;
        while let Some(start) = rest.find("](") {
            let after = &rest[start + 2..];
            let Some(end) = after.find(')') else { break };
            let target = after[..end].split(' ').next().unwrap_or_default();
            found.push((at + 1, target.to_owned()));
            rest = &after[end..];
        }
    }
    found
}

/// The names under which a page's headings can be linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let kept = line
                .trim_start_matches('#')
                .trim()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect()
}

/// A path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
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
    fn links_to_missing_files_and_headings_are_dead() {
        let pages = [
            page(
                "README.md",
                "[a](docs/a.md) [b](docs/b.md)\n[c](docs/a.md#two-words)",
            ),
            page(
                "docs/a.md",
                "# Two words\n[up](../README.md) [x](#no-such)\n```\n[y](z.md)\n```",
            ),
        ];
        let dead = dead_links(&pages, |_| false);
        let targets: Vec<&str> = dead.iter().map(|link| link.target.as_str()).collect();
        assert_eq!(targets, ["docs/b.md", "#no-such"]);
        assert_eq!(dead[0].line, 1);
        assert!(dead_links(&pages[..1], |path| path.starts_with("docs")).is_empty());
    }

    #[test]
    fn pages_with_rust_that_nobody_includes_are_uncompiled() {
        let rust = "# A\n\n```rust\nlet a = 1;\n```\n";
        let pages = [
            page("docs/a.md", rust),
            page("docs/b.md", rust),
            page("docs/c.md", "# C\n"),
            page("docs/zh/a.md", rust),
        ];
        let sources = [page("book/src/lib.rs", "page!(a, \"a.md\");")];
        assert_eq!(
            uncompiled_pages(&pages, &sources),
            [PathBuf::from("docs/b.md")]
        );
        assert_eq!(rust_blocks(rust), 1);
    }

    #[test]
    fn pages_that_the_contents_do_not_name_are_unlisted() {
        let pages = [
            page(CONTENTS, "- [A](a.md)"),
            page("docs/a.md", ""),
            page("docs/b.md", ""),
            page("README.md", ""),
        ];
        assert_eq!(unlisted_pages(&pages), [PathBuf::from("docs/b.md")]);
    }
}
