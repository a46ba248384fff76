//! Name rules: what a name may look like, and the words for one that does not. Every rule gives the list of its
//! complaints, empty for a good name.

/// Rule for the names of a kind's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS-1123 subdomain.
    Subdomain,
    /// A DNS-1123 label.
    Label,
    /// A DNS-1035 label.
    Label1035,
    /// Anything that fits into one segment of a path.
    PathSegment,
}

impl NameRule {
    /// Checks a whole name.
    pub(crate) fn check(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Subdomain => subdomain(name),
            NameRule::Label => label(name),
            NameRule::Label1035 => label_1035(name),
            NameRule::PathSegment => path_segment(name),
        }
    }

    /// Checks a `generateName`: a trailing dash is allowed, because characters will follow it.
    pub(crate) fn check_prefix(self, prefix: &str) -> Vec<String> {
        if self == NameRule::PathSegment {
            return path_segment_content(prefix);
        }
        match prefix.as_bytes() {
            // The dash and the character before it give way to a letter.
            [head @ .., before, b'-'] if before.is_ascii() => {
                self.check(&format!("{}a", &prefix[..head.len()]))
            }
            _ => self.check(prefix),
        }
    }
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// `text (e.g. 'a', or 'b', regex used for validation is 'pattern')`
fn complaint(text: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    let examples = examples.join(" or ");
    format!("{text} (e.g. {examples}regex used for validation is '{pattern}')")
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// `must be between <low> and <high>, inclusive`
pub(crate) fn range_text(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

fn is_lower_or_digit(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn matches_label(name: &str) -> bool {
    let bytes = name.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(a), Some(z)) if is_lower_or_digit(*a) && is_lower_or_digit(*z))
        && bytes.iter().all(|b| is_lower_or_digit(*b) || *b == b'-')
}

fn matches_subdomain(name: &str) -> bool {
    name.split('.').all(matches_label)
}

fn matches_qualified(name: &str) -> bool {
    let bytes = name.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(a), Some(z)) if a.is_ascii_alphanumeric() && z.is_ascii_alphanumeric())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// A DNS-1123 subdomain of at most 253 characters.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 253 {
        out.push(too_long(253));
    }
    if !matches_subdomain(name) {
        out.push(complaint(SUBDOMAIN_TEXT, SUBDOMAIN, &["example.com"]));
    }
    out
}

/// A DNS-1123 label of at most 63 characters.
pub(crate) fn label(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 63 {
        out.push(too_long(63));
    }
    if matches_label(name) {
        return out;
    }
    if matches_subdomain(name) {
        out.push("must not contain dots".to_owned());
    } else {
        let text = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
        out.push(complaint(text, LABEL, &["my-name", "123-abc"]));
    }
    out
}

/// A DNS-1035 label of at most 63 characters, as Services have.
pub(crate) fn label_1035(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 63 {
        out.push(too_long(63));
    }
    if !(matches_label(name) && name.as_bytes()[0].is_ascii_lowercase()) {
        let text = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
        let pattern = "[a-z]([-a-z0-9]*[a-z0-9])?";
        out.push(complaint(text, pattern, &["my-name", "abc-123"]));
    }
    out
}

/// A `*.` wildcard in front of a DNS-1123 subdomain.
pub(crate) fn wildcard_subdomain(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 253 {
        out.push(too_long(253));
    }
    if !name.strip_prefix("*.").is_some_and(matches_subdomain) {
        let text = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        let pattern = format!("\\*\\.{SUBDOMAIN}");
        out.push(complaint(text, &pattern, &["*.example.com"]));
    }
    out
}

