//! Rules for names: DNS labels and subdomains, label keys and values, ports, environment variables, config keys.
//!
//! Each rule returns what is wrong with a name, in the words the API server uses; an empty list means nothing is.

mod network;
#[cfg(test)]
mod tests;

pub use network::{http_header_name, in_range, ip_address, port_name, port_number};

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED_NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_NAME_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;

/// A label of RFC 1123: the name of a namespace, a container, a volume.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let mut errors = too_many_characters(name, LABEL_LENGTH);
    if !is_dns1123_label(name) {
        errors.push(if is_dns1123_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            pattern_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                DNS1123_LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

/// A subdomain of RFC 1123: the name of most objects.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut errors = too_many_characters(name, SUBDOMAIN_LENGTH);
    errors.extend(subdomain_pattern(name));
    errors
}

/// A wildcard such as `*.example.com`: the host of an Ingress.
pub fn wildcard_dns1123_subdomain(name: &str) -> Vec<String> {
    let mut errors = too_many_characters(name, SUBDOMAIN_LENGTH);
    if !name.strip_prefix("*.").is_some_and(is_dns1123_subdomain) {
        errors.push(pattern_error(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{DNS1123_SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    errors
}

/// A label of RFC 1035, which starts with a letter: the name of a Service.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let mut errors = too_many_characters(name, LABEL_LENGTH);
    let starts_with_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !(starts_with_letter && is_dns1123_label(name)) {
        errors.push(pattern_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    errors
}

/// A name with an optional domain and slash before it: a label key, an annotation key, a resource name, a finalizer.
pub fn qualified_name(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = name.splitn(3, '/').collect();
    let short = match *parts.as_slice() {
        [short] => short,
        [prefix, short] => {
            errors.extend(prefix_errors(prefix));
            short
        }
        _ => {
            let rule = qualified_name_pattern();
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if short.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if short.len() > LABEL_LENGTH {
        errors.push(format!("name part {}", too_many_bytes(LABEL_LENGTH)));
    }
    if !is_qualified_name_part(short) {
        errors.push(format!("name part {}", qualified_name_pattern()));
    }
    errors
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_LENGTH {
        errors.push(too_many_bytes(LABEL_LENGTH));
    }
    if !value.is_empty() && !is_qualified_name_part(value) {
        errors.push(pattern_error(
            &format!(
                "a valid label must be an empty string or {}",
                &QUALIFIED_NAME_MESSAGE["must ".len()..]
            ),
            &format!("({QUALIFIED_NAME})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// An identifier of the C language. The length is not checked.
pub fn c_identifier(name: &str) -> Vec<String> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Vec::new();
    }
    vec![pattern_error(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// The strict form of the name of an environment variable.
pub fn env_var_name(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let starts = name.starts_with(|c: char| !c.is_ascii_digit());
    if !(starts && name.bytes().all(is_config_key_byte)) {
        errors.push(pattern_error(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        ));
    }
    errors.extend(changes_directory(name));
    errors
}

/// The name of an environment variable of a container: any printable ASCII but `=`.
pub fn relaxed_env_var_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if name.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

/// A key of a ConfigMap or Secret.
pub fn config_map_key(key: &str) -> Vec<String> {
    let mut errors = too_many_characters(key, SUBDOMAIN_LENGTH);
    if key.is_empty() || !key.bytes().all(is_config_key_byte) {
        errors.push(pattern_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    errors.extend(changes_directory(key));
    errors
}

/// A percentage such as `25%`.
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![pattern_error(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// A name that is safe as one segment of a path. Neither emptiness nor length is checked.
pub fn path_segment_name(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_prefix(name)
}

/// The start of a name that is safe as one segment of a path, such as `generateName`.
pub fn path_segment_prefix(name: &str) -> Vec<String> {
    ['/', '%']
        .into_iter()
        .filter(|c| name.contains(*c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

fn prefix_errors(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let too_long = (prefix.len() > SUBDOMAIN_LENGTH).then(|| too_many_bytes(SUBDOMAIN_LENGTH));
    too_long
        .into_iter()
        .chain(subdomain_pattern(prefix))
        .map(|message| format!("prefix part {message}"))
        .collect()
}

fn subdomain_pattern(name: &str) -> Option<String> {
    if is_dns1123_subdomain(name) {
        return None;
    }
    Some(pattern_error(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        DNS1123_SUBDOMAIN,
        &["example.com"],
    ))
}

fn qualified_name_pattern() -> String {
    pattern_error(
        QUALIFIED_NAME_MESSAGE,
        QUALIFIED_NAME,
        &["MyName", "my.name", "123-abc"],
    )
}

fn changes_directory(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("must not be '{name}'")),
        _ if name.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn is_label_byte(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'
}

fn is_config_key_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

fn is_dns1123_label(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && !name.ends_with('-')
        && name.bytes().all(is_label_byte)
}

fn is_dns1123_subdomain(name: &str) -> bool {
    name.split('.').all(is_dns1123_label)
}

fn is_qualified_name_part(name: &str) -> bool {
    let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    ends(name.bytes().next())
        && ends(name.bytes().next_back())
        && name.bytes().all(is_config_key_byte)
}

/// Kubernetes counts bytes here but says characters.
fn too_many_characters(name: &str, max: usize) -> Vec<String> {
    if name.len() <= max {
        return Vec::new();
    }
    vec![format!("must be no more than {max} characters")]
}

fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn pattern_error(message: &str, pattern: &str, examples: &[&str]) -> String {
    let quoted: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!(
        "{message} (e.g. {}regex used for validation is '{pattern}')",
        quoted.join(" or ")
    )
}
