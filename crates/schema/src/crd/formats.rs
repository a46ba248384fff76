//! The `format` keyword: which formats the API server knows, and whether a string has one.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

/// Formats of strings, without the dashes that the validator ignores.
const STRINGS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// The format if it means something for the type; unknown formats are ignored.
pub(super) fn supported(ty: &str, format: &str) -> Option<Box<str>> {
    let known = match ty {
        "" | "string" => STRINGS.contains(&normal(format).as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    (known && !format.is_empty()).then(|| format.into())
}

/// Whether a string has a format. Formats that are not for strings hold for every string.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match normal(format).as_str() {
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "uri" => is_request_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && is_ip(text),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, |_, _| true),
        "uuid3" => is_uuid(text, |version, _| version == b'3'),
        "uuid4" => is_uuid(text, |version, variant| {
            version == b'4' && b"89ab".contains(&variant)
        }),
        "uuid5" => is_uuid(text, |version, variant| {
            version == b'5' && b"89ab".contains(&variant)
        }),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => text.len() == 11 && SSN.is_match(text),
        "hexcolor" => HEX_COLOR.is_match(text),
        "rgbcolor" => RGB_COLOR.is_match(text),
        "byte" => is_base64(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "k8sshortname" => text.len() <= 63 && is_label(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        _ => true,
    }
}

fn normal(format: &str) -> String {
    format.replace('-', "")
}

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("patterns of formats are valid")
}

static SSN: LazyLock<Regex> = LazyLock::new(|| compiled(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static HEX_COLOR: LazyLock<Regex> =
    LazyLock::new(|| compiled("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*";
    compiled(&format!(r"^rgb\({part},{part},{part}\)$"))
});
static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}\
         |3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
});
static DURATION_PART: LazyLock<Regex> = LazyLock::new(|| compiled(r"([0-9]+)\s*([A-Za-zµ]+)"));

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_label(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// An absolute path, or a URI with a scheme.
fn is_request_uri(text: &str) -> bool {
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
fn is_email(text: &str) -> bool {
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
fn is_hostname(text: &str) -> bool {
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
fn is_ip(text: &str) -> bool {
    is_ipv4(text) || text.parse::<Ipv6Addr>().is_ok()
}

fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let part = |p: &&str| {
        !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()) && p.parse::<u8>().is_ok()
    };
    parts.len() == Ipv4Addr::UNSPECIFIED.octets().len() && parts.iter().all(part)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let max = if is_ipv4(address) { 32 } else { 128 };
    let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    digits && is_ip(address) && bits.parse::<u8>().is_ok_and(|bits| bits <= max)
}

fn is_mac(text: &str) -> bool {
    let grouped = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|p| p.len() == width && is_hex(p))
    };
    grouped(':', 2, &[6, 8, 20]) || grouped('-', 2, &[6, 8, 20]) || grouped('.', 4, &[3, 4, 10])
}

/// The dashes are optional, each on its own.
fn is_uuid(text: &str, accept: impl Fn(u8, u8) -> bool) -> bool {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (i, width) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(width) else {
            return false;
        };
        digits.push_str(part);
        rest = after;
    }
    let digits = digits.to_ascii_lowercase().into_bytes();
    rest.is_empty() && digits.iter().all(u8::is_ascii_hexdigit) && accept(digits[12], digits[16])
}

fn without_separators(text: &str) -> Vec<u8> {
    text.bytes()
        .filter(|b| !b.is_ascii_whitespace() && *b != b'-')
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let [head @ .., last] = digits.as_slice() else {
        return false;
    };
    if head.len() != 9
        || !head.iter().all(u8::is_ascii_digit)
        || !(last.is_ascii_digit() || *last == b'X')
    {
        return false;
    }
    let value = |b: u8| if b == b'X' { 10 } else { u32::from(b - b'0') };
    let sum: u32 = (1..).zip(&digits).map(|(i, b)| i * value(*b)).sum();
    sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighted = digits.iter().enumerate();
    let sum: u32 = weighted
        .map(|(i, b)| u32::from(b - b'0') * if i % 2 == 0 { 1 } else { 3 })
        .sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let weighted = digits.bytes().rev().enumerate();
    let sum: u32 = weighted
        .map(|(i, b)| {
            let digit = u32::from(b - b'0') * if i % 2 == 0 { 1 } else { 2 };
            if digit >= 10 { digit - 9 } else { digit }
        })
        .sum();
    CREDIT_CARD.is_match(&digits) && sum.is_multiple_of(10)
}

/// Standard alphabet with padding; an empty string does not count.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(i, b)| {
            if i == 4 || i == 7 {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        })
        && text.parse::<jiff::civil::Date>().is_ok()
}

/// Go reads the time after the first `t` and compares its parts as text.
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

