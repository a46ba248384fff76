//! Lists and watches one resource over a `kube::Client`, as bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, RETRY_AFTER};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use kube::core::{ApiResource, Resource};

use crate::selector::{Selector, SelectorError};
use crate::source::{
    BoxFuture, Chunks, Failure, FailureKind, Initial, ListRequest, Source, StreamingList,
    WatchRequest,
};

/// The largest error answer that is read.
const LARGEST_STATUS: usize = 1 << 20;

/// What of a resource is looked at: everything, or a namespace, or what selectors choose.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
#[must_use]
pub struct Scope {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl Scope {
    /// Everything in the cluster.
    ///
    /// ```
    /// # use kubewright_cache::Scope;
    /// let scope = Scope::all().namespace("default").labels("app=web");
    /// assert_eq!(scope.only_namespace(), Some("default"));
    /// assert_eq!(Scope::all().only_namespace(), None);
    /// ```
    pub fn all() -> Self {
        Self::default()
    }

    /// Restricts the scope to one namespace.
    ///
    /// ```
    /// # use kubewright_cache::Scope;
    /// let scope = Scope::all().namespace("default");
    /// # drop(scope);
    /// ```
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// The same of all namespaces: for kinds that live in none.
    pub fn everywhere(mut self) -> Self {
        self.namespace = None;
        self
    }

    /// What a label selector chooses: text such as `app=web,tier in (a,b)`, pairs, a [`Selector`], or one of the API or of
    /// `kube`. Text that is none is refused when it is used.
    ///
    /// ```
    /// # use kubewright_cache::Scope;
    /// let scope = Scope::all().labels([("app", "web")]);
    /// assert_eq!(scope, Scope::all().labels("app=web"));
    /// ```
    pub fn labels(mut self, selector: impl TryInto<Selector, Error: Into<SelectorError>>) -> Self {
        self.labels = Some(Selector::text_of(selector));
        self
    }

    /// What a field selector chooses, `spec.nodeName=n1`.
    pub fn fields(mut self, selector: &str) -> Self {
        self.fields = Some(selector.to_owned());
        self
    }
}

impl Scope {
    /// The namespace, if it is one.
    pub fn only_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The label selector, if there is one.
    pub fn label_selector(&self) -> Option<&str> {
        self.labels.as_deref()
    }

    /// The field selector, if there is one.
    pub fn field_selector(&self) -> Option<&str> {
        self.fields.as_deref()
    }

    /// Whether every object of a namespace is looked at, whatever its labels and fields.
    pub fn is_sure_to_have(&self, namespace: Option<&str>) -> bool {
        let everywhere = self.namespace.is_none() || self.namespace.as_deref() == namespace;
        everywhere && self.labels.is_none() && self.fields.is_none()
    }
}

/// How much of each object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    Whole,
    Metadata,
}

