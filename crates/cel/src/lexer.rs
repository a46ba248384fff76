//! Splits an expression into tokens.

use super::source::Issue;

/// One token and where it starts and ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) at: usize,
    pub(crate) end: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// Operators, brackets and the keyword `in`.
    Symbol(&'static str),
    Ident(Box<str>),
    /// A field name in backquotes.
    Quoted(Box<str>),
    /// Decimal or hexadecimal digits without their sign.
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    End,
}

/// Why no token can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum LexError {
    #[error("Syntax error: token recognition error at: '{0}'")]
    Unrecognized(String),
    #[error("invalid {0} literal")]
    Literal(&'static str),
    #[error("unable to unescape string")]
    Escape,
}

/// Longest first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", ".", ",", "+", "-", "*", "/", "%",
    "(", ")", "[", "]", "{", "}",
];

/// All tokens of a source, the last of them [`TokenKind::End`].
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, Vec<Issue>> {
    let mut lexer = Lexer { source, at: 0 };
    let mut found = Vec::new();
    let mut issues = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        match lexer.next() {
            Ok(kind) => {
                let end = kind == TokenKind::End;
                found.push(Token {
                    kind,
                    at,
                    end: lexer.at,
                });
                if end {
                    break;
                }
            }
            Err(error) => {
                let message = error.to_string();
                issues.push(Issue { at, message });
                if issues.len() > 100 {
                    break;
                }
            }
        }
    }
    if issues.is_empty() {
        Ok(found)
    } else {
        Err(issues)
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
            self.at += rest.len() - blank.len();
            if !blank.starts_with("//") {
                return;
            }
            self.at += blank.find('\n').unwrap_or(blank.len());
        }
    }

    fn next(&mut self) -> Result<TokenKind, LexError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(TokenKind::End);
        };
        if let Some(literal) = self.quoted_literal() {
            return literal;
        }
        if first.is_ascii_digit() || (first == '.' && digits(&rest[1..]) > 0) {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let length = rest
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
                .count();
            self.at += length;
            return Ok(match &rest[..length] {
                "in" => TokenKind::Symbol("in"),
                word => TokenKind::Ident(word.into()),
            });
        }
        if first == '`' {
            return self.backquoted();
        }
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
        match symbol {
            Some(symbol) => {
                self.at += symbol.len();
                Ok(TokenKind::Symbol(symbol))
            }
            None => Err(self.unrecognized(first.len_utf8())),
        }
    }

    fn unrecognized(&mut self, length: usize) -> LexError {
        let text = self.rest()[..length].to_owned();
        self.at += length;
        LexError::Unrecognized(text)
    }

    fn backquoted(&mut self) -> Result<TokenKind, LexError> {
        let rest = self.rest();
        let name: usize = rest[1..]
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || b"_.-/ ".contains(b))
            .count();
        if name == 0 || rest.as_bytes().get(1 + name) != Some(&b'`') {
            return Err(self.unrecognized(1));
        }
        self.at += name + 2;
        Ok(TokenKind::Quoted(rest[1..=name].into()))
    }

    fn number(&mut self) -> Result<TokenKind, LexError> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        if let Some(hex) = rest.strip_prefix("0x") {
            let length = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
            if length > 0 {
                self.at += 2 + length;
                return self.integer(u64::from_str_radix(&hex[..length], 16).ok());
            }
        }
        let mut length = digits(rest);
        let mut real = false;
        if bytes.get(length) == Some(&b'.') && digits(&rest[length + 1..]) > 0 {
            real = true;
            length += 1 + digits(&rest[length + 1..]);
        }
        if matches!(bytes.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            let exponent = rest.get(length + 1 + sign..).map_or(0, digits);
            if exponent > 0 {
                real = true;
                length += 1 + sign + exponent;
            }
        }
        self.at += length;
        if real {
            let value = rest[..length]
                .parse()
                .map_err(|_| LexError::Literal("double"))?;
            return Ok(TokenKind::Double(value));
        }
        self.integer(rest[..length].parse().ok())
    }

    fn integer(&mut self, value: Option<u64>) -> Result<TokenKind, LexError> {
        if self.rest().starts_with(['u', 'U']) {
            self.at += 1;
            return value.map(TokenKind::Uint).ok_or(LexError::Literal("uint"));
        }
        value.map(TokenKind::Int).ok_or(LexError::Literal("int"))
    }

    /// A string or bytes literal, or nothing when none starts here.
    fn quoted_literal(&mut self) -> Option<Result<TokenKind, LexError>> {
        let rest = self.rest();
        let prefix = rest
            .bytes()
            .take_while(|b| b"rRbB".contains(b))
            .take(3)
            .count();
        let flags = rest[..prefix].to_ascii_lowercase();
        if !matches!(flags.as_str(), "" | "r" | "b" | "rb" | "br") {
            return None;
        }
        let body = &rest[prefix..];
        let quote = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|quote| body.starts_with(quote))?;
        let (raw, bytes) = (flags.contains('r'), flags.contains('b'));
        let Some(length) = closing(&body[quote.len()..], quote, raw) else {
            return Some(Err(self.unrecognized(rest.len())));
        };
        self.at += prefix + length + 2 * quote.len();
        let text = &body[quote.len()..quote.len() + length];
        Some(literal(text, raw, bytes))
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Where a literal ends. Short literals may not go over lines.
fn closing(body: &str, quote: &str, raw: bool) -> Option<usize> {
    let bytes = body.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(quote.as_bytes()) {
            return Some(at);
        }
        match bytes[at] {
            b'\\' if !raw => at += 2,
            b'\n' | b'\r' if quote.len() == 1 => return None,
            _ => at += 1,
        }
    }
    None
}

