//! docs/benchmarks.md: a page of sections, of which each command writes its own.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

const TITLE: &str = "# Benchmarks\n";

/// Replaces the section of this name, or adds it at the end.
pub fn replace(path: &Path, section: &str, text: &str) -> Result<()> {
    let page = fs::read_to_string(path).unwrap_or_else(|_| TITLE.to_owned());
    fs::write(path, with_section(&page, section, text))
        .with_context(|| format!("writing {}", path.display()))
}

fn with_section(page: &str, section: &str, text: &str) -> String {
    let (begin, end) = (
        format!("<!-- begin {section} -->\n"),
        format!("<!-- end {section} -->\n"),
    );
    let text = format!("{begin}{}\n{end}", text.trim());
    let start = page.find(&begin);
    let stop = page.find(&end).map(|at| at + end.len());
    match (start, stop) {
        (Some(start), Some(stop)) if start < stop => {
            format!("{}{text}{}", &page[..start], &page[stop..])
        }
        _ => format!("{}\n\n{text}", page.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_is_added_once_and_replaced_afterwards() {
        let page = with_section(TITLE, "one", "first");
        let page = with_section(&page, "two", "other");
        let page = with_section(&page, "one", "second");
        assert_eq!(
            page,
            "# Benchmarks\n\n<!-- begin one -->\nsecond\n<!-- end one -->\n\n\
             <!-- begin two -->\nother\n<!-- end two -->\n"
        );
    }
}
