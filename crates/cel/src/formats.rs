//! The `format` keyword: which formats the API server knows, and whether a string has one.

mod network;
mod time;

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use regex::Regex;

use self::network::{is_cidr, is_email, is_hostname, is_ip, is_mac, is_request_uri};
use self::time::{is_date, is_date_time};
use crate::names;
use crate::time::duration_of_format;

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
pub fn supported(ty: &str, format: &str) -> Option<Box<str>> {
    let known = match ty {
        "" | "string" => STRINGS.contains(&normal(format).as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    (known && !format.is_empty()).then(|| format.into())
}

/// Whether a string has a format. Formats that are not for strings hold for every string.
pub fn matches(format: &str, text: &str) -> bool {
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
        "duration" => duration_of_format(text).is_some(),
        "k8sshortname" => names::dns1123_label(text).is_empty(),
        "k8slongname" => names::dns1123_subdomain(text).is_empty(),
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
fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
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
