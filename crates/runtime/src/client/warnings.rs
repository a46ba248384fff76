//! Warnings of the API server: read from the headers of its answers, then logged once each or passed on to a handler.

use std::collections::HashSet;
use std::sync::Arc;

use http::HeaderMap;
use http::header::WARNING;
use kubewright_cache::Factory;
use parking_lot::Mutex;

use super::{Client, ClientBuilder};
use crate::cache::ResourceId;

/// The code of all warnings that an API server sends.
const CODE: &str = "299";
/// Warnings of one answer that are looked at.
const MOST: usize = 64;
/// The longest text, in bytes. API servers send four KiB for all warnings of an answer.
const LONGEST: usize = 4096;
/// Distinct texts that are remembered.
const REMEMBERED: usize = 1_000;

/// What the API server warns of in its answer to a request: a version of an API that is deprecated, a field that it does not
/// know, or whatever a webhook or a policy adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerWarning<'a> {
    /// The verb of the request.
    pub verb: &'a str,
    /// The resource, as `deployments.apps`.
    pub resource: &'a str,
    /// Namespace and name; empty for lists and watches.
    pub name: &'a str,
    /// The warning in the words of the server.
    pub text: &'a str,
}

/// Who receives warnings in place of the log.
pub(crate) type WarningHandler = Arc<dyn Fn(&ServerWarning<'_>) + Send + Sync>;

/// The warnings that one client and its clones got.
#[derive(Default)]
pub(super) struct Warnings {
    handler: Mutex<Option<WarningHandler>>,
    /// The texts that were logged.
    logged: Mutex<HashSet<String>>,
}

impl Warnings {
    pub(super) fn new(handler: Option<WarningHandler>) -> Self {
        Self {
            handler: Mutex::new(handler),
            logged: Mutex::default(),
        }
    }

    pub(super) fn set(&self, handler: WarningHandler) {
        *self.handler.lock() = Some(handler);
    }

    /// Deals with the warnings among the headers of an answer.
    pub(super) fn heed(&self, verb: &str, resource: &str, name: &str, headers: &HeaderMap) {
        for text in texts(headers) {
            self.pass_on(&ServerWarning {
                verb,
                resource,
                name,
                text: &text,
            });
        }
    }

    fn pass_on(&self, warning: &ServerWarning<'_>) {
        let handler = self.handler.lock().clone();
        match handler {
            Some(handler) => handler(warning),
            None if self.is_new(warning.text) => {
                let (verb, resource, name) = (warning.verb, warning.resource, warning.name);
                tracing::warn!(
                    verb,
                    resource,
                    name,
                    "the API server warns: {}",
                    warning.text
                );
            }
            None => {}
        }
    }

    /// Whether a text was not logged before. After very many texts it starts over: a line twice costs less than memory that
    /// grows.
    fn is_new(&self, text: &str) -> bool {
        let mut logged = self.logged.lock();
        if logged.contains(text) {
            return false;
        }
        if logged.len() >= REMEMBERED {
            logged.clear();
        }
        logged.insert(text.to_owned())
    }
}

/// The same factory, whose informers have their warnings dealt with.
pub(super) fn heeded_by(factory: Factory, warnings: &Arc<Warnings>) -> Factory {
    let warnings = warnings.clone();
    factory.headers(move |verb, resource, headers| {
        if headers.contains_key(WARNING) {
            let resource = ResourceId::of(resource).name();
            warnings.heed(verb, &resource, "", headers);
        }
    })
}

impl ClientBuilder {
    /// Sets who receives the warnings of the API server, in place of the log, which has each text once: those in the answers to this
    /// client and its informers. It is called in the middle of requests: it must not block.
    ///
    /// ```no_run
    /// use kubewright_runtime::Client;
    ///
    /// # fn example(kube: kube::Client) {
    /// let client = Client::builder(kube)
    ///     .warning_handler(|warning| tracing::error!("{} {}: {}", warning.verb, warning.resource, warning.text))
    ///     .build();
    /// # drop(client);
    /// # }
    /// ```
    pub fn warning_handler(
        mut self,
        handler: impl Fn(&ServerWarning<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.warnings = Some(Arc::new(handler));
        self
    }
}

impl Client {
    /// Sets who receives the warnings of the API server.
    pub(crate) fn set_warning_handler(&self, handler: WarningHandler) {
        self.shared.warnings.set(handler);
    }
}

/// The texts of the warnings among headers, in their order. A header that cannot be read ends there, as in client-go.
fn texts(headers: &HeaderMap) -> Vec<String> {
    let mut found = Vec::new();
    for value in headers.get_all(WARNING) {
        let value = String::from_utf8_lossy(value.as_bytes());
        let mut rest = &*value;
        while found.len() < MOST
            && let Some((text, after)) = first(rest)
        {
            found.extend(text);
            rest = after;
        }
    }
    found
}

/// The first warning of a header as RFC 7234 has it, `299 agent "text"` with a date in quotes at most, and what follows. There is
/// no text where the code is another one.
fn first(header: &str) -> Option<(Option<String>, &str)> {
    let (code, rest) = header.trim_start().split_once(' ')?;
    let (_agent, rest) = rest.trim_start().split_once(' ')?;
    let (text, rest) = quoted(rest.trim_start())?;
    let mut rest = rest.trim_start();
    if rest.starts_with('"') {
        rest = quoted(rest)?.1.trim_start();
    }
    let end = rest.is_empty().then_some(rest);
    let rest = rest.strip_prefix(',').or(end)?;
    let counts = code == CODE && !text.is_empty();
    Some((counts.then_some(text), rest))
}

/// What stands in quotes at the start of a text, without escapes and what has no place in a log, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let (mut inner, mut is_escaped) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            '\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            '"' if !is_escaped => return Some((inner, &text[at + 1..])),
            _ => is_escaped = false,
        }
        if !c.is_control() && inner.len() + c.len_utf8() <= LONGEST {
            inner.push(c);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(values: &[&str], expected: &[&str]) {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header");
            headers.append(WARNING, value);
        }
        assert_eq!(texts(&headers), expected, "{values:?}");
    }

    #[test]
    fn texts_are_read_from_headers_of_one_or_several_warnings() {
        check(&[r#"299 - "v1 is deprecated""#], &["v1 is deprecated"]);
        check(
            &[r#"299 - "unknown field \"spec.a\\b\"""#],
            &[r#"unknown field "spec.a\b""#],
        );
        check(&[r#"299 - "one""#, r#"299 host:80 "two""#], &["one", "two"]);
        let dated = r#"299 - "one" "Sat, 25 Aug 2012 23:34:45 GMT" , 299 - "two, three""#;
        check(&[dated], &["one", "two, three"]);
        check(&["299 - \"zu spät\""], &["zu spät"]);
    }

    #[test]
    fn other_codes_and_what_is_not_a_warning_are_left_out() {
        check(&[r#"199 - "other", 299 - "ours""#], &["ours"]);
        for text in ["", "299", "299 -", "299 - text", r#"299 - "open"#] {
            check(&[text], &[]);
        }
        check(&[r#"299 - "" "#], &[]);
        check(
            &[r#"299 - "one", nonsense"#, r#"299 - "two""#],
            &["one", "two"],
        );
        check(&[r#"299 - "one" nonsense"#], &[]);
        check(&["299 - \"a\tb\""], &["ab"]);
    }

    #[test]
    fn length_and_number_of_warnings_are_bounded() {
        let long = format!("299 - \"{}\"", "ä".repeat(LONGEST));
        let cut = "ä".repeat(LONGEST / 2);
        check(&[&long], &[&cut]);
        let many = vec![r#"299 - "again""#; MOST + 10];
        check(&many, &vec!["again"; MOST]);
    }

    #[test]
    fn text_is_logged_once_and_memory_is_bounded() {
        let warnings = Warnings::default();
        assert!(warnings.is_new("a"));
        assert!(!warnings.is_new("a"));
        for number in 0..3 * REMEMBERED {
            assert!(warnings.is_new(&number.to_string()));
        }
        assert!(warnings.logged.lock().len() <= REMEMBERED);
    }
}
