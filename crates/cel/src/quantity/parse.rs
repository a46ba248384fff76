//! Reads quantities: splits a text into number and suffix, and turns them into an exact amount.

use super::decimal::Decimal;
use super::{Format, Quantity, QuantityError};

/// Quantities are kept to a billionth; what is finer is rounded away from zero.
const FINEST_EXPONENT: i64 = -9;

/// Longest text that is read at all. Kubernetes has no such bound, but no number needs more.
const MAX_LENGTH: usize = 4096;

/// A quantity's text, taken apart.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros; may be empty.
    whole: &'a str,
    /// Digits after the point; may be empty.
    fraction: &'a str,
    suffix: &'a str,
}

/// What a suffix stands for: `base ^ exponent`.
#[derive(Clone, Copy)]
enum Suffix {
    Decimal { exponent: i32, format: Format },
    Binary { exponent: u32 },
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    if text.len() > MAX_LENGTH {
        return Err(QuantityError::Numeric);
    }
    let parts = split(text)?;
    let suffix = read_suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
    let (amount, format) = amount(&parts, suffix).ok_or(QuantityError::Numeric)?;
    let verbatim = is_kept_verbatim(&parts, suffix).then(|| text.into());
    Ok(Quantity {
        amount,
        format,
        verbatim,
    })
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let (negative, rest) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = take_digits(rest.trim_start_matches('0'));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => take_digits(rest),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok(Parts {
        negative,
        whole,
        fraction,
        suffix,
    })
}

fn take_digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn read_suffix(text: &str) -> Option<Suffix> {
    let decimal = |exponent| Suffix::Decimal {
        exponent,
        format: Format::DecimalSi,
    };
    Some(match text {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => Suffix::Binary { exponent: 10 },
        "Mi" => Suffix::Binary { exponent: 20 },
        "Gi" => Suffix::Binary { exponent: 30 },
        "Ti" => Suffix::Binary { exponent: 40 },
        "Pi" => Suffix::Binary { exponent: 50 },
        "Ei" => Suffix::Binary { exponent: 60 },
        _ => Suffix::Decimal {
            exponent: text.strip_prefix(['e', 'E'])?.parse().ok()?,
            format: Format::DecimalExponent,
        },
    })
}

/// The exact amount, rounded away from zero to a billionth; binary amounts are capped at the largest `int64`.
fn amount(parts: &Parts<'_>, suffix: Suffix) -> Option<(Decimal, Format)> {
    let mut digits: Vec<u8> = parts.whole.bytes().chain(parts.fraction.bytes()).collect();
    for digit in &mut digits {
        *digit -= b'0';
    }
    let scale = -i64::try_from(parts.fraction.len()).ok()?;
    let (magnitude, format) = match suffix {
        Suffix::Decimal { exponent, format } => {
            (round(digits, scale + i64::from(exponent))?, format)
        }
        Suffix::Binary { exponent } => binary_amount(digits, scale, exponent),
    };
    // What is written of it has to be read again.
    i32::try_from(magnitude.exponent()).ok()?;
    let signed = if parts.negative {
        magnitude.negated()
    } else {
        magnitude
    };
    Some((signed, format))
}

fn binary_amount(mut digits: Vec<u8>, scale: i64, exponent: u32) -> (Decimal, Format) {
    for _ in 0..exponent / 10 {
        digits = times_1024(&digits);
    }
    let largest = Decimal::new(i128::from(i64::MAX), 0);
    // What does not fit in 128 bits is above the cap as well.
    let amount = round(digits, scale).map_or(largest, |amount| amount.min(largest));
    let below_one = !amount.is_zero() && amount < Decimal::new(1, 0);
    let format = if below_one {
        Format::DecimalSi
    } else {
        Format::BinarySi
    };
    (amount, format)
}

fn times_1024(digits: &[u8]) -> Vec<u8> {
    let mut product = Vec::with_capacity(digits.len() + 4);
    let mut carry: u32 = 0;
    for digit in digits.iter().rev() {
        carry += u32::from(*digit) * 1024;
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    product.reverse();
    product
}

/// Cuts digits below the finest exponent, rounding up, before they count against the 128 bits.
fn round(mut digits: Vec<u8>, exponent: i64) -> Option<Decimal> {
    let excess = usize::try_from(FINEST_EXPONENT.saturating_sub(exponent)).unwrap_or(0);
    if excess == 0 {
        return Decimal::from_digits(&digits, exponent);
    }
    let cut = digits.split_off(digits.len().saturating_sub(excess));
    let kept = Decimal::from_digits(&digits, FINEST_EXPONENT)?;
    if cut.iter().all(|digit| *digit == 0) {
        return Some(kept);
    }
    kept.checked_add(Decimal::new(1, FINEST_EXPONENT))
}

/// Whether Kubernetes keeps the text as it was written instead of computing the canonical form.
///
/// It takes a shortcut for short numbers that look canonical already, and the test it uses lets a few
/// other spellings through: `1.500`, `+5`, `1E3` and `05Gi` come back unchanged.
fn is_kept_verbatim(parts: &Parts<'_>, suffix: Suffix) -> bool {
    let length = parts.whole.len().max(1) + parts.fraction.len();
    match suffix {
        Suffix::Decimal { exponent, .. } => {
            let scale = i64::from(exponent) - parts.fraction.len() as i64;
            let digits = [parts.whole, parts.fraction].concat();
            length <= 18
                && scale >= FINEST_EXPONENT
                && scale % 3 == 0
                && !parts.whole.is_empty()
                && !digits.ends_with("000")
        }
        Suffix::Binary { exponent } => {
            let precision = 14 - length as i64 - i64::from(exponent * 3 / 10);
            let value: u64 = parts.whole.parse().unwrap_or(0);
            parts.fraction.is_empty() && precision >= 0 && !value.is_multiple_of(8)
        }
    }
}
