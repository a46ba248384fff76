//! Rules on numbers: range of the format, bounds and multiples, in the order and words of the validator.

use super::failure::{Outcome, invalid_nowhere, invalid_number};
use crate::go::{Num, float};
use crate::rules::{JsonType, Rules};

/// One number under its rules. Bounds are compared as integers when both sides are.
pub(super) struct NumberCheck<'a> {
    pub(super) path: &'a str,
    pub(super) number: Num,
    /// The declared type, when there is exactly one.
    pub(super) ty: Option<JsonType>,
    pub(super) rules: &'a Rules,
}

impl NumberCheck<'_> {
    pub(super) fn run(&self) -> Outcome {
        let mut out = Outcome::default();
        self.range(self.number, "Checked", &mut out);
        self.multiple(&mut out);
        self.bound(Bound::Minimum, &mut out);
        self.bound(Bound::Maximum, &mut out);
        out.matched();
        out
    }

    /// Whether a value fits the declared type and format. A rule that does not fit is itself reported.
    fn range(&self, number: Num, what: &str, out: &mut Outcome) -> bool {
        let format = self.rules.format.as_deref();
        let format = format.filter(|f| matches!(*f, "int32" | "int64" | "float" | "double"));
        let fits = match (self.ty, format) {
            (Some(JsonType::Integer), Some("int32")) => {
                whole(number).is_some_and(|n| i32::try_from(n).is_ok())
            }
            (Some(JsonType::Integer), _) => whole(number).is_some(),
            (_, Some("float")) => (number.as_f64() as f32).is_finite(),
            _ => true,
        };
        if !fits {
            let ty = self.ty.map_or("", JsonType::as_str);
            let format = match format {
                Some(format) => format!("with format {format}"),
                None => "(default format)".to_owned(),
            };
            out.add(invalid_nowhere(format!(
                "{what} value must be of type {ty} {format} in {}",
                self.path
            )));
        }
        fits
    }

    fn multiple(&self, out: &mut Outcome) {
        let Some(factor) = self.rules.multiple_of else {
            return;
        };
        let native = self.range(Num::Float(factor), "MultipleOf", out);
        let failed = match self.number {
            Num::Int(n) if native => {
                let factor = factor as i64;
                if factor <= 0 {
                    return out.add(self.not_positive(&factor.to_string()));
                }
                (n % factor != 0).then(|| factor.to_string())
            }
            _ if factor <= 0.0 => return out.add(self.not_positive(&float(factor))),
            number => {
                let data = number.as_f64();
                let quotient = if factor < 1.0 {
                    1.0 / factor * data
                } else {
                    data / factor
                };
                (!is_json_integer(quotient)).then(|| float(factor))
            }
        };
        if let Some(factor) = failed {
            let detail = format!("should be a multiple of {factor}");
            out.add(invalid_number(self.path, self.number, &detail));
        }
    }

    fn not_positive(&self, factor: &str) -> crate::FieldError {
        let detail = format!(
            "factor MultipleOf declared for {} must be positive: {factor}",
            self.path
        );
        super::failure::invalid_printed(self.path, factor, &detail)
    }

    fn bound(&self, bound: Bound, out: &mut Outcome) {
        let (limit, exclusive, what) = match bound {
            Bound::Minimum => (
                self.rules.minimum,
                self.rules.exclusive_minimum,
                "Minimum boundary",
            ),
            Bound::Maximum => (
                self.rules.maximum,
                self.rules.exclusive_maximum,
                "Maximum boundary",
            ),
        };
        let Some(limit) = limit else {
            return;
        };
        let native = self.range(Num::Float(limit), what, out);
        let (order, printed) = match self.number {
            Num::Int(n) if native => (n.partial_cmp(&(limit as i64)), (limit as i64).to_string()),
            number => (number.as_f64().partial_cmp(&limit), float(limit)),
        };
        let Some(order) = order else {
            return;
        };
        let order = if bound == Bound::Minimum {
            order
        } else {
            order.reverse()
        };
        if order.is_lt() || exclusive && order.is_eq() {
            let detail = format!("should be {}{printed}", bound.words(exclusive));
            out.add(invalid_number(self.path, self.number, &detail));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Minimum,
    Maximum,
}

impl Bound {
    fn words(self, exclusive: bool) -> &'static str {
        match (self, exclusive) {
            (Bound::Minimum, false) => "greater than or equal to ",
            (Bound::Minimum, true) => "greater than ",
            (Bound::Maximum, false) => "less than or equal to ",
            (Bound::Maximum, true) => "less than ",
        }
    }
}

/// The number as an integer of 64 bits, if it is one.
fn whole(number: Num) -> Option<i64> {
    match number {
        Num::Int(n) => Some(n),
        Num::Float(f) => format!("{f}").parse().ok(),
    }
}

/// Whether a float counts as an integer: within the range where floats hold every integer, or nearly whole.
pub(super) fn is_json_integer(f: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if !f.is_finite() || f.abs() > LARGEST {
        return false;
    }
    let cut = f.trunc();
    f == cut || (f - cut).abs() / (f.abs() + cut.abs()) < 1e-9
}