/// Sees the headers of answers, with the verb and the resource of the request.
pub(crate) type SeeHeaders = Arc<dyn Fn(&'static str, &ApiResource, &HeaderMap) + Send + Sync>;

/// Lists and watches one resource.
#[derive(Clone)]
pub struct ListWatch {
    client: kube::Client,
    resource: ApiResource,
    scope: Scope,
    extent: Extent,
    streaming: StreamingList,
    headers: Option<SeeHeaders>,
}

impl ListWatch {
    /// Objects of a type that is known when the program is compiled.
    pub fn typed<K: Resource<DynamicType = ()>>(client: kube::Client, scope: Scope) -> Self {
        Self::dynamic(client, ApiResource::erase::<K>(&()), scope)
    }

    /// Objects of any resource, by group, version and plural name.
    pub fn dynamic(client: kube::Client, resource: ApiResource, scope: Scope) -> Self {
        Self {
            client,
            resource,
            scope,
            extent: Extent::Whole,
            streaming: StreamingList::Try,
            headers: None,
        }
    }

    /// Only the metadata of the objects of any resource.
    pub fn metadata(client: kube::Client, resource: ApiResource, scope: Scope) -> Self {
        Self {
            extent: Extent::Metadata,
            ..Self::dynamic(client, resource, scope)
        }
    }

    /// Whether the initial state may be asked for as a stream.
    #[must_use]
    pub fn with_streaming_list(mut self, streaming: StreamingList) -> Self {
        self.streaming = streaming;
        self
    }

    /// Shows the headers of every answer to a function.
    pub(crate) fn with_headers(mut self, see: Option<SeeHeaders>) -> Self {
        self.headers = see;
        self
    }

    fn path(&self) -> String {
        let mut path = if self.resource.group.is_empty() {
            format!("/api/{}", self.resource.version)
        } else {
            format!("/apis/{}/{}", self.resource.group, self.resource.version)
        };
        if let Some(namespace) = &self.scope.namespace {
            path.push_str("/namespaces/");
            path.push_str(&escape(namespace));
        }
        path.push('/');
        path.push_str(&self.resource.plural);
        path
    }

    /// The parameters that lists and watches share.
    fn query(&self) -> BTreeMap<&'static str, String> {
        let mut query = BTreeMap::new();
        query.extend(self.scope.labels.clone().map(|s| ("labelSelector", s)));
        query.extend(self.scope.fields.clone().map(|s| ("fieldSelector", s)));
        query
    }

    fn accept(&self, kind: &str) -> Cow<'static, str> {
        match self.extent {
            Extent::Whole => "application/json".into(),
            Extent::Metadata => {
                format!("application/json;as={kind};g=meta.k8s.io;v=v1,application/json").into()
            }
        }
    }

    fn list_request(&self, request: &ListRequest) -> Result<Request<Body>, http::Error> {
        let mut query = self.query();
        if request.limit > 0 {
            query.insert("limit", request.limit.to_string());
        }
        if request.continue_token.is_empty() {
            query.insert("resourceVersion", request.resource_version.clone());
        } else {
            query.insert("continue", request.continue_token.clone());
        }
        query.retain(|name, value| *name != "resourceVersion" || !value.is_empty());
        Request::get(uri(&self.path(), &query))
            .header(ACCEPT, &*self.accept("PartialObjectMetadataList"))
            .body(Body::empty())
    }

    fn watch_request(&self, request: &WatchRequest) -> Result<Request<Body>, http::Error> {
        let mut query = self.query();
        query.insert("watch", "true".to_owned());
        query.insert("allowWatchBookmarks", "true".to_owned());
        query.insert("timeoutSeconds", request.timeout.as_secs().to_string());
        if request.initial == Initial::Events {
            query.insert("sendInitialEvents", "true".to_owned());
            query.insert("resourceVersionMatch", "NotOlderThan".to_owned());
        }
        if !request.resource_version.is_empty() {
            query.insert("resourceVersion", request.resource_version.clone());
        }
        Request::get(uri(&self.path(), &query))
            .header(ACCEPT, &*self.accept("PartialObjectMetadata"))
            // Compressed watches come as one gzip member for each event, which common decoders stop after.
            .header(ACCEPT_ENCODING, "identity")
            .body(Body::empty())
    }

    async fn send(
        &self,
        verb: &'static str,
        request: Result<Request<Body>, http::Error>,
    ) -> Result<Box<dyn Chunks>, Failure> {
        let request = request.map_err(|e| Failure::new(FailureKind::Invalid, chain(&e)))?;
        let response = self.client.send(request).await.map_err(unreachable)?;
        let (head, body) = response.into_parts();
        if let Some(see) = &self.headers {
            see(verb, &self.resource, &head.headers);
        }
        if head.status.is_success() {
            return Ok(Box::new(BodyChunks(body)));
        }
        let read = Limited::new(body, LARGEST_STATUS).collect().await;
        let status = read.map(|all| all.to_bytes()).unwrap_or_default();
        let patience = retry_after(&head.headers);
        Err(Failure::from_status(
            head.status.as_u16(),
            &status,
            patience,
        ))
    }
}

impl Source for ListWatch {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Box<dyn Chunks>, Failure>> {
        Box::pin(async move { self.send("list", self.list_request(&request)).await })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Chunks>, Failure>> {
        Box::pin(async move { self.send("watch", self.watch_request(&request)).await })
    }

    fn streaming_list(&self) -> StreamingList {
        self.streaming
    }

    /// The path of the resource, with its selectors and what is asked for if that is not everything.
    fn describe(&self) -> String {
        let whole = uri(&self.path(), &self.query());
        match self.extent {
            Extent::Whole => whole,
            Extent::Metadata => format!("{whole} metadata"),
        }
    }
}

impl fmt::Debug for ListWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListWatch({}, {:?})", self.path(), self.scope)
    }
}

/// The body of an answer.
struct BodyChunks(Body);

impl Chunks for BodyChunks {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, Failure>>> {
        Box::pin(async {
            loop {
                match self.0.frame().await? {
                    Ok(frame) => match frame.into_data() {
                        Ok(data) => return Some(Ok(data)),
                        Err(_) => continue,
                    },
                    Err(error) => {
                        return Some(Err(Failure::new(FailureKind::Interrupted, chain(&error))));
                    }
                }
            }
        })
    }
}

fn unreachable(error: kube::Error) -> Failure {
    let mut source: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>()
            && io.kind() == io::ErrorKind::ConnectionRefused
        {
            return Failure::new(FailureKind::ConnectionRefused, chain(&error));
        }
        source = cause.source();
    }
    Failure::new(FailureKind::Other, chain(&error))
}

/// An error with its causes, each mentioned once.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = cause.source();
    }
    text
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn uri(path: &str, query: &BTreeMap<&'static str, String>) -> String {
    let mut uri = path.to_owned();
    for (place, (name, value)) in query.iter().enumerate() {
        uri.push(if place == 0 { '?' } else { '&' });
        uri.push_str(name);
        uri.push('=');
        uri.push_str(&escape(value));
    }
    uri
}

/// Percent-encodes everything but what is never special in a URI.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_escaped_and_in_order() {
        let query = BTreeMap::from([
            ("labelSelector", "a in (b,c),d!=é".to_owned()),
            ("limit", "5".to_owned()),
        ]);
        assert_eq!(
            uri("/api/v1/pods", &query),
            "/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29%2Cd%21%3D%C3%A9&limit=5"
        );
    }
}
