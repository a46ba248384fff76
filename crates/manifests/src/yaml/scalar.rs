//! How a text is written: plain, in quotes, or as a block of lines.

use std::fmt::Write;

use super::ambiguous::is_ambiguous;

/// The ways to write a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Style {
    /// Without quotes, as the text is.
    Plain,
    /// Between `'`, because of its punctuation.
    Single,
    /// Between `"`, because it would be another type, or has characters that must be escaped.
    Double,
    /// Lines below a `|`.
    Block,
}

/// Characters that mean something at the beginning of a value.
const INDICATORS: &str = "#,[]{}&*!|>'\"%@`";

/// The style that a text is written in.
pub(super) fn style(text: &str) -> Style {
    if text.chars().any(must_be_escaped) {
        return Style::Double;
    }
    if text.contains('\n') {
        return if fits_block(text) {
            Style::Block
        } else {
            Style::Double
        };
    }
    if is_ambiguous(text) {
        Style::Double
    } else if is_punctuated(text) {
        Style::Single
    } else {
        Style::Plain
    }
}

fn must_be_escaped(c: char) -> bool {
    let breaks = matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}');
    let invisible = matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    (c.is_control() && c != '\n') || breaks || invisible
}

/// Blocks keep their lines as they are, but white space at the edges of lines is lost on people and on editors, and
/// in front of the first line it would be taken for indentation.
fn fits_block(text: &str) -> bool {
    let body = text.trim_end_matches('\n');
    !body.is_empty()
        && !body.starts_with([' ', '\n'])
        && body.lines().all(|line| !line.ends_with(' '))
}

fn is_punctuated(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(' ');
    let second = chars.next().unwrap_or(' ');
    INDICATORS.contains(first)
        || ("-?:".contains(first) && second == ' ')
        || text.starts_with([' '])
        || text.ends_with([' ', ':'])
        || text.contains(": ")
        || text.contains(" #")
        || text.starts_with("---")
        || text.starts_with("...")
}

/// Between single quotes, in which only they themselves are special.
pub(super) fn write_single(out: &mut String, text: &str) {
    out.push('\'');
    out.push_str(&text.replace('\'', "''"));
    out.push('\'');
}

/// Between double quotes, in which everything can be escaped.
pub(super) fn write_double(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if must_be_escaped(c) => {
                write!(out, "\\u{:04X}", u32::from(c)).expect("writing to a String does not fail");
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// As lines below a `|`, with the mark that says what becomes of the line ends behind the last one.
pub(super) fn write_block(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    let ends = text.len() - body.len();
    out.push_str(match ends {
        0 => "|-\n",
        1 => "|\n",
        _ => "|+\n",
    });
    for line in body.split('\n') {
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(line);
        }
        out.push('\n');
    }
    for _ in 1..ends {
        out.push('\n');
    }
}
