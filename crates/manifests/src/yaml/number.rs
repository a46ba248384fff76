//! Numbers as readers of both YAML 1.1 and 1.2 take them for numbers.

use std::fmt::Write;

use serde_json::Number;

/// Up to here every whole number is a float, and reads the same either way.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Writes a number. Whole floats lose their fraction, as Go writes them: `minimum: 1`, not `1.0`.
pub(super) fn write(out: &mut String, number: &Number) {
    let float = match number.as_f64() {
        Some(float) if !(number.is_i64() || number.is_u64()) => float,
        _ => return push(out, number),
    };
    if float.fract() == 0.0 && float.abs() < MAX_WHOLE {
        push(out, format_args!("{float:.0}"));
    } else {
        write_float(out, float);
    }
}

/// YAML 1.1 wants a fraction and a sign before an exponent: `1e300` is text to it, `1.0e+300` is not.
fn write_float(out: &mut String, float: f64) {
    let scientific = float.abs() >= 1e16 || float.abs() < 1e-5;
    if !scientific {
        return push(out, float);
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    out.push_str(digits);
    if !digits.contains('.') {
        out.push_str(".0");
    }
    out.push('e');
    if !exponent.starts_with('-') {
        out.push('+');
    }
    out.push_str(exponent);
}

fn push(out: &mut String, shown: impl std::fmt::Display) {
    write!(out, "{shown}").expect("writing to a String does not fail");
}
