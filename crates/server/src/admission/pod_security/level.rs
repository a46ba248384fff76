//! The labels of a namespace, and the standards that they name.

use std::fmt;

use kubewright_schema::FieldError;
use serde_json::Value;

use crate::kinds::value::text;

const PREFIX: &str = "pod-security.kubernetes.io/";

/// How strict a standard is, the stricter the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::admission) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A level as it is defined in a version of Kubernetes, by its minor number; none is the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::admission) struct Standard {
    pub(in crate::admission) level: Level,
    pub(in crate::admission) version: Option<u32>,
}

impl Standard {
    pub(in crate::admission) fn is_privileged(&self) -> bool {
        self.level == Level::Privileged
    }

    /// Whether the version is this minor number or a later one.
    pub(super) fn since(&self, minor: u32) -> bool {
        self.version.is_none_or(|version| version >= minor)
    }
}

impl fmt::Display for Standard {
    /// `restricted:latest`, `baseline:v1.30`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        })?;
        match self.version {
            None => f.write_str(":latest"),
            Some(minor) => write!(f, ":v1.{minor}"),
        }
    }
}

/// What a namespace demands of pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::admission) struct Policy {
    pub(in crate::admission) enforce: Standard,
    pub(in crate::admission) warn: Standard,
}

impl Policy {
    /// Whether nothing is demanded.
    pub(in crate::admission) fn is_privileged(&self) -> bool {
        self.enforce.is_privileged() && self.warn.is_privileged()
    }

    /// Reads the labels of a namespace. What cannot be read counts as strict where it refuses, and as nothing where
    /// it warns.
    pub(in crate::admission) fn read(labels: &Value) -> (Self, Vec<FieldError>) {
        let mut errors = Vec::new();
        let mut mode = |name: &str| {
            let level = label(labels, name, "", parse_level, &mut errors);
            let version = label(labels, name, "-version", parse_version, &mut errors);
            (level, version.and_then(Result::ok).flatten())
        };
        let (enforce_level, enforce_version) = mode("enforce");
        let (_, _) = mode("audit");
        let (warn_level, warn_version) = mode("warn");
        let explicit = matches!(enforce_level, Some(Ok(_)));
        let enforce = Standard {
            level: match enforce_level {
                None => Level::Privileged,
                Some(level) => level.unwrap_or(Level::Restricted),
            },
            version: enforce_version,
        };
        let has_warn_version = !labels[format!("{PREFIX}warn-version")].is_null();
        let mut warn = Standard {
            level: match &warn_level {
                Some(Ok(level)) => *level,
                _ => Level::Privileged,
            },
            version: warn_version,
        };
        // Who enforces a standard is warned of what breaks it in templates.
        if warn_level.is_none() && explicit && enforce.level > warn.level {
            warn.level = enforce.level;
            if !has_warn_version {
                warn.version = enforce.version;
            }
        }
        (Self { enforce, warn }, errors)
    }
}

fn label<T>(
    labels: &Value,
    mode: &str,
    suffix: &str,
    parse: impl Fn(&str) -> Result<T, &'static str>,
    errors: &mut Vec<FieldError>,
) -> Option<Result<T, ()>> {
    let name = format!("{PREFIX}{mode}{suffix}");
    let value = labels.get(&name)?;
    Some(parse(text(value)).map_err(|why| {
        let path = format!("metadata.labels[{name}]");
        errors.push(FieldError::invalid(path, value, why));
    }))
}

fn parse_level(level: &str) -> Result<Level, &'static str> {
    match level {
        "privileged" => Ok(Level::Privileged),
        "baseline" => Ok(Level::Baseline),
        "restricted" => Ok(Level::Restricted),
        _ => Err("must be one of privileged, baseline, restricted"),
    }
}

fn parse_version(version: &str) -> Result<Option<u32>, &'static str> {
    const WHY: &str = "must be \"latest\" or \"v1.x\"";
    if version == "latest" {
        return Ok(None);
    }
    let minor = version.strip_prefix("v1.").ok_or(WHY)?;
    let plain = minor == "0" || !minor.starts_with('0');
    let digits = !minor.is_empty() && minor.bytes().all(|b| b.is_ascii_digit());
    match minor.parse() {
        Ok(minor) if plain && digits => Ok(Some(minor)),
        _ => Err(WHY),
    }
}
