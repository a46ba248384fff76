//! Recognizes text that some reader of YAML 1.1 or 1.2 takes for null, a boolean, a number or a time.

/// Words that are not text, whatever their case. Some readers know only some of the cases.
const WORDS: &[&str] = &[
    "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "=", "<<",
];

/// Whether a plain text would be read as something else.
pub(super) fn is_ambiguous(text: &str) -> bool {
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(text)) || is_number(text) || is_time(text)
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let word = unsigned.to_ascii_lowercase();
    matches!(word.as_str(), ".inf" | ".nan" | "inf" | "nan" | "infinity")
        || is_radix(&word, "0x", |c| c.is_ascii_hexdigit())
        || is_radix(&word, "0o", |c| c.is_digit(8))
        || is_radix(&word, "0b", |c| c.is_digit(2))
        || is_decimal(&word)
        || is_sexagesimal(&word)
}

fn is_radix(word: &str, prefix: &str, digit: fn(char) -> bool) -> bool {
    word.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c == '_' || digit(c)))
}

/// `1`, `1_000`, `1.`, `.5`, `1.5e3`, `1e3`.
fn is_decimal(word: &str) -> bool {
    let (mantissa, exponent) = match word.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (word, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|text| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty() && are_digits(digits)
    });
    mantissa.starts_with(|c: char| c == '.' || c.is_ascii_digit())
        && mantissa.contains(|c: char| c.is_ascii_digit())
        && are_digits(whole)
        && are_digits(fraction)
        && exponent_fits
}

fn are_digits(text: &str) -> bool {
    text.chars().all(|c| c == '_' || c.is_ascii_digit())
}

/// `1:30`, `12:30:45.5`: numbers of base sixty.
fn is_sexagesimal(word: &str) -> bool {
    let whole = match word.rsplit_once('.') {
        Some((whole, fraction)) if are_digits(fraction) => whole,
        Some(_) => return false,
        None => word,
    };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let mut rest = parts.peekable();
    let begins = first.starts_with(|c: char| c.is_ascii_digit()) && are_digits(first);
    begins
        && rest.peek().is_some()
        && rest.all(|part| matches!(part.len(), 1 | 2) && part.parse::<u8>().is_ok_and(|n| n < 60))
}

/// `2001-12-14`, or the same with a time behind a `T` or blanks.
fn is_time(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(position) => (&text[..position], text[position + 1..].trim_start()),
        None => (text, "0:00:00"),
    };
    is_date(date) && time.split(':').count() >= 3 && time.starts_with(|c: char| c.is_ascii_digit())
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let number = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let short = |part: &str| matches!(part.len(), 1 | 2) && number(part);
    year.len() == 4 && number(year) && short(month) && short(day)
}