/// A label key, annotation key (lower-cased) or finalizer: `[prefix/]name`.
pub(crate) fn qualified(key: &str) -> Vec<String> {
    let mut out = Vec::new();
    let examples = &["MyName", "my.name", "123-abc"];
    let mut parts = key.split('/');
    let first = parts.next().unwrap_or_default();
    let name = match (parts.next(), parts.next()) {
        (None, _) => first,
        (Some(name), None) => {
            if first.is_empty() {
                out.push("prefix part must be non-empty".to_owned());
            } else {
                out.extend(
                    subdomain(first)
                        .into_iter()
                        .map(|m| format!("prefix part {m}")),
                );
            }
            name
        }
        _ => {
            let text = complaint(QUALIFIED_TEXT, QUALIFIED, examples);
            return vec![format!(
                "a valid label key {text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        out.push("name part must be no more than 63 bytes".to_owned());
    }
    if !matches_qualified(name) {
        let text = complaint(QUALIFIED_TEXT, QUALIFIED, examples);
        out.push(format!("name part {text}"));
    }
    out
}

/// The value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut out = Vec::new();
    if value.len() > 63 {
        out.push("must be no more than 63 bytes".to_owned());
    }
    if !(value.is_empty() || matches_qualified(value)) {
        let text = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        let pattern = format!("({QUALIFIED})?");
        out.push(complaint(text, &pattern, &["MyValue", "my_value", "12345"]));
    }
    out
}

fn path_segment_content(name: &str) -> Vec<String> {
    ["/", "%"]
        .iter()
        .filter(|c| name.contains(**c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

/// A name that fits into one segment of a path.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_content(name)
}

/// The key of a ConfigMap or Secret entry.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    let mut out = Vec::new();
    if key.len() > 253 {
        out.push(too_long(253));
    }
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(good) {
        let text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        let examples = &["key.name", "KEY_NAME", "key-name"];
        out.push(complaint(text, "[-._a-zA-Z0-9]+", examples));
    }
    out.extend(parent_directory(key));
    out
}

fn parent_directory(name: &str) -> Option<String> {
    match name {
        "." => Some("must not be '.'".to_owned()),
        ".." => Some("must not be '..'".to_owned()),
        _ if name.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

/// The name of an environment variable.
pub(crate) fn environment_variable(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if name.chars().any(|c| !matches!(c, ' '..='~') || c == '=') {
        return vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned()];
    }
    Vec::new()
}

/// A port number.
pub(crate) fn port_number(port: i64) -> Vec<String> {
    if (1..=65535).contains(&port) {
        Vec::new()
    } else {
        vec![range_text(1, 65535)]
    }
}

/// The name of a port.
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 15 {
        out.push(too_long(15));
    }
    if name.is_empty() || !name.bytes().all(|b| is_lower_or_digit(b) || b == b'-') {
        out.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        out.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        out.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        out.push("must not begin or end with a hyphen".to_owned());
    }
    out
}

/// A percentage such as `25%`.
pub(crate) fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    let text = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![complaint(text, "[0-9]+%", &["1%", "93%"])]
}

/// The name of an HTTP header.
pub(crate) fn http_header(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    let text = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![complaint(text, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// An IPv4 or IPv6 address.
pub(crate) fn ip(address: &str) -> Vec<String> {
    if address.parse::<std::net::IpAddr>().is_ok() {
        Vec::new()
    } else {
        vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&str) -> Vec<String>, good: &[&str], bad: &[&str]) {
        for name in good {
            assert_eq!(rule(name), Vec::<String>::new(), "{name}");
        }
        for name in bad {
            assert!(!rule(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn names_follow_their_rules() {
        let long = "a".repeat(64);
        check(
            subdomain,
            &["a", "a.b-c.0"],
            &["", "A", "a..b", "-a", "a.-b"],
        );
        check(label, &["a", "0-a"], &["", "a.b", &long]);
        check(label_1035, &["a-0"], &["", "0-a", "a-"]);
        check(
            qualified,
            &["a", "A.b_c", "ex.io/A"],
            &["", "/a", "a/", "a/b/c", "A.io/a_"],
        );
        check(label_value, &["", "a_B.9"], &["-", "a b", &long]);
        check(
            path_segment,
            &["system:x", "a b"],
            &[".", "..", "a/b", "a%"],
        );
        check(config_key, &["a.B_c-"], &["", "a/b", "..", "..a", "."]);
        check(
            port_name,
            &["http", "p-1"],
            &["", "80", "a--b", "-a", "aaaaaaaaaaaaaaaa"],
        );
        check(percent, &["0%", "120%"], &["%", "1", "1.5%", "-1%"]);
        check(ip, &["10.0.0.1", "::1"], &["", "10.0.0", "010.0.0.1"]);
    }

    #[test]
    fn generate_name_may_end_in_a_dash() {
        assert!(NameRule::Subdomain.check_prefix("gen-").is_empty());
        assert!(!NameRule::Subdomain.check_prefix("Gen-").is_empty());
        assert!(!NameRule::Label.check_prefix("-").is_empty());
        assert!(!NameRule::Label.check_prefix("é-").is_empty());
    }
}
