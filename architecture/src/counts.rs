//! Counts of what makes code hard to read.

use std::collections::BTreeMap;

use crate::source::SourceFile;

/// Functions with at least so many parameters, `self` among them.
pub fn functions_with_parameters(files: &[SourceFile], least: usize) -> usize {
    let count = |file: &SourceFile| {
        let starts = file.code.match_indices("fn ");
        starts
            .filter(|(at, _)| {
                let before = &file.code[..*at];
                !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
                    && parameters(&file.code[at + 3..]) >= least
            })
            .count()
    };
    files.iter().map(count).sum()
}

/// The number of parameters of a function whose name begins a text.
fn parameters(text: &str) -> usize {
    let Some(open) = list_start(text) else {
        return 0;
    };
    let (mut depth, mut count, mut empty) = (0_i32, 0, true);
    let mut previous = ' ';
    for c in text[open..].chars() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if previous == '-' || previous == '=' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 1 => {
                count += usize::from(!empty);
                empty = true;
                previous = c;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            return count + usize::from(!empty);
        }
        if !(depth == 1 && c == '(') {
            empty &= c.is_whitespace();
        }
        previous = c;
    }
    count
}

/// Where the list of parameters begins: after the parameters of types, which may have parentheses of their own.
fn list_start(text: &str) -> Option<usize> {
    let (mut depth, mut previous) = (0_i32, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if previous != '-' => depth -= 1,
            '(' if depth == 0 => return Some(at),
            _ => {}
        }
        previous = c;
    }
    None
}

/// Results whose error is a text and not a type.
pub fn untyped_errors(files: &[SourceFile]) -> usize {
    let count = |file: &SourceFile| {
        let results = file.code.match_indices("Result<");
        results
            .filter(|(at, _)| error_type(&file.code[at + "Result<".len()..]) == Some("String"))
            .count()
    };
    files.iter().map(count).sum()
}

/// The second parameter of a type whose parameters begin a text.
fn error_type(text: &str) -> Option<&str> {
    let (mut depth, mut comma, mut previous) = (0_i32, None, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if depth == 0 && previous != '-' => {
                return comma.map(|comma: usize| text[comma + 1..at].trim());
            }
            '>' if previous == '-' => {}
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 && comma.is_none() => comma = Some(at),
            ';' | '{' => return None,
            _ => {}
        }
        previous = c;
    }
    None
}

/// Places that index a value with a literal string.
pub fn string_indexings(files: &[SourceFile]) -> usize {
    let count = |file: &SourceFile| {
        let text = &file.with_strings;
        let places = text.match_indices("[\"");
        let indexed = |at: usize| {
            let before = &text[..at];
            let value = before.ends_with(|c: char| c.is_alphanumeric() || "_)]?".contains(c));
            let end = text[at + 2..].find('"').map(|end| at + 2 + end + 1);
            value && end.is_some_and(|end| text[end..].starts_with(']'))
        };
        places.filter(|(at, _)| indexed(*at)).count()
    };
    files.iter().map(count).sum()
}

/// Names of types that are defined in more than one place, with the number of places.
pub fn repeated_types(files: &[SourceFile]) -> BTreeMap<String, usize> {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for line in files.iter().flat_map(|file| file.code.lines()) {
        // Types at the top of a module: their lines are not indented.
        let mut words = line.split_whitespace().map(|word| match word {
            _ if word.starts_with("pub(") && word.ends_with(')') => "pub",
            word => word,
        });
        if line.starts_with(' ') {
            continue;
        }
        let mut first = words.next();
        if first == Some("pub") || first.is_some_and(|word| word.starts_with("pub(")) {
            first = words.find(|word| !word.ends_with(')'));
        }
        if !matches!(first, Some("struct" | "enum" | "trait" | "type")) {
            continue;
        }
        if let Some(name) = words.next() {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = &name[..end.unwrap_or(name.len())];
            *names.entry(name.to_owned()).or_default() += 1;
        }
    }
    names.retain(|_, count| *count > 1);
    names
}

/// Documentation and comments, in percent of the lines that are not empty.
pub fn comment_share(files: &[SourceFile]) -> f64 {
    let comments: usize = files.iter().map(|file| file.comment_lines).sum();
    let code: usize = files.iter().map(|file| file.code_lines).sum();
    100.0 * comments as f64 / (comments + code).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> [SourceFile; 1] {
        [SourceFile::parse("a.rs".into(), text)]
    }

    #[test]
    fn parameters_are_counted() {
        let cases = [
            ("f()", 0),
            ("f(&self)", 1),
            ("f(&'a mut self, a: u8,)", 2),
            (
                "f<T: Fn(u8) -> u8>(a: Map<u8, u8>, b: [u8; 2], c: (u8, u8))",
                3,
            ),
            ("f(\n    a: impl Fn(u8, u8) -> u8,\n    b: u8,\n)", 2),
        ];
        for (text, expected) in cases {
            assert_eq!(parameters(text), expected, "{text}");
        }
        assert_eq!(
            functions_with_parameters(&file("fn a(b: u8, c: u8) {}"), 2),
            1
        );
    }

    #[test]
    fn errors_that_are_texts_are_counted() {
        let cases = [
            ("fn f() -> Result<(), String> {}", 1),
            ("type T = Result<Map<u8, String>, Error>;", 0),
            ("x: Option<Result<(u8, u8), String>>,", 1),
            ("fn f() -> io::Result<String> {}", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(untyped_errors(&file(text)), expected, "{text}");
        }
    }

    #[test]
    fn indexings_and_repeated_names_are_counted() {
        let files = file("a[\"b\"][\"c\"]; [\"d\"]; x(&[\"e\"]); f()[\"g\"]");
        assert_eq!(string_indexings(&files), 3);
        let files = file("pub struct A;\npub(crate) enum A {}\nstruct B<T>(T);\n    struct B;");
        assert_eq!(repeated_types(&files), BTreeMap::from([("A".into(), 2)]));
    }
}
