//! Resource quantities such as `500m`, `1Gi` and `1e3`: exact arithmetic, and the canonical form that the API server
//! writes.
//!
//! A quantity remembers the family of its suffix (decimal, binary, exponent) and is written in the same family again.

mod decimal;
mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use decimal::Decimal;

/// Why a text is not a quantity, or why quantities cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text does not look like a quantity.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number has more digits than can be kept.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is not one of the known ones.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The result of a calculation has more digits than can be kept.
    #[error("quantity is out of range")]
    OutOfRange,
}

/// A fixed-point number with a suffix, zero by default. Compares by amount: `1Gi` equals `1024Mi`.
///
/// # Examples
/// ```
/// use kubewright_cel::quantity::Quantity;
///
/// let limit: Quantity = "1.5Gi".parse().unwrap();
/// let used: Quantity = "512Mi".parse().unwrap();
/// assert!(used < limit);
/// assert_eq!(limit.checked_sub(&used).unwrap().to_string(), "1Gi");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Quantity {
    amount: Decimal,
    format: Format,
    /// The text as it was read, when Kubernetes would not rewrite it.
    verbatim: Option<Box<str>>,
}

/// Which family of suffixes a quantity is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Format {
    /// Powers of ten, written as an exponent: `12e6`.
    DecimalExponent,
    /// Powers of 1024, written as a suffix: `12Mi`.
    BinarySi,
    /// Powers of 1000, written as a suffix: `12M`.
    #[default]
    DecimalSi,
}

/// The form in which the API server writes a quantity that it was given as JSON; surrounding white space is ignored.
///
/// # Errors
/// When the text is not a quantity.
pub fn canonical(text: &str) -> Result<String, QuantityError> {
    Quantity::parse(text.trim()).map(|quantity| quantity.to_string())
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    /// When the text is not a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }

    /// Makes a quantity from a whole number.
    pub fn from_integer(value: i64, format: Format) -> Self {
        Self::from_decimal(Decimal::new(i128::from(value), 0), format)
    }

    /// A number of thousandths.
    pub fn from_milli(value: i64, format: Format) -> Self {
        Self::from_decimal(Decimal::new(i128::from(value), -3), format)
    }

    fn from_decimal(amount: Decimal, format: Format) -> Self {
        Self {
            amount,
            format,
            verbatim: None,
        }
    }

    /// The family of suffixes it is written with.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.amount.is_zero()
    }

    /// Whether the amount is above zero.
    pub fn is_positive(&self) -> bool {
        self.amount > Decimal::default()
    }

    /// Whether the amount is below zero.
    pub fn is_negative(&self) -> bool {
        self.amount < Decimal::default()
    }

    /// Whether the amount is a whole number.
    pub fn is_integer(&self) -> bool {
        self.amount.is_integer()
    }

    /// The amount as a floating-point number, as close as one can be.
    pub fn approximate(&self) -> f64 {
        let text = format!("{}e{}", self.amount.mantissa(), self.amount.exponent());
        text.parse()
            .expect("digits with an exponent are a floating-point number")
    }

    /// The amount, rounded away from zero to a whole number; `None` when it does not fit.
    pub fn value(&self) -> Option<i64> {
        self.scaled_value(0)
    }

    /// The amount in thousandths, rounded away from zero; `None` when it does not fit.
    pub fn milli_value(&self) -> Option<i64> {
        self.scaled_value(-3)
    }

    fn scaled_value(&self, exponent: i64) -> Option<i64> {
        let scaled = self.amount.rounded_up(exponent).at_exponent(exponent)?;
        i64::try_from(scaled).ok()
    }

    /// The amount rounded away from zero to a thousandth, as Kubernetes does with every value of a `ResourceList`.
    #[must_use]
    pub fn rounded_up_to_milli(self) -> Self {
        let rounded = self.amount.rounded_up(-3);
        if rounded == self.amount {
            return self;
        }
        Self::from_decimal(rounded, self.format)
    }

    /// The sum, in the format of `self` unless that is zero.
    ///
    /// # Errors
    /// When the sum has more digits than can be kept.
    pub fn checked_add(&self, other: &Self) -> Result<Self, QuantityError> {
        self.combine(other.amount, other.format)
    }

    /// The difference, in the format of `self` unless that is zero.
    ///
    /// # Errors
    /// When the difference has more digits than can be kept.
    pub fn checked_sub(&self, other: &Self) -> Result<Self, QuantityError> {
        self.combine(other.amount.negated(), other.format)
    }

    fn combine(&self, amount: Decimal, format: Format) -> Result<Self, QuantityError> {
        let sum = self
            .amount
            .checked_add(amount)
            .ok_or(QuantityError::OutOfRange)?;
        let format = if self.is_zero() { format } else { self.format };
        Ok(Self::from_decimal(sum, format))
    }

    /// Binary suffixes are for whole numbers from 1024 on; everything else is written in decimal.
    fn binary_text(&self) -> Option<String> {
        if self.amount.magnitude() < Decimal::new(1024, 0) {
            return None;
        }
        let mut value = self.amount.at_exponent(0)?;
        let mut suffix = 0;
        while suffix < BINARY_SUFFIXES.len() - 1 && value % 1024 == 0 {
            value /= 1024;
            suffix += 1;
        }
        Some(format!("{value}{}", BINARY_SUFFIXES[suffix]))
    }

    fn decimal_text(&self, format: Format) -> String {
        let exponent = self.amount.exponent().div_euclid(3) * 3;
        // Written as text, because the one or two zeros may not fit in 128 bits any more.
        let zeros = "0".repeat((self.amount.exponent() - exponent) as usize);
        let mantissa = self.amount.mantissa();
        match decimal_suffix(exponent) {
            Some(suffix) if format != Format::DecimalExponent => {
                format!("{mantissa}{zeros}{suffix}")
            }
            _ if exponent == 0 => format!("{mantissa}{zeros}"),
            // Kubernetes drops the exponent of `1000E`, which has no suffix. A changed amount helps nobody.
            _ => format!("{mantissa}{zeros}e{exponent}"),
        }
    }
}

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

fn decimal_suffix(exponent: i64) -> Option<&'static str> {
    Some(match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        0 => "",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => return None,
    })
}

/// Writes the canonical form.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(verbatim) = &self.verbatim {
            return f.write_str(verbatim);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        let binary = match self.format {
            Format::BinarySi => self.binary_text(),
            Format::DecimalExponent | Format::DecimalSi => None,
        };
        match binary {
            Some(text) => f.write_str(&text),
            None => f.write_str(&self.decimal_text(self.format)),
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}
