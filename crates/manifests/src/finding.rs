//! What a check has found, and what to do about it.

use std::fmt;

use serde::Serialize;

/// How bad a finding is.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Worth a thought; good reasons against it exist.
    Hint,
    /// It will hurt somebody.
    Warning,
    /// A server refuses it, or it breaks those who use it.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Hint => "hint",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One thing that a check has found. `Display` gives it on one line.
#[derive(Serialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where: the definition, its version and the field, as in `foos.example.com v1 .spec.size`.
    pub path: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: {} ({})",
            self.severity, self.path, self.message, self.advice
        )
    }
}

/// Findings as they are collected, all about one place.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Which definition, and which version of it.
    place: String,
    findings: Vec<Finding>,
}

impl Report {
    /// Everything from now on is about this definition, or this version of it.
    pub(crate) fn about(&mut self, definition: &str, version: Option<&str>) {
        self.place = match version {
            Some(version) => format!("{definition} {version}"),
            None => definition.to_owned(),
        };
    }

    pub(crate) fn error(
        &mut self,
        field: &str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Error, field, message.into(), advice.into());
    }

    pub(crate) fn warning(
        &mut self,
        field: &str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Warning, field, message.into(), advice.into());
    }

    pub(crate) fn hint(
        &mut self,
        field: &str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Hint, field, message.into(), advice.into());
    }

    fn add(&mut self, severity: Severity, field: &str, message: String, advice: String) {
        let path = match field {
            "" => self.place.clone(),
            field => format!("{} {field}", self.place),
        };
        self.findings.push(Finding {
            severity,
            path,
            message,
            advice,
        });
    }

    /// All findings, in the order they were made.
    pub(crate) fn finish(self) -> Vec<Finding> {
        self.findings
    }
}
