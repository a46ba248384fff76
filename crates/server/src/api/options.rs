//! The options of lists and watches, with the rules on how they go together.

use std::time::Duration;

use kubewright_schema::FieldError;
use kubewright_schema::selector::{FieldSelector, LabelSelector};
use serde_json::json;

use super::token::Token;
use crate::http::query::Query;
use crate::status::ApiError;

/// Longest time a watch is asked to last.
const MAX_TIMEOUT: i64 = 24 * 60 * 60;

/// What a list or watch asks for.
#[derive(Debug)]
pub(crate) struct ListOptions {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    /// Most items of a page.
    pub(crate) limit: Option<usize>,
    pub(crate) from: Option<Token>,
    pub(crate) version: Version,
    pub(crate) timeout: Option<Duration>,
}

/// Which version of the collection is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// The newest version there is.
    Latest,
    /// Any that is at hand (`resourceVersion=0`).
    Any,
    /// This one or a newer one.
    NotOlderThan(u64),
    /// Exactly this version, and no other.
    Exact(u64),
}

/// How a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With what exists, as ADDED events, then what changes.
    State {
        /// The state must be at least this new.
        not_older_than: Option<u64>,
        /// Whether a bookmark tells where the state ends.
        end: InitialEventsEnd,
    },
    /// With what changed after this version.
    After(u64),
    /// With what changes from now on.
    Now,
}

/// Whether the end of the initial events is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitialEventsEnd {
    Marked,
    Silent,
}

/// What a watch asks for beyond what a list does.
#[derive(Debug)]
pub(crate) struct WatchOptions {
    pub(crate) list: ListOptions,
    pub(crate) start: Start,
    /// Whether BOOKMARK events are wanted.
    pub(crate) bookmarks: bool,
}

impl ListOptions {
    /// Reads the options of a list.
    pub(crate) fn read(query: &Query) -> Result<Self, ApiError> {
        let errors = list_errors(query);
        if !errors.is_empty() {
            return Err(ApiError::invalid_options("ListOptions", &errors));
        }
        let mut options = Self::shared(query)?;
        let revision = read_version(query)
            .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
        if let Some(token) = query.get("continue") {
            if revision.is_some_and(|r| r != 0) {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            options.from = Some(Token::decode(token)?);
        }
        options.version = match (revision, query.get("resourceVersionMatch")) {
            (None, _) => Version::Latest,
            (Some(0), _) => Version::Any,
            (Some(n), Some("Exact")) => Version::Exact(n),
            // A page at a version without a match rule means exactly that version.
            (Some(n), None) if options.limit.is_some() => Version::Exact(n),
            (Some(n), _) => Version::NotOlderThan(n),
        };
        Ok(options)
    }

    /// What lists and watches read alike.
    fn shared(query: &Query) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or(""))
            .map_err(|e| ApiError::bad_request(e.to_string()))?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or(""))
            .map_err(|e| ApiError::bad_request(e.to_string()))?;
        let limit = query
            .integer("limit")?
            .filter(|n| *n > 0)
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let timeout = query.integer("timeoutSeconds")?.filter(|n| *n > 0);
        Ok(Self {
            labels,
            fields,
            limit,
            from: None,
            version: Version::Latest,
            timeout: timeout.map(|n| Duration::from_secs(n.min(MAX_TIMEOUT) as u64)),
        })
    }
}

impl WatchOptions {
    /// Reads the options of a watch.
    pub(crate) fn read(query: &Query) -> Result<Self, ApiError> {
        let errors = watch_errors(query);
        if !errors.is_empty() {
            return Err(ApiError::invalid_options("ListOptions", &errors));
        }
        let list = ListOptions::shared(query)?;
        let revision = read_version(query).map_err(|why| ApiError::unreasoned(why.to_string()))?;
        let newest = revision.filter(|r| *r > 0);
        let start = match (query.tristate("sendInitialEvents"), newest) {
            (Some(true), not_older_than) => Start::State {
                not_older_than,
                end: InitialEventsEnd::Marked,
            },
            (Some(false), Some(n)) => Start::After(n),
            (Some(false), None) => Start::Now,
            (None, Some(n)) => Start::After(n),
            (None, None) => Start::State {
                not_older_than: None,
                end: InitialEventsEnd::Silent,
            },
        };
        Ok(Self {
            list,
            start,
            bookmarks: query.flag("allowWatchBookmarks"),
        })
    }
}

/// A resource version that is not a number, worded as the API words it.
#[derive(Debug, thiserror::Error)]
#[error("resourceVersion: Invalid value: {0:?}: strconv.ParseUint: parsing {0:?}: invalid syntax")]
struct InvalidVersion(String);

/// A resource version as a number; the refusal is worded as the API words it.
fn read_version(query: &Query) -> Result<Option<u64>, InvalidVersion> {
    let Some(text) = query.get("resourceVersion") else {
        return Ok(None);
    };
    let version = text.parse().map(Some);
    version.map_err(|_| InvalidVersion(text.to_owned()))
}

fn list_errors(query: &Query) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let forbidden = |why| FieldError::forbidden("resourceVersionMatch", why);
    if let Some(rule) = query.get("resourceVersionMatch") {
        if query.get("resourceVersion").is_none() {
            errors.push(forbidden(
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if query.get("continue").is_some() {
            errors.push(forbidden(
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(rule, "Exact" | "NotOlderThan") {
            let allowed = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                &json!(rule),
                &allowed,
            ));
        }
        if rule == "Exact" && query.get("resourceVersion") == Some("0") {
            errors.push(forbidden(
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if query.tristate("sendInitialEvents").is_some() {
        errors.push(FieldError::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    errors
}

fn watch_errors(query: &Query) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let forbidden = |why| FieldError::forbidden("resourceVersionMatch", why);
    let rule = query.get("resourceVersionMatch");
    let initial = query.tristate("sendInitialEvents").is_some();
    if initial && rule != Some("NotOlderThan") {
        errors.push(forbidden(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if let Some(rule) = rule {
        if !initial {
            errors.push(forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if rule != "NotOlderThan" {
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                &json!(rule),
                &["NotOlderThan"],
            ));
        }
        if query.get("continue").is_some() {
            errors.push(forbidden(
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
    }
    errors
}
