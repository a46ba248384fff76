//! Names as DNS allows them, with the API server's explanations.

/// What keeps a text from being a label of RFC 1035: lower case, digits and dashes, starting with a letter.
pub(super) fn label_1035(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63);
    let starts = text.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts || !is_label(text) {
        faults.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    faults
}

/// What keeps a text from being a subdomain of RFC 1123: labels joined by dots.
pub(super) fn subdomain_1123(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 253);
    if !text.split('.').all(is_label) {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    faults
}

fn too_long(text: &str, max: usize) -> Vec<String> {
    let fault = || format!("must be no more than {max} bytes");
    (text.len() > max).then(fault).into_iter().collect()
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
