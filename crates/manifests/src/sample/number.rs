//! Numbers within bounds.

use serde_json::Value;

/// The whole number nearest to 1 that the bounds allow; siblings get those above it.
pub(super) fn integer(schema: &Value, variant: usize) -> Value {
    let chosen = bounded(schema, variant, 1.0);
    if chosen.fract() == 0.0 && chosen.abs() < 9e15 {
        return Value::from(chosen as i64);
    }
    Value::from(chosen)
}

/// The number nearest to 1 that the bounds allow.
pub(super) fn number(schema: &Value, variant: usize) -> Value {
    let step = if leaves_room(schema) { 1.0 } else { 0.125 };
    let chosen = bounded(schema, variant, step);
    if chosen.fract() == 0.0 && chosen.abs() < 9e15 {
        return Value::from(chosen as i64);
    }
    Value::from(chosen)
}

/// Whether there is a whole number between the bounds.
fn leaves_room(schema: &Value) -> bool {
    let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
    let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
    least.floor() + 1.0 < most
}

fn bounded(schema: &Value, variant: usize, step: f64) -> f64 {
    let step = schema["multipleOf"]
        .as_f64()
        .filter(|of| *of > 0.0)
        .unwrap_or(step);
    let above = |bound: f64| {
        let multiple = (bound / step).ceil() * step;
        let excluded = schema["exclusiveMinimum"] == true && multiple <= bound;
        if excluded { multiple + step } else { multiple }
    };
    let below = |bound: f64| {
        let multiple = (bound / step).floor() * step;
        let excluded = schema["exclusiveMaximum"] == true && multiple >= bound;
        if excluded { multiple - step } else { multiple }
    };
    let least = schema["minimum"].as_f64().map(above);
    let most = schema["maximum"].as_f64().map(below);
    let first = least.map_or(above(1.0), |least| least.max(above(1.0)));
    let first = most.map_or(first, |most| first.min(most));
    let next = first + variant as f64 * step;
    match most {
        Some(most) if next > most => most - (next - most - step),
        _ => next,
    }
}
