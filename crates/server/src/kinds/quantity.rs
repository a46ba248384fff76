//! Resource quantities such as `500m` or `1Gi`, just enough to check and compare them.

/// What a quantity must look like, as the API server prints it.
pub(crate) const PATTERN_TEXT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Longest quantity that is looked at.
const MAX_LENGTH: usize = 128;

const NANOS: i128 = 1_000_000_000;

/// A quantity in billionths, rounded up like the API server does; very large ones are capped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Quantity(i128);

impl Quantity {
    /// Reads a quantity.
    pub(crate) fn parse(text: &str) -> Option<Quantity> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let nanos = scale(whole, fraction, multiplier(suffix)?);
        Some(Quantity(if negative { -nanos } else { nanos }))
    }

    /// A whole number.
    pub(crate) fn whole(number: i64) -> Quantity {
        Quantity(i128::from(number) * NANOS)
    }

    /// Whether it is zero.
    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether it is below zero.
    pub(crate) fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Whether it is a whole number.
    pub(crate) fn is_whole(self) -> bool {
        self.0 % NANOS == 0
    }

    /// The quantity rounded up to thousandths, as text, when it is finer than that.
    pub(crate) fn rounded_to_milli(self) -> Option<String> {
        let milli = NANOS / 1000;
        if self.0 % milli == 0 {
            return None;
        }
        let up = self.0.div_euclid(milli) + 1;
        Some(match up % 1000 {
            0 => (up / 1000).to_string(),
            _ => format!("{up}m"),
        })
    }
}

/// What a suffix multiplies by: a numerator, and a power of ten to divide by.
fn multiplier(suffix: &str) -> Option<(i128, u32)> {
    let times = |n: u32| (10i128.pow(n), 0);
    let binary = |n: u32| (1i128 << (10 * n), 0);
    Some(match suffix {
        "" => times(0),
        "n" => (1, 9),
        "u" => (1, 6),
        "m" => (1, 3),
        "k" => times(3),
        "M" => times(6),
        "G" => times(9),
        "T" => times(12),
        "P" => times(15),
        "E" => times(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => return exponent(suffix),
    })
}

fn exponent(suffix: &str) -> Option<(i128, u32)> {
    let digits = suffix.strip_prefix(['e', 'E'])?;
    let power: i32 = digits.parse().ok()?;
    // Beyond these bounds every quantity is capped or rounded anyway.
    Some(match power {
        0.. => (10i128.pow(power.min(18) as u32), 0),
        _ => (1, power.unsigned_abs().min(30)),
    })
}

fn scale(whole: &str, fraction: &str, (times, divide): (i128, u32)) -> i128 {
    let fraction = &fraction[..fraction.len().min(18)];
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.len() > 27 {
        return i128::from(i64::MAX) * NANOS;
    }
    let number: i128 = if significant.is_empty() {
        0
    } else {
        significant.parse().unwrap_or(0)
    };
    let power = 9 - i64::try_from(fraction.len()).unwrap_or(0) - i64::from(divide);
    let scaled = number.saturating_mul(times);
    let nanos = if power >= 0 {
        scaled.saturating_mul(10i128.pow(power as u32))
    } else {
        let divisor = 10i128.pow(power.unsigned_abs().min(38) as u32);
        scaled / divisor + i128::from(scaled % divisor != 0)
    };
    nanos.min(i128::from(i64::MAX) * NANOS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_quantities_in_different_words_are_equal() {
        for (a, b) in [
            ("1", "1000m"),
            ("1Ki", "1024"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("0.5", "500m"),
            ("12E2", "1200"),
            ("-1", "-1000m"),
            ("+2", "2.0"),
            ("1e-3", "1m"),
            (".5", "0.5"),
        ] {
            assert_eq!(Quantity::parse(a), Quantity::parse(b), "{a} {b}");
            assert!(Quantity::parse(a).is_some(), "{a}");
        }
    }

    #[test]
    fn order_follows_size() {
        let sizes = [
            "-1",
            "0",
            "1n",
            "1m",
            "1",
            "1k",
            "1Ki",
            "1M",
            "1Mi",
            "1Ei",
            "99999999999E",
        ];
        for pair in sizes.windows(2) {
            assert!(
                Quantity::parse(pair[0]) < Quantity::parse(pair[1]),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "", "Gi", "1gi", "1 Gi", "1.2.3", "--1", "1e", "1ee3", "é", ".",
        ] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }

    #[test]
    fn finer_than_milli_rounds_up() {
        let rounded = |text: &str| Quantity::parse(text).and_then(Quantity::rounded_to_milli);
        assert_eq!(rounded("100u").as_deref(), Some("1m"));
        assert_eq!(rounded("999999999n").as_deref(), Some("1"));
        assert_eq!(rounded("10m"), None);
    }
}
