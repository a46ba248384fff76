//! Exact decimal numbers: a signed 128-bit mantissa times a power of ten.

use std::cmp::Ordering;

/// `mantissa × 10^exponent`.
///
/// Always normalised: the mantissa does not end in a zero, and zero has exponent 0. So equal numbers are equal
/// values, and an exponent of at least zero means a whole number. The mantissa is never `i128::MIN`, so it can always be
/// negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Decimal {
    mantissa: i128,
    exponent: i64,
}

impl Decimal {
    pub(super) fn new(mut mantissa: i128, mut exponent: i64) -> Self {
        if mantissa == 0 {
            return Self::default();
        }
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        Self { mantissa, exponent }
    }

    /// Reads plain decimal digits (values 0 to 9, most significant first); `None` when more than 128 bits remain
    /// after the trailing zeros are gone.
    pub(super) fn from_digits(digits: &[u8], exponent: i64) -> Option<Self> {
        let kept = digits.iter().rposition(|d| *d != 0).map_or(0, |at| at + 1);
        let mut mantissa: i128 = 0;
        for digit in &digits[..kept] {
            mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(*digit))?;
        }
        let dropped = i64::try_from(digits.len() - kept).ok()?;
        Some(Self::new(mantissa, exponent.checked_add(dropped)?))
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub(super) fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    pub(super) fn negated(self) -> Self {
        Self {
            mantissa: -self.mantissa,
            ..self
        }
    }

    pub(super) fn magnitude(self) -> Self {
        Self {
            mantissa: self.mantissa.abs(),
            ..self
        }
    }

    /// The mantissa when the number is written with this exponent; `None` when that is not a whole number, or
    /// does not fit.
    pub(super) fn at_exponent(self, exponent: i64) -> Option<i128> {
        let shift = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        if self.mantissa == 0 {
            return Some(0);
        }
        self.mantissa
            .checked_mul(10i128.checked_pow(shift)?)
            .filter(|mantissa| *mantissa != i128::MIN)
    }

    /// The mantissa of the normal form.
    pub(super) fn mantissa(self) -> i128 {
        self.mantissa
    }

    /// The exponent of the normal form.
    pub(super) fn exponent(self) -> i64 {
        self.exponent
    }

    /// Rounds away from zero to a multiple of `10^exponent`.
    pub(super) fn rounded_up(self, exponent: i64) -> Self {
        if self.exponent >= exponent {
            return self;
        }
        let quotient = u32::try_from(exponent - self.exponent)
            .ok()
            .and_then(|shift| 10i128.checked_pow(shift))
            .map_or(0, |divisor| self.mantissa / divisor);
        // A normalised mantissa leaves a remainder whenever digits are cut off.
        Self::new(quotient + self.mantissa.signum(), exponent)
    }

    pub(super) fn checked_add(self, other: Self) -> Option<Self> {
        if self.is_zero() {
            return Some(other);
        }
        if other.is_zero() {
            return Some(self);
        }
        let exponent = self.exponent.min(other.exponent);
        let sum = self
            .at_exponent(exponent)?
            .checked_add(other.at_exponent(exponent)?)?;
        (sum != i128::MIN).then(|| Self::new(sum, exponent))
    }

    /// Position of the most significant digit: 0 for 1 to 9, 1 for 10 to 99, -1 for 0.1.
    fn order(self) -> i64 {
        self.exponent + i64::from(self.mantissa.unsigned_abs().checked_ilog10().unwrap_or(0))
    }

    fn compare_magnitude(self, other: Self) -> Ordering {
        let exponent = self.exponent.min(other.exponent);
        let (a, b) = (self.magnitude(), other.magnitude());
        self.order().cmp(&other.order()).then_with(|| {
            // Both have their leading digit in the same place, so at most one side is scaled, and by few digits.
            // What does not fit in 128 bits is the larger one.
            match (a.at_exponent(exponent), b.at_exponent(exponent)) {
                (Some(a), Some(b)) => a.cmp(&b),
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
            }
        })
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        signs.then_with(|| match self.mantissa.signum() {
            0 => Ordering::Equal,
            1 => self.compare_magnitude(*other),
            _ => other.compare_magnitude(*self),
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
