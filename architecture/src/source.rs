//! Source files without what is not code: strings, comments and tests.

use std::fs;
use std::path::{Path, PathBuf};

/// One file of a crate, without its tests.
#[derive(Debug)]
pub struct SourceFile {
    /// Its path below the crate's `src`.
    pub path: PathBuf,
    /// The code; strings are empty and comments are gone.
    pub code: String,
    /// The code as it is written, with strings, without comments.
    pub with_strings: String,
    /// Lines that are documentation or comments.
    pub comment_lines: usize,
    /// Lines that are neither, and not empty.
    pub code_lines: usize,
}

impl SourceFile {
    /// Takes the text of a file apart.
    pub fn parse(path: PathBuf, text: &str) -> Self {
        let text = without_tests(text);
        let is_comment = |line: &str| line.trim_start().starts_with("//");
        let lines = || text.lines().filter(|line| !line.trim().is_empty());
        let comment_lines = lines().filter(|line| is_comment(line)).count();
        Self {
            path,
            code: strip(&text, Strings::Drop),
            with_strings: strip(&text, Strings::Keep),
            comment_lines,
            code_lines: lines().count() - comment_lines,
        }
    }

    /// The module at the top of the crate that the file belongs to; none for the root.
    pub fn module(&self) -> Option<String> {
        let first = self.path.components().next()?.as_os_str().to_str()?;
        let name = first.strip_suffix(".rs").unwrap_or(first);
        (!matches!(name, "lib" | "main")).then(|| name.to_owned())
    }

    /// How many modules lie between the root and the file's content.
    pub fn depth(&self) -> usize {
        let count = self.path.components().count();
        match self.path.file_name().and_then(|name| name.to_str()) {
            Some("lib.rs" | "main.rs") if count == 1 => 0,
            Some("mod.rs") => count - 1,
            _ => count,
        }
    }
}

/// The source files of a crate, without its tests.
pub fn of_crate(directory: &Path) -> Vec<SourceFile> {
    let (root, mut found) = (directory.join("src"), Vec::new());
    collect(&root, &root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<SourceFile>) {
    for item in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = item.path();
        if matches!(item.file_name().to_str(), Some("tests" | "tests.rs")) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|e| e == "rs")
            && let Ok(text) = fs::read_to_string(&path)
            && let Ok(below) = path.strip_prefix(root)
        {
            found.push(SourceFile::parse(below.to_owned(), &text));
        }
    }
}

/// Everything before the module of tests, which comes last in a file.
fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {");
    text[..end.unwrap_or(text.len())].to_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strings {
    Keep,
    Drop,
}

/// Code without comments. Enough of the language is known to tell a quote that begins a string from one that does not.
fn strip(text: &str, strings: Strings) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        let length = match c {
            '"' => string_length(rest),
            'r' | 'b' if !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                raw_string_length(rest)
            }
            '\'' => char_length(rest),
            _ => 0,
        };
        if length == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        match strings {
            Strings::Keep => out.push_str(&rest[..length]),
            Strings::Drop => out.push_str("\"\""),
        }
        rest = &rest[length..];
    }
    out
}

/// The length of the string that a text begins with.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a string with `r` or `b` before it; zero if there is none.
fn raw_string_length(text: &str) -> usize {
    let after = text.trim_start_matches(['b', 'r']);
    let prefix = text.len() - after.len();
    let raw = text[..prefix].contains('r');
    let hashes = after.len() - after.trim_start_matches('#').len();
    if prefix > 2 || !after[hashes..].starts_with('"') || (hashes > 0 && !raw) {
        return 0;
    }
    if !raw {
        return prefix + string_length(after);
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = prefix + hashes + 1;
    let found = text[body..].find(&end);
    found.map_or(text.len(), |at| body + at + end.len())
}

/// The length of a character; zero for a lifetime.
fn char_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(0, |at| at + 4),
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        SourceFile::parse("a.rs".into(), text).code
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        assert_eq!(code("a(\"x\\\"y\") // c\nb"), "a(\"\") \nb");
        assert_eq!(code("r#\"crate::x\"# + br\"y\""), "\"\" + \"\"");
        assert_eq!(code("'\"' 'a 'b' '\\'' c"), "\"\" 'a \"\" \"\" c");
        assert_eq!(code("for x in bar {}"), "for x in bar {}");
    }

    #[test]
    fn tests_are_left_out_and_lines_counted() {
        let text = "//! Doc.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let file = SourceFile::parse("a/b.rs".into(), text);
        assert_eq!((file.comment_lines, file.code_lines), (1, 1));
        assert_eq!(file.module().as_deref(), Some("a"));
        assert_eq!(file.depth(), 2);
    }
}
