//! Requests and answers of the tests: small values over HTTP bytes, without a client library in between.
#![allow(dead_code, reason = "each test target uses a part of it")]

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use kubewright_server::{ApiService, ResponseBody};
use serde_json::Value;
use tower::ServiceExt;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";

/// A request to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Ask {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: impl Into<String>, body: impl Into<Text>) -> Self {
        Self::new("POST", path).body(JSON, body)
    }

    pub(crate) fn put(path: impl Into<String>, body: impl Into<Text>) -> Self {
        Self::new("PUT", path).body(JSON, body)
    }

    pub(crate) fn patch(path: impl Into<String>, kind: &str, body: impl Into<Text>) -> Self {
        Self::new("PATCH", path).body(kind, body)
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new("DELETE", path)
    }

    pub(crate) fn body(self, content_type: &str, body: impl Into<Text>) -> Self {
        let mut ask = self.header(CONTENT_TYPE.as_str(), content_type);
        ask.body = body.into().0;
        ask
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    /// The request with another body than this one's.
    pub(crate) fn request<B>(&self, body: B) -> Request<B> {
        let mut request = Request::builder().method(self.method).uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request
            .body(body)
            .expect("the test's request is well-formed")
    }

    /// Sends it; the answer's body has not been read.
    pub(crate) async fn open(&self, service: &ApiService) -> Response<ResponseBody> {
        send(service, self.request(Full::new(self.body.clone()))).await
    }

    /// Sends it and reads the whole answer.
    pub(crate) async fn send(&self, service: &ApiService) -> Answer {
        Answer::read(self.open(service).await).await
    }
}

/// Sends a request.
pub(crate) async fn send<B>(service: &ApiService, request: Request<B>) -> Response<ResponseBody>
where
    B: Body<Data = Bytes> + Send + 'static,
{
    match service.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// What can be sent as a body.
pub(crate) struct Text(Bytes);

impl From<Value> for Text {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<&Value> for Text {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self(text.into())
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<Bytes> for Text {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) async fn read(response: Response<ResponseBody>) -> Self {
        let (parts, body) = response.into_parts();
        let body = match body.collect().await {
            Ok(all) => all.to_bytes(),
            Err(never) => match never {},
        };
        Self {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    /// The body as JSON; null when it is something else.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The reason in a Status body.
    pub(crate) fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap_or("").to_owned()
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or("").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|v| v.to_str().ok());
        value.unwrap_or("")
    }

    pub(crate) fn resource_version(&self) -> String {
        let version = &self.json()["metadata"]["resourceVersion"];
        version.as_str().unwrap_or("").to_owned()
    }
}

/// The frames of a watch, one by one.
pub(crate) struct Frames(ResponseBody);

impl Frames {
    /// Opens a watch, which must be accepted.
    pub(crate) async fn open(service: &ApiService, path: impl Into<String>) -> Self {
        let response = Ask::get(path).open(service).await;
        assert_eq!(response.status(), 200, "the watch opens");
        Self(response.into_body())
    }

    /// The next frame as it was sent; none at the end.
    pub(crate) async fn next_bytes(&mut self) -> Option<Bytes> {
        let frame = self.0.frame().await?;
        let Ok(frame) = frame;
        Some(frame.into_data().expect("a watch sends data only"))
    }

    /// The next event; none at the end. Each frame of an in-process watch is one event.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let bytes = self.next_bytes().await?;
        Some(serde_json::from_slice(&bytes).expect("an event is JSON"))
    }
}
