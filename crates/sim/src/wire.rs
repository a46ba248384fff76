//! The connection between a process of the operator and the API server: every call passes a gate on its way there and one on
//! its way back.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use kubewright_cluster::Cluster;
use kubewright_server::ApiService;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::{BoxError, Service, ServiceExt};

use crate::director::Up;
use crate::identity::WriteId;
use crate::life::Life;
use crate::outage::Reach;
use crate::plan::Fault;
use crate::target::{Target, is_noise};
use crate::trace::Wrote;
use crate::watch::watched;

pub(crate) type WireBody = UnsyncBoxBody<Bytes, BoxError>;
type Answer = Result<Response<WireBody>, BoxError>;

/// How long an API server waits for a version that it has not reached.
const WAITS_FOR: Duration = Duration::from_secs(3);

/// A process's end of its connection.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) service: ApiService,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) life: Life,
}

/// A write on its way.
struct Sent {
    id: WriteId,
    target: Target,
    by_uid: bool,
    /// The newest revision when it was sent.
    revision: u64,
}

impl Wire {
    pub(crate) fn client(self) -> kube::Client {
        kube::Client::new(self, "default")
    }

    async fn handle(self, request: Request<Body>) -> Answer {
        self.life.check().await;
        let Some(target) = Target::of(request.uri().path()) else {
            return self.pass(request).await;
        };
        if !is_noise(&target.resource) {
            self.life.director.be_active();
        }
        let attempted = any_verb(&target, &request);
        let director = &self.life.director;
        if let Some(attempt) = director.attempt(attempted, &target.resource).await {
            self.life.check().await;
            return match attempt.reach {
                Reach::Everything => Err("connection refused".into()),
                Reach::Writes => refusal(503),
            };
        }
        match verb(request.method()) {
            Some(_) if is_noise(&target.resource) => self.write_noise(target, request).await,
            Some(verb) => self.write(verb, target, request).await,
            None if is_watch(&request) => self.watch(target, request).await,
            None if target.name.is_none() => self.list(target, request).await,
            None => self.pass(request).await,
        }
    }

    /// Lets a call pass that no fault is for.
    async fn pass(&self, request: Request<Body>) -> Answer {
        let response = self.service.clone().oneshot(request).await?;
        self.life.check().await;
        Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
    }

    /// Events and leases are no part of what an operator is for; that it holds a lease is worth knowing.
    async fn write_noise(&self, target: Target, request: Request<Body>) -> Answer {
        if target.plain() != "leases.coordination.k8s.io" {
            return self.pass(request).await;
        }
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let lease: Value = serde_json::from_slice(&body).unwrap_or_default();
        let request = Request::from_parts(head, Body::from(body.to_vec()));
        let answer = self.pass(request).await?;
        let name = lease["metadata"]["name"].as_str();
        if let Some(name) = target.name.as_deref().or(name) {
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let leads = answer.status().is_success() && !holder.is_empty();
            let leader = leads.then_some(self.life.number);
            self.life.director.note_lease(target.key(name), leader);
        }
        Ok(answer)
    }

    async fn write(&self, verb: &str, target: Target, request: Request<Body>) -> Answer {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let director = &self.life.director;
        director.dawdle().await;
        self.life.check().await;
        let id = director.name_write(verb, &target, &body);
        director.check_leader(self.life.number, &id);
        let fault = director.fault_at_write(&id);
        let sent = Sent {
            by_uid: names_uid(&body),
            revision: self.cluster.server().revision(),
            id,
            target,
        };
        match &fault {
            Some(Fault::CrashBefore(_)) => self.life.crash().await,
            Some(Fault::Partition(_)) => self.life.cut_off_for(self.life.director.pace.silent_for),
            Some(Fault::Refuse(code, _)) => {
                self.note(&sent, *code, None);
                return refusal(*code);
            }
            Some(Fault::Silence(_)) => {
                self.note(&sent, 0, None);
                tokio::time::sleep(director.pace.silent_for).await;
                return Err("the connection timed out".into());
            }
            _ => {}
        }
        self.life.director.take_turn().await;
        self.life.check().await;
        let request = Request::from_parts(head, Body::from(body.to_vec()));
        let response = self.service.clone().oneshot(request).await?;
        let (head, body) = response.into_parts();
        let body = body.map_err(BoxError::from).collect().await?.to_bytes();
        self.note(&sent, head.status.as_u16(), Some(&body));
        self.life.check().await;
        match fault {
            Some(Fault::CrashAfter(_)) => self.life.crash().await,
            Some(Fault::LoseAnswer(_)) => Err("connection reset before the answer arrived".into()),
            _ => {
                self.life.director.dawdle().await;
                self.life.check().await;
                Ok(Response::from_parts(head, full(body)))
            }
        }
    }