fn literal(text: &str, raw: bool, bytes: bool) -> Result<TokenKind, LexError> {
    if !bytes {
        let text = if raw {
            text.to_owned()
        } else {
            unescape(text)?
        };
        return Ok(TokenKind::Text(text.into()));
    }
    let bytes = if raw {
        text.as_bytes().to_vec()
    } else {
        unescape_bytes(text)?
    };
    Ok(TokenKind::Bytes(bytes.into()))
}

fn unescape(text: &str) -> Result<String, LexError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (code, length) = escape(&rest[at + 1..])?;
        out.push(char::from_u32(code).ok_or(LexError::Escape)?);
        rest = &rest[at + 1 + length..];
    }
    out.push_str(rest);
    Ok(out)
}

/// In bytes, `\x` and octal escapes are single bytes; everything else is UTF-8.
fn unescape_bytes(text: &str) -> Result<Vec<u8>, LexError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let after = &rest[at + 1..];
        if after.starts_with(['u', 'U']) {
            return Err(LexError::Escape);
        }
        let (code, length) = escape(after)?;
        out.push(u8::try_from(code).map_err(|_| LexError::Escape)?);
        rest = &after[length..];
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// The character after a backslash, and how long it is written.
fn escape(after: &str) -> Result<(u32, usize), LexError> {
    let number = |from: usize, length: usize, radix: u32| {
        let digits = after.get(from..from + length).ok_or(LexError::Escape)?;
        let valid = digits.chars().all(|c| c.is_digit(radix));
        let code = u32::from_str_radix(digits, radix).map_err(|_| LexError::Escape);
        if valid {
            code.map(|code| (code, from + length))
        } else {
            Err(LexError::Escape)
        }
    };
    Ok(match after.bytes().next().ok_or(LexError::Escape)? {
        b'a' => (7, 1),
        b'b' => (8, 1),
        b'f' => (12, 1),
        b'n' => (10, 1),
        b'r' => (13, 1),
        b't' => (9, 1),
        b'v' => (11, 1),
        same @ (b'\\' | b'\'' | b'"' | b'`' | b'?') => (u32::from(same), 1),
        b'x' | b'X' => number(1, 2, 16)?,
        b'u' => number(1, 4, 16)?,
        b'U' => number(1, 8, 16)?,
        b'0'..=b'3' => number(0, 3, 8)?,
        _ => return Err(LexError::Escape),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<TokenKind> {
        let tokens = tokens(source).expect("the source lexes");
        tokens.into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn literals_are_read() {
        let text = |t: &str| TokenKind::Text(t.into());
        let bytes = |t: &[u8]| TokenKind::Bytes(t.into());
        let cases = [
            ("12", TokenKind::Int(12)),
            ("0xFf", TokenKind::Int(255)),
            ("3u", TokenKind::Uint(3)),
            ("1.5", TokenKind::Double(1.5)),
            (".5e1", TokenKind::Double(5.0)),
            ("2e3", TokenKind::Double(2000.0)),
            ("'a\\n\\x41\\u00e9\\101'", text("a\nA\u{e9}A")),
            ("r'\\d'", text("\\d")),
            ("\"\"\"a\n'b\"\"\"", text("a\n'b")),
            ("b'\\xff\u{e9}'", bytes(b"\xff\xc3\xa9")),
            ("bR'\\x'", bytes(b"\\x")),
            ("`a.b-c`", TokenKind::Quoted("a.b-c".into())),
            ("in", TokenKind::Symbol("in")),
            ("index", TokenKind::Ident("index".into())),
            ("rb", TokenKind::Ident("rb".into())),
        ];
        for (source, expect) in cases {
            assert_eq!(kinds(source), [expect, TokenKind::End], "{source}");
        }
    }

    #[test]
    fn blanks_and_comments_separate_tokens() {
        assert_eq!(kinds(" a // b\n <= c ").len(), 4);
    }

    #[test]
    fn what_is_no_token_is_an_error() {
        let cases = [
            "a = b",
            "@",
            "'open",
            "'two\nlines'",
            "\u{e9}",
            "'\\q'",
            "'\\x4'",
            "99999999999999999999",
            "`",
            "b'\\u0041'",
            "'\\ud800'",
        ];
        for source in cases {
            assert!(tokens(source).is_err(), "{source}");
        }
    }
}
