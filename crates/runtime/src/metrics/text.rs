//! The text format of Prometheus, version 0.0.4: names, escapes, numbers, lines.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::RegisterError;

/// Label pairs, escaped, without the braces.
pub struct Labels(String);

impl Labels {
    pub(super) fn of(names: &[String], values: &[String]) -> Self {
        let pair = |(name, value): (&String, &String)| format!("{name}=\"{}\"", escaped(value));
        let pairs: Vec<String> = names.iter().zip(values).map(pair).collect();
        Self(pairs.join(","))
    }

    /// These and one more, whose value is a number.
    pub(super) fn and(&self, name: &str, value: f64) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        Self(format!("{}{comma}{name}=\"{}\"", self.0, number(value)))
    }
}

pub(super) fn header(out: &mut String, name: &str, kind: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    // Writing to a string cannot fail; the same below.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

pub(super) fn line(out: &mut String, name: &str, labels: &Labels, value: f64) {
    let value = number(value);
    let _ = match labels.0.as_str() {
        "" => writeln!(out, "{name} {value}"),
        labels => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        value => value.to_string(),
    }
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

pub(super) fn check_name(name: &str) -> Result<(), RegisterError> {
    if is_identifier(name, ":_") {
        Ok(())
    } else {
        Err(RegisterError::Name(name.into()))
    }
}

pub(super) fn check_labels(labels: &[&str]) -> Result<(), RegisterError> {
    let mut seen = BTreeSet::new();
    for label in labels {
        // `le` is the bound of a bucket; two underscores begin what Prometheus keeps for itself.
        let reserved = *label == "le" || label.starts_with("__");
        if reserved || !is_identifier(label, "_") || !seen.insert(label) {
            return Err(RegisterError::Label(label.to_string()));
        }
    }
    Ok(())
}

fn is_identifier(text: &str, marks: &str) -> bool {
    let starts_well = !text.starts_with(|c: char| c.is_ascii_digit());
    let known = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    !text.is_empty() && starts_well && text.chars().all(known)
}
