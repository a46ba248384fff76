//! Addresses: URIs, mail, hosts and IP networks.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::is_hex;

/// An absolute path, or a URI with a scheme.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control()) {
        return false;
    }
    if text.starts_with('/') {
        return has_valid_escapes(text);
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let valid = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let authority = rest
        .strip_prefix("//")
        .map(|r| r.split('/').next().unwrap_or(r));
    starts
        && scheme.chars().all(valid)
        && has_valid_escapes(rest)
        && !authority
            .is_some_and(|host| host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']))
}

fn has_valid_escapes(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|part| part.len() >= 2 && part.is_char_boundary(2) && is_hex(&part[..2]))
}

/// `local@domain`, also as `Name <local@domain>`.
pub(super) fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.trim_end().strip_suffix('>')) {
        (Some(open), Some(inner)) => &inner[open + 1..],
        (None, None) => text.trim(),
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |s: &str| {
        let special = |c: char| c.is_ascii_control() || " ()<>[]:;@\\,\"".contains(c);
        !s.is_empty()
            && s.split('.')
                .all(|part| !part.is_empty() && !part.contains(special))
    };
    let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
    (quoted || atom(local)) && atom(domain)
}

/// Labels of letters, digits, symbols and inner dashes; the last of several is of letters.
pub(super) fn is_hostname(text: &str) -> bool {
    let part =
        |c: char| c.is_alphanumeric() && !c.is_numeric() || c.is_ascii_digit() || is_symbol(c);
    let label = |s: &str| {
        s.len() <= 63
            && s.starts_with(part)
            && s.ends_with(part)
            && s.chars().all(|c| part(c) || c == '-')
    };
    if text.len() > 255 {
        return false;
    }
    match text.rsplit_once('.') {
        None => label(text),
        Some((rest, top)) => {
            let top_length = top.chars().count();
            (2..=63).contains(&top_length)
                && top.chars().all(char::is_alphabetic)
                && rest.split('.').all(label)
        }
    }
}

fn is_symbol(c: char) -> bool {
    !c.is_ascii() && !c.is_alphanumeric() && !c.is_whitespace() && !c.is_control()
        || "$+<=>^`|~".contains(c)
}

/// An address; leading zeros in the parts of an IPv4 address are tolerated.
pub(super) fn is_ip(text: &str) -> bool {
    is_ipv4(text) || text.parse::<Ipv6Addr>().is_ok()
}

fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let part = |p: &&str| {
        !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()) && p.parse::<u8>().is_ok()
    };
    parts.len() == Ipv4Addr::UNSPECIFIED.octets().len() && parts.iter().all(part)
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let max = if is_ipv4(address) { 32 } else { 128 };
    let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    digits && is_ip(address) && bits.parse::<u8>().is_ok_and(|bits| bits <= max)
}

pub(super) fn is_mac(text: &str) -> bool {
    let grouped = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|p| p.len() == width && is_hex(p))
    };
    grouped(':', 2, &[6, 8, 20]) || grouped('-', 2, &[6, 8, 20]) || grouped('.', 4, &[3, 4, 10])
}
