//! The query of a request: decoded pairs, and the options that are read from them.

use kubewright_schema::FieldError;
use serde_json::json;

use super::path::{Plus, percent_decode};
use crate::status::ApiError;

/// Longest query that is read.
const MAX_QUERY: usize = 64 * 1024;
/// Most pairs that are read.
const MAX_PAIRS: usize = 256;

/// The decoded pairs of a query, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a query string.
    pub(crate) fn parse(raw: &str) -> Result<Self, ApiError> {
        if raw.len() > MAX_QUERY {
            return Err(ApiError::bad_request(format!(
                "the query is longer than {MAX_QUERY} bytes"
            )));
        }
        let mut pairs = Vec::new();
        for pair in raw.split('&').filter(|p| !p.is_empty()) {
            if pairs.len() == MAX_PAIRS {
                return Err(ApiError::bad_request(format!(
                    "the query has more than {MAX_PAIRS} parameters"
                )));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |raw| {
                percent_decode(raw, Plus::Space).ok_or_else(|| {
                    ApiError::bad_request(format!("invalid escape in query parameter {raw:?}"))
                })
            };
            pairs.push((decode(name)?.into_owned(), decode(value)?.into_owned()));
        }
        Ok(Self(pairs))
    }

    /// The first value of a parameter; an empty one counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(n, _)| n == name)?;
        Some(found.1.as_str()).filter(|v| !v.is_empty())
    }

    /// The pairs as a query string, without a question mark.
    pub(crate) fn encode(&self) -> String {
        let pairs = self
            .0
            .iter()
            .map(|(name, value)| format!("{}={}", escape(name), escape(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Whether a parameter is there and says yes. As the API does it: anything but `0` and `false` is yes.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.tristate(name).unwrap_or(false)
    }

    /// A flag that may also be absent.
    pub(crate) fn tristate(&self, name: &str) -> Option<bool> {
        let value = self.all(name).next()?;
        Some(!matches!(
            value,
            "0" | "false" | "False" | "FALSE" | "f" | "F"
        ))
    }

    /// An integer parameter.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.get(name)
            .map(|v| {
                v.parse().map_err(|_| {
                    ApiError::bad_request(format!(
                        "strconv.ParseInt: parsing {v:?}: invalid syntax"
                    ))
                })
            })
            .transpose()
    }
}

/// Text as a part of a query.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:@,".contains(&byte);
    let bytes = text.bytes().map(|byte| match byte {
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    bytes.collect()
}

/// Whether a write is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persist {
    /// The write is stored.
    Store,
    /// Everything happens but the storing (`dryRun=All`).
    DryRun,
}

/// What happens to unknown and duplicate fields of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped without a warning.
    Ignore,
    /// Dropped with a warning.
    Warn,
    /// The request is refused.
    Strict,
}

/// The options that every write takes.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    pub(crate) persist: Persist,
    pub(crate) field_validation: FieldValidation,
}

impl WriteOptions {
    /// Reads the options of a create, update or patch; `kind` names them in errors (`CreateOptions`, …).
    pub(crate) fn read(query: &Query, kind: &'static str) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let persist = read_dry_run(query.all("dryRun"), &mut errors);
        let field_validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let allowed = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    &json!(other),
                    &allowed,
                ));
                FieldValidation::Warn
            }
        };
        if let Some(manager) = query.get("fieldManager") {
            validate_field_manager(manager, &mut errors);
        }
        if errors.is_empty() {
            Ok(Self {
                persist,
                field_validation,
            })
        } else {
            Err(ApiError::invalid_options(kind, &errors))
        }
    }
}

/// Reads `dryRun` values: `All` or nothing.
pub(crate) fn read_dry_run<'a>(
    values: impl Iterator<Item = &'a str>,
    errors: &mut Vec<FieldError>,
) -> Persist {
    let values: Vec<&str> = values.filter(|v| !v.is_empty()).collect();
    if values.is_empty() {
        return Persist::Store;
    }
    if values.iter().any(|v| *v != "All") {
        errors.push(FieldError::not_supported(
            "dryRun",
            &json!(values),
            &["All"],
        ));
    }
    Persist::DryRun
}

fn validate_field_manager(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > 128 {
        errors.push(FieldError::too_long("fieldManager", 128));
    }
    if manager.chars().any(char::is_control) {
        errors.push(FieldError::invalid(
            "fieldManager",
            &json!(manager),
            "should only contain printable characters",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_and_limits_hold() {
        let query = Query::parse("a=1&b=x%20y+z&a=2&watch=true&limit=5&c").expect("parses");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.get("b"), Some("x y z"));
        assert!(query.flag("watch") && !query.flag("nope"));
        assert_eq!(query.integer("limit").expect("a number"), Some(5));
        assert!(query.integer("b").is_err());
        assert!(Query::parse(&"a&".repeat(300)).is_err());
        assert!(Query::parse("a=%f").is_err());
    }

    #[test]
    fn write_options_name_what_is_wrong() {
        let query = Query::parse("dryRun=foo").expect("parses");
        let error = WriteOptions::read(&query, "CreateOptions").expect_err("foo is not All");
        assert_eq!(
            error.message(),
            r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["foo"]: supported values: "All""#
        );
    }
}