    fn note(&self, sent: &Sent, code: u16, answer: Option<&Bytes>) {
        let answer = answer.map(|body| serde_json::from_slice::<Value>(body).unwrap_or_default());
        let answer = answer.unwrap_or_default();
        let done = (200..300).contains(&code);
        let meta = &answer["metadata"];
        let name = meta["name"].as_str().unwrap_or_default();
        let created =
            (code == 201 && sent.id.resource == sent.target.plain()).then(|| sent.target.key(name));
        self.life.director.wrote(Wrote {
            id: sent.id.clone(),
            code,
            effective: done && self.is_effective(sent, &answer),
            created,
            by_uid: sent.by_uid,
        });
    }

    /// Whether a write that was accepted has changed anything.
    fn is_effective(&self, sent: &Sent, answer: &Value) -> bool {
        let version = answer["metadata"]["resourceVersion"].as_str();
        let version = version.and_then(|version| version.parse::<u64>().ok());
        match version {
            Some(version) => version > sent.revision,
            None if sent.id.verb == "delete" => true,
            None => self.cluster.server().revision() > sent.revision,
        }
    }

    async fn list(&self, target: Target, mut request: Request<Body>) -> Answer {
        self.life.director.released(&target.resource).await;
        self.life.check().await;
        let asked = query(&request, "resourceVersion");
        if let Some((held, _)) = self.life.front_end.held() {
            if asked.as_deref() == Some("0") {
                let at = format!("resourceVersion={held}&resourceVersionMatch=Exact");
                replace_version(&mut request, &at)?;
            } else if self.is_too_large(asked.as_deref()).await {
                return refusal(504);
            }
        }
        self.pass(request).await
    }

    /// Whether a version is one that the API server does not reach while it waits for it.
    async fn is_too_large(&self, version: Option<&str>) -> bool {
        let version = version.and_then(|version| version.parse().ok());
        let reached = self.life.front_end.reached(version.unwrap_or_default());
        let late = tokio::time::timeout(WAITS_FOR, reached).await.is_err();
        self.life.check().await;
        late
    }

    async fn watch(&self, target: Target, request: Request<Body>) -> Answer {
        self.life.director.released(&target.resource).await;
        self.life.check().await;
        if self.life.front_end.held().is_some() {
            if query(&request, "sendInitialEvents").is_some() {
                // A server that cannot stream a list gives one from its cache instead, which may be old.
                return refusal(422);
            }
            let asked = query(&request, "resourceVersion");
            if self.is_too_large(asked.as_deref()).await {
                return refusal(504);
            }
        }
        let response = self.pass(request).await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        self.life.director.set_up(Up::Watching);
        Ok(response.map(|body| watched(body, target.resource, self.life.clone())))
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Response<WireBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().handle(request))
    }
}

fn verb(method: &Method) -> Option<&'static str> {
    match method.as_str() {
        "POST" => Some("create"),
        "PUT" => Some("update"),
        "PATCH" => Some("patch"),
        "DELETE" => Some("delete"),
        _ => None,
    }
}

/// The verb of any call, reads included.
fn any_verb(target: &Target, request: &Request<Body>) -> &'static str {
    let read = match (is_watch(request), &target.name) {
        (true, _) => "watch",
        (false, None) => "list",
        (false, Some(_)) => "get",
    };
    verb(request.method()).unwrap_or(read)
}

fn query(request: &Request<Body>, name: &str) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(known, _)| *known == name);
    found.map(|(_, value)| value.to_owned())
}

fn is_watch(request: &Request<Body>) -> bool {
    matches!(query(request, "watch").as_deref(), Some("true" | "1"))
}

/// Puts other parameters in place of those that name a version.
fn replace_version(request: &mut Request<Body>, parameters: &str) -> Result<(), BoxError> {
    let query = request.uri().query().unwrap_or_default();
    let others = query
        .split('&')
        .filter(|pair| !pair.starts_with("resourceVersion") && !pair.is_empty());
    let query: Vec<&str> = others.chain([parameters]).collect();
    let path = format!("{}?{}", request.uri().path(), query.join("&"));
    *request.uri_mut() = path.parse()?;
    Ok(())
}

fn names_uid(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    !body["preconditions"]["uid"].is_null()
}

pub(crate) fn full(bytes: Bytes) -> WireBody {
    Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// The answer of a server that does nothing.
fn refusal(code: u16) -> Answer {
    let reason = match code {
        409 => "Conflict",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": format!("the simulation answers {code}"),
    });
    let mut response = Response::new(full(Bytes::from(status.to_string())));
    *response.status_mut() = StatusCode::from_u16(code)?;
    let header = |value| http::HeaderValue::from_static(value);
    let headers = response.headers_mut();
    headers.insert("content-type", header("application/json"));
    if code == 429 {
        headers.insert("retry-after", header("1"));
    }
    Ok(response)
}
