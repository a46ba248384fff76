//! Writes strings and floating-point numbers as Go does.

use std::io::Write;

/// How each byte is written: 0 as it is, `u` as `\u00XX`, `x` when what follows decides, else after a backslash.
const ESCAPE: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'<' as usize] = b'u';
    table[b'>' as usize] = b'u';
    table[b'&' as usize] = b'u';
    // The first byte of U+2028 and U+2029, which are line ends in JavaScript.
    table[0xe2] = b'x';
    table
};

/// Appends a key and its colon to `out`.
pub fn key(key: &str, out: &mut Vec<u8>) {
    string(key, out);
    out.push(b':');
}

/// Appends a string in quotes to `out`, escaped as Go does for HTML.
pub fn string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escape = ESCAPE[usize::from(*byte)];
        if escape == 0 {
            continue;
        }
        let length = match escape {
            b'x' if !matches!(bytes[at..], [0xe2, 0x80, 0xa8 | 0xa9, ..]) => continue,
            b'x' => 3,
            _ => 1,
        };
        out.extend_from_slice(&bytes[written..at]);
        match escape {
            b'u' => hexadecimal(u16::from(*byte), out),
            b'x' => hexadecimal(0x2000 | u16::from(bytes[at + 2] - 0x80), out),
            short => out.extend_from_slice(&[b'\\', short]),
        }
        written = at + length;
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

fn hexadecimal(unit: u16, out: &mut Vec<u8>) {
    write!(out, "\\u{unit:04x}").expect("writing to memory does not fail");
}

/// Appends a number in the shortest form, with an exponent only when it is very large or very small.
pub(super) fn float(value: f64, out: &mut Vec<u8>) {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        write!(out, "{value}").expect("writing to memory does not fail");
        return;
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    write!(out, "{digits}e{sign}{exponent}").expect("writing to memory does not fail");
}
