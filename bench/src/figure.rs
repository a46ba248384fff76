//! One measured figure: what it is, how it is written, and what we aim at.

use std::time::Duration;

/// A figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// What came out.
    pub value: Value,
    /// What we aim at.
    pub aim: Option<Value>,
}

/// A value with its unit.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// How long something took.
    Time(Duration),
    /// How many of something in a second.
    PerSecond(f64),
    /// How much memory.
    Bytes(u64),
}

impl Figure {
    /// A figure without an aim.
    pub fn new(what: impl Into<String>, value: Value) -> Self {
        Self {
            what: what.into(),
            value,
            aim: None,
        }
    }

    /// How long it took.
    pub fn time(what: impl Into<String>, value: Duration) -> Self {
        Self::new(what, Value::Time(value))
    }

    /// How many in a second.
    pub fn rate(what: impl Into<String>, count: usize, time: Duration) -> Self {
        Self::new(what, Value::PerSecond(count as f64 / time.as_secs_f64()))
    }

    /// What we aim at.
    pub fn aim(mut self, aim: Value) -> Self {
        self.aim = Some(aim);
        self
    }
}

impl Value {
    /// How many times better this is than another value of the same unit.
    pub fn better_than(self, other: Value) -> Option<f64> {
        match (self, other) {
            (Self::Time(a), Self::Time(b)) => Some(b.as_secs_f64() / a.as_secs_f64()),
            (Self::PerSecond(a), Self::PerSecond(b)) => Some(a / b),
            (Self::Bytes(a), Self::Bytes(b)) => Some(b as f64 / a as f64),
            _ => None,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Time(time) => {
                let micros = time.as_secs_f64() * 1e6;
                match micros {
                    ..1_000.0 => write!(f, "{micros:.0} µs"),
                    ..10_000.0 => write!(f, "{:.2} ms", micros / 1e3),
                    ..1_000_000.0 => write!(f, "{:.1} ms", micros / 1e3),
                    _ => write!(f, "{:.2} s", micros / 1e6),
                }
            }
            Self::PerSecond(rate) => write!(f, "{}/s", thousands(rate.round() as u64)),
            Self::Bytes(bytes) => write!(f, "{:.1} MB", bytes as f64 / 1e6),
        }
    }
}

/// `12,345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_for_people() {
        let time = |micros| Value::Time(Duration::from_micros(micros)).to_string();
        assert_eq!(time(170), "170 µs");
        assert_eq!(time(1_700), "1.70 ms");
        assert_eq!(time(17_000), "17.0 ms");
        assert_eq!(time(1_700_000), "1.70 s");
        assert_eq!(Value::PerSecond(1_234_567.4).to_string(), "1,234,567/s");
        assert_eq!(Value::Bytes(24_960_000).to_string(), "25.0 MB");
    }

    #[test]
    fn less_time_and_more_work_are_better() {
        let second = |n| Value::Time(Duration::from_secs(n));
        assert_eq!(second(1).better_than(second(4)), Some(4.0));
        assert_eq!(
            Value::PerSecond(6.0).better_than(Value::PerSecond(3.0)),
            Some(2.0)
        );
        assert_eq!(Value::PerSecond(6.0).better_than(second(1)), None);
    }
}
