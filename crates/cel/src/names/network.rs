//! Rules for what stands in the network settings of objects: ports, HTTP headers, addresses.

use std::net::IpAddr;

use super::{is_label_byte, pattern_error, too_many_characters};

const PORT_NAME_LENGTH: usize = 15;

/// The name of a port: an IANA service name.
pub fn port_name(name: &str) -> Vec<String> {
    let mut errors = too_many_characters(name, PORT_NAME_LENGTH);
    let mut check = |holds: bool, message: &str| {
        if !holds {
            errors.push(message.to_owned());
        }
    };
    check(
        !name.is_empty() && name.bytes().all(is_label_byte),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    check(
        name.bytes().any(|b| b.is_ascii_lowercase()),
        "must contain at least one letter (a-z)",
    );
    check(!name.contains("--"), "must not contain consecutive hyphens");
    check(
        !name.starts_with('-') && !name.ends_with('-'),
        "must not begin or end with a hyphen",
    );
    errors
}

/// The number of a port.
pub fn port_number(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// A number within bounds, both of which are allowed.
pub fn in_range(number: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&number) {
        return Vec::new();
    }
    vec![format!("must be between {low} and {high}, inclusive")]
}

/// The name of an HTTP header.
pub fn http_header_name(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    vec![pattern_error(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// An IPv4 or IPv6 address.
pub fn ip_address(address: &str) -> Vec<String> {
    if address.parse::<IpAddr>().is_ok() {
        return Vec::new();
    }
    vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
}
