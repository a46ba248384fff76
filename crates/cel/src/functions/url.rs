//! URLs: absolute ones, or paths that start with a slash.

use std::collections::BTreeMap;
use std::rc::Rc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::super::eval::Evaluator;
use super::super::value::{EvalError, Evaluated, Key, Map, Value, fail, no_overload};
use super::read;

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// With the port.
    host: String,
    path: String,
    query: String,
}

/// Why a text is not a URL, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UrlError {
    #[error("empty url")]
    Empty,
    #[error("net/url: invalid control character in URL")]
    ControlCharacter,
    #[error("invalid URI for request")]
    NotForRequests,
    #[error("missing protocol scheme")]
    NoScheme,
    #[error("invalid character {:?} in host name", .0.to_string())]
    HostCharacter(char),
    #[error("missing ']' in host")]
    OpenBracket,
    #[error("invalid port {0:?} after host")]
    Port(String),
    #[error("invalid URL escape {0:?}")]
    Escape(String),
}

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    let [Value::Text(text)] = args else {
        return no_overload();
    };
    let parsed = Url::parse(read(eval, text)?);
    match (name, parsed) {
        ("isURL", parsed) => Ok(Value::Bool(parsed.is_ok())),
        (_, Ok(url)) => Ok(Value::Url(Rc::new(url))),
        (_, Err(reason)) => fail(format!(
            "URL parse error during conversion from string: parse {:?}: {reason}",
            &**text
        )),
    }
}

impl Url {
    /// Reads a URL, or says why the text is none.
    pub(super) fn parse(text: &str) -> Result<Self, UrlError> {
        if text.is_empty() {
            return Err(UrlError::Empty);
        }
        if text.chars().any(|c| c.is_ascii_control()) {
            return Err(UrlError::ControlCharacter);
        }
        let (scheme, rest) = split_scheme(text)?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, query),
            None => (rest, ""),
        };
        let mut url = Url {
            scheme: scheme.to_ascii_lowercase(),
            host: String::new(),
            path: String::new(),
            query: query.to_owned(),
        };
        if !rest.starts_with('/') {
            // Such as `mailto:someone`: nothing of it can be asked for.
            return if scheme.is_empty() {
                Err(UrlError::NotForRequests)
            } else {
                Ok(url)
            };
        }
        let path = match rest.strip_prefix("//") {
            Some(after) if !scheme.is_empty() || !after.starts_with('/') => {
                let end = after.find('/').unwrap_or(after.len());
                url.host = host(&after[..end])?;
                &after[end..]
            }
            _ => rest,
        };
        valid_escapes(path)?;
        url.path = utf8_percent_encode(path, &PATH).to_string();
        Ok(url)
    }

    /// `host` without the port, and the port.
    fn host_and_port(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (&self.host, ""),
        }
    }

    /// `getHost` and the like.
    pub(super) fn get<'a>(&self, name: &str) -> Result<Value<'a>, EvalError> {
        let (host, port) = self.host_and_port();
        Ok(Value::text(match name {
            "getScheme" => self.scheme.as_str(),
            "getHost" => self.host.as_str(),
            "getHostname" => host.trim_start_matches('[').trim_end_matches(']'),
            "getPort" => port,
            "getEscapedPath" => self.path.as_str(),
            "getQuery" => return Ok(self.query_values()),
            _ => return no_overload(),
        }))
    }

    fn query_values<'a>(&self) -> Value<'a> {
        let mut values: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (false, Some(key), Some(value)) =
                (pair.contains(';'), decoded(key), decoded(value))
            {
                values.entry(key).or_default().push(Value::text(value));
            }
        }
        let entries = values.into_iter().map(|(key, values)| {
            let name = Value::text(key.as_str());
            (Key::Text(key.into()), (name, Value::list(values)))
        });
        Value::Map(Map::Made(Rc::new(entries.collect())))
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), UrlError> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err(UrlError::NoScheme),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn host(authority: &str) -> Result<String, UrlError> {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let bad = |c: char| {
        !(c.is_ascii_alphanumeric() || !c.is_ascii() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c))
    };
    if let Some(c) = host.chars().find(|c| bad(*c)) {
        return Err(UrlError::HostCharacter(c));
    }
    let port = if let Some(after) = host.strip_prefix('[') {
        let end = after.find(']').ok_or(UrlError::OpenBracket)?;
        &after[end + 1..]
    } else {
        host.find(':').map_or("", |at| &host[at..])
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let valid =
        port.is_empty() || port.starts_with(':') && digits.bytes().all(|b| b.is_ascii_digit());
    if !valid {
        return Err(UrlError::Port(port.to_owned()));
    }
    valid_escapes(host)?;
    Ok(host.to_owned())
}

fn valid_escapes(text: &str) -> Result<(), UrlError> {
    for part in text.split('%').skip(1) {
        let code = part.as_bytes().get(..2);
        if !code.is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit)) {
            let shown: String = part.chars().take(2).collect();
            return Err(UrlError::Escape(format!("%{shown}")));
        }
    }
    Ok(())
}

/// What Go leaves as it is in a path.
const PATH: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@')
    .remove(b'%')
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'[')
    .remove(b']');

/// A part of a query without its escapes.
fn decoded(text: &str) -> Option<String> {
    valid_escapes(text).ok()?;
    let text = text.replace('+', " ");
    let text = percent_decode_str(&text).decode_utf8_lossy();
    Some(text.into_owned())
}