fn is_time(time: &str) -> bool {
    let bytes = time.as_bytes();
    let two = |at: usize, max: &str| {
        bytes.len() >= at + 2
            && bytes[at..at + 2].iter().all(u8::is_ascii_digit)
            && &bytes[at..at + 2] <= max.as_bytes()
    };
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    if !(two(0, "23") && colon(2) && two(3, "59") && colon(5) && two(6, "59")) {
        return false;
    }
    let mut zone = &bytes[8..];
    if zone.len() > 1 && zone[1].is_ascii_digit() && !is_zone(zone) {
        let digits = zone[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        zone = &zone[1 + digits..];
    }
    is_zone(zone)
}

fn is_zone(zone: &[u8]) -> bool {
    match zone {
        b"z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}

/// A Go duration such as `1h30m`, or words such as `2 days`.
fn is_duration(text: &str) -> bool {
    if is_go_duration(text) {
        return true;
    }
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let unit = |unit: &str| {
        UNITS.iter().any(|names| {
            names.contains(&unit) || names.last().is_some_and(|word| unit.starts_with(word))
        })
    };
    let mut found = false;
    for part in DURATION_PART.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        found |= unit(&part[2].to_lowercase());
    }
    found
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .len();
        let digits = &rest[..number];
        let after = &rest[number..];
        let units = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
        let unit = units.iter().find(|u| {
            after.strip_prefix(**u).is_some_and(|r| {
                r.is_empty() || r.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            })
        });
        let valid = digits.matches('.').count() <= 1 && digits.bytes().any(|b| b.is_ascii_digit());
        let Some(unit) = unit.filter(|_| valid) else {
            return false;
        };
        rest = &after[unit.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{matches, supported};

    #[track_caller]
    fn check(format: &str, yes: &[&str], no: &[&str]) {
        assert!(supported("string", format).is_some(), "{format} is known");
        for text in yes {
            assert!(matches(format, text), "{text:?} is a {format}");
        }
        for text in no {
            assert!(!matches(format, text), "{text:?} is no {format}");
        }
    }

    #[test]
    fn strings_have_formats() {
        check(
            "date",
            &["2024-02-29"],
            &["2023-02-29", "2024-2-1", "x", "2024-02-29T"],
        );
        check(
            "date-time",
            &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+01:00"],
            &["2014-12-15", "2014-12-15T25:00:00Z", "2014-12-15T19:30:20"],
        );
        check(
            "duration",
            &["1h30m", "-1.5s", "2 days", "0", "22 ns"],
            &["", "h", "5", "five minutes"],
        );
        check(
            "email",
            &["a@b", "A <a.b@c.io>"],
            &["a", "@b", "a b@c", "<a@b"],
        );
        check(
            "hostname",
            &["a", "a-b.example.com", "1.example.com"],
            &["-a", "a.b1", "a..com", ""],
        );
        check(
            "ipv4",
            &["1.2.3.4", "01.2.3.4"],
            &["1.2.3", "1.2.3.256", "::1"],
        );
        check("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "::g"]);
        check(
            "cidr",
            &["10.0.0.0/8", "fe80::/64"],
            &["10.0.0.0", "10.0.0.0/33", "x/8"],
        );
        check(
            "uri",
            &["https://a.b/c", "/path", "urn:x"],
            &["", "a b", "no-scheme", "http://a%zz"],
        );
        check(
            "mac",
            &["01:23:45:67:89:ab", "0123.4567.89ab"],
            &["01:23", "01:23:45:67:89:ag"],
        );
        check(
            "uuid",
            &[
                "123e4567-e89b-12d3-a456-426614174000",
                "123E4567e89b12d3a456426614174000",
            ],
            &["123", "123e4567-e89b-12d3-a456-42661417400g"],
        );
        check(
            "uuid4",
            &["123e4567-e89b-42d3-a456-426614174000"],
            &["123e4567-e89b-12d3-a456-426614174000"],
        );
        check("byte", &["YWI=", "YWJj"], &["", "YWI", "a b="]);
        check(
            "isbn",
            &["0321751043", "978-0321751041"],
            &["0321751044", "x"],
        );
        check(
            "creditcard",
            &["4111 1111 1111 1111"],
            &["4111111111111112"],
        );
        check("ssn", &["111-11-1111"], &["111111111"]);
        check("hexcolor", &["#fff", "00FF00"], &["#ff"]);
        check("rgbcolor", &["rgb(1, 2,255)"], &["rgb(1,2,256)"]);
        check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]);
        check("k8s-short-name", &["a-1"], &["A", "-a", "a.b"]);
        check("k8s-long-name", &["a.b"], &["a..b"]);
        check("password", &["anything"], &[]);
    }

    #[test]
    fn unknown_formats_are_ignored() {
        assert!(supported("string", "colour").is_none());
        assert!(supported("integer", "int16").is_none());
        assert!(supported("object", "date").is_none());
        assert!(supported("integer", "int32").is_some());
    }
}
