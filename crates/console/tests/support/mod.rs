//! A browser without a window: requests to a console, and streams that are read line by line.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kubewright_console::{Console, Running};
use serde_json::{Value, json};
use tokio::time::timeout;

/// How long anything may take; the machine may be busy.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A page with a session.
pub(crate) struct Page {
    client: Client<HttpConnector, Full<Bytes>>,
    pub(crate) base: String,
    pub(crate) bearer: String,
}

/// Starts a console over a client and opens it.
pub(crate) async fn open(console: Console) -> (Running, Page) {
    let running = console
        .listen(([127, 0, 0, 1], 0).into())
        .await
        .expect("loopback can be listened at");
    let page = Page::open(running.link()).await;
    (running, page)
}

impl Page {
    /// Follows a link as a browser would: the ticket becomes a bearer token.
    pub(crate) async fn open(link: &str) -> Self {
        let (base, ticket) = link.split_once("/#ticket=").expect("the link has a ticket");
        let mut page = Self {
            // A request that is refused before its body is read ends the connection, so none is used twice.
            client: Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .build_http(),
            base: base.to_owned(),
            bearer: String::new(),
        };
        let answer = page.post("/api/session", &json!({"ticket": ticket})).await;
        page.bearer = answer.1["bearer"]
            .as_str()
            .expect("the ticket is good")
            .to_owned();
        page
    }

    /// Sends a request as it is, but for the missing headers.
    pub(crate) async fn send(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Response<Incoming> {
        let request = request
            .body(Full::new(body.into()))
            .expect("it is a request");
        timeout(LIMIT, self.client.request(request))
            .await
            .expect("it answers in time")
            .expect("it answers")
    }

    fn request(&self, method: Method, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.bearer))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        read(
            self.send(self.request(Method::GET, path), String::new())
                .await,
        )
        .await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.post_request(path);
        read(self.send(request, body.to_string()).await).await
    }

    fn post_request(&self, path: &str) -> http::request::Builder {
        self.request(Method::POST, path)
            .header("content-type", "application/json")
    }

    /// Posts and reads the answer line by line.
    pub(crate) async fn post_lines(&self, path: &str, body: &Value) -> Lines {
        let request = self.post_request(path);
        Lines::of(self.send(request, body.to_string()).await)
    }

    pub(crate) async fn stream(&self, topics: Value) -> Lines {
        self.stream_at(topics, None).await
    }

    pub(crate) async fn stream_at(&self, topics: Value, at: Option<u64>) -> Lines {
        let body = json!({"topics": topics, "at": at});
        let response = self
            .send(self.post_request("/api/stream"), body.to_string())
            .await;
        assert_eq!(response.status(), 200);
        Lines::of(response)
    }

    pub(crate) async fn follow(&self, path: &str) -> Lines {
        Lines::of(
            self.send(self.request(Method::GET, path), String::new())
                .await,
        )
    }
}

async fn read(response: Response<Incoming>) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = timeout(LIMIT, response.into_body().collect())
        .await
        .expect("it ends in time")
        .expect("it can be read")
        .to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// Creates an object at the path of its collection.
pub(crate) async fn create(client: &kube::Client, path: &str, object: Value) -> Value {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request
        .body(object.to_string().into_bytes())
        .expect("it is a request");
    let created = client.request(request).await;
    created.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Reads an object.
pub(crate) async fn read_object(client: &kube::Client, path: &str) -> Value {
    let request = Request::get(path)
        .body(Vec::new())
        .expect("it is a request");
    let found = client.request(request).await;
    found.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What comes over a stream.
pub(crate) struct Lines {
    body: Incoming,
    unread: Vec<u8>,
    seen: Vec<String>,
}

impl Lines {
    fn of(response: Response<Incoming>) -> Self {
        Self {
            body: response.into_body(),
            unread: Vec::new(),
            seen: Vec::new(),
        }
    }

    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.unread.extend_from_slice(&data);
            }
        }
    }

    /// The next message for which a closure finds something.
    pub(crate) async fn until<T>(
        &mut self,
        what: &str,
        mut find: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let found = async {
            loop {
                let line = self
                    .line()
                    .await
                    .unwrap_or_else(|| panic!("the stream ended before {what}"));
                self.seen.push(line.chars().take(300).collect());
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if let Some(found) = find(&message) {
                    return found;
                }
            }
        };
        let found = timeout(LIMIT, found).await;
        let last = self.seen.split_off(self.seen.len().saturating_sub(5));
        found.unwrap_or_else(|_| panic!("never: {what}; last seen: {last:#?}"))
    }
}

/// What a message of a table says of a row: all rows of its first state, and rows or keys of changes.
pub(crate) fn operations(message: &Value) -> Vec<Value> {
    let list = message.get("rows").or_else(|| message.get("ops"));
    list.and_then(Value::as_array).cloned().unwrap_or_default()
}
