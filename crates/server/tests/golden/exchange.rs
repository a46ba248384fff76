//! Reads recorded exchanges: a heading, the request behind `>`, then status, headers and body of the answer.

use serde_json::Value;

/// A request and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// Heading; not always unique.
    pub(crate) name: String,
    /// What was sent; missing where the credentials were the point.
    pub(crate) request: Option<Request>,
    /// Status code of the answer.
    pub(crate) status: u16,
    /// Headers of the answer in their order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Body of the answer.
    pub(crate) response: Body,
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET` and so on.
    pub(crate) method: String,
    /// Path with its query.
    pub(crate) path: String,
    /// Media type of the body.
    pub(crate) content_type: Option<String>,
    /// Other headers, such as `Accept`.
    pub(crate) headers: Vec<(String, String)>,
    /// The body, on one line.
    pub(crate) body: Option<String>,
}

/// Body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// Nothing, or white space.
    Empty,
    /// One document of JSON.
    Json(Value),
    /// One document per line: a watch.
    Lines(Vec<Value>),
    /// Any other body, trimmed of white space.
    Text(String),
}

impl Body {
    /// Tells apart what a body can be. Never fails: what is not JSON is text.
    pub(crate) fn read(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Body::Empty;
        }
        if let Ok(document) = serde_json::from_str(text) {
            return Body::Json(document);
        }
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        lines.map_or_else(|_| Body::Text(text.to_owned()), Body::Lines)
    }
}

/// All exchanges recorded with kube-apiserver 1.35, in the order they happened.
pub(crate) fn kube_apiserver() -> Vec<Exchange> {
    parse(include_str!("kube-apiserver-1.35.txt"))
}

/// The first exchange of a name.
pub(crate) fn find<'a>(exchanges: &'a [Exchange], name: &str) -> &'a Exchange {
    exchanges
        .iter()
        .find(|exchange| exchange.name == name)
        .unwrap_or_else(|| panic!("the golden file has no exchange {name:?}"))
}

/// Reads a file of exchanges. What stands before the first heading is for people.
///
/// # Panics
///
/// When an exchange cannot be understood: the file is ours and has to be fixed.
pub(crate) fn parse(text: &str) -> Vec<Exchange> {
    let text = format!("\n{text}");
    text.split("\n### ")
        .skip(1)
        .map(|exchange| {
            let (name, rest) = exchange.split_once('\n').unwrap_or((exchange, ""));
            parse_exchange(name, rest)
                .unwrap_or_else(|| panic!("cannot understand the exchange {name:?}"))
        })
        .collect()
}

fn parse_exchange(name: &str, text: &str) -> Option<Exchange> {
    let mut rest = text;
    let mut request = None;
    if let Some(line) = take_line(&mut rest, "> ") {
        request = Some(parse_request(line)?);
    }
    if let Some(body) = take_line(&mut rest, "> body: ") {
        request.as_mut()?.body = Some(body.to_owned());
    }
    let status = take_line(&mut rest, "HTTP/2 ")?.trim().parse().ok()?;
    let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let headers = head.lines().filter(|line| !line.is_empty());
    Some(Exchange {
        name: name.trim().to_owned(),
        request,
        status,
        headers: headers.map(parse_header).collect::<Option<_>>()?,
        response: Body::read(body),
    })
}

/// Takes the first line off if it starts with `prefix`, and returns what follows it there.
fn take_line<'a>(rest: &mut &'a str, prefix: &str) -> Option<&'a str> {
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let line = line.strip_prefix(prefix)?;
    *rest = after;
    Some(line)
}

/// `POST /api/v1/namespaces CT=application/json H=Impersonate-User: bob`
fn parse_request(line: &str) -> Option<Request> {
    let (line, header) = match line.split_once(" H=") {
        Some((line, header)) => (line, Some(parse_header(header)?)),
        None => (line, None),
    };
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?, words.next()?);
    let content_type = match words.next() {
        Some(word) => Some(word.strip_prefix("CT=")?.to_owned()),
        None => None,
    };
    Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        content_type,
        headers: header.into_iter().collect(),
        body: None,
    })
}

fn parse_header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(": ")?;
    Some((name.to_lowercase(), value.trim().to_owned()))
}
