//! Names of fields as expressions write them: what is not an identifier is escaped, and some names cannot be.

/// Words of the grammar itself.
const WORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Words that the language keeps for later; no variable may have one as its name, but fields may.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The identifier that stands for a field, or nothing when expressions cannot reach it.
///
/// # Examples
/// ```
/// use kubewright_cel::escape;
///
/// assert_eq!(escape("my_field").as_deref(), Some("my_field"));
/// assert_eq!(escape("x-y.z").as_deref(), Some("x__dash__y__dot__z"));
/// assert_eq!(escape("namespace").as_deref(), Some("__namespace__"));
/// assert_eq!(escape("1st"), None);
/// ```
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(word) = escape_word(name) {
        return Some(word);
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            escaped.push_str("__underscores__");
            rest = after;
            continue;
        }
        match c {
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => escaped.push(c),
            _ => return None,
        }
        rest = &rest[c.len_utf8()..];
    }
    Some(escaped)
}

/// The identifier that stands for a field whose name is a word of the language; nothing for other names.
pub(super) fn escape_word(name: &str) -> Option<String> {
    (WORDS.contains(&name) || RESERVED.contains(&name)).then(|| format!("__{name}__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_the_api_server_does() {
        let cases = [
            ("a", Some("a")),
            ("_a_b_", Some("_a_b_")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("a____b", Some("a__underscores____underscores__b")),
            ("x.y", Some("x__dot__y")),
            ("x-y", Some("x__dash__y")),
            ("x/y", Some("x__slash__y")),
            ("-x", Some("__dash__x")),
            ("in", Some("__in__")),
            ("namespace", Some("__namespace__")),
            ("int", Some("int")),
            ("self", Some("self")),
            ("a b", None),
            ("é", None),
            ("$ref", None),
            ("", None),
            ("9a", None),
        ];
        for (name, expect) in cases {
            assert_eq!(escape(name).as_deref(), expect, "{name}");
        }
    }
}
