//! The wire: a service between clients and a server, that does to calls what a test wants.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use kubewright_server::ApiService;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tower::{BoxError, Service, ServiceExt};

use crate::body::{Break, Delay, WireBody, breakable, delayed, stalled};
use crate::call::{Call, Fault, Verb};
use crate::eventually::seen;

/// Calls that are remembered.
const REMEMBERED: usize = 100_000;

type Plan = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;

/// A line to a server that can be disturbed. Cheap to clone; clones are the same line.
#[derive(Clone)]
pub struct Wire {
    service: ApiService,
    shared: Arc<Shared>,
}

struct Shared {
    plan: Mutex<Option<Plan>>,
    delay: Mutex<Option<Delay>>,
    breaks: broadcast::Sender<Break>,
    counts: Mutex<BTreeMap<Verb, u64>>,
    calls: Mutex<Vec<(Call, Fault)>>,
}

impl Wire {
    /// A line to a server, undisturbed.
    pub fn new(service: ApiService) -> Self {
        let shared = Shared {
            plan: Mutex::default(),
            delay: Mutex::default(),
            breaks: broadcast::channel(16).0,
            counts: Mutex::default(),
            calls: Mutex::default(),
        };
        Self {
            service,
            shared: Arc::new(shared),
        }
    }

    /// A client at this end of it.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// What happens to each call from now on.
    pub fn plan(&self, plan: impl Fn(&Call) -> Fault + Send + Sync + 'static) {
        *self.shared.plan.lock() = Some(Arc::new(plan));
    }

    /// Events of watches that are opened from now on come later by this, each on its own but in order.
    pub fn delay_watches(&self, delay: impl Fn() -> Duration + Send + Sync + 'static) {
        *self.shared.delay.lock() = Some(Arc::new(delay));
    }

    /// Breaks all open watches.
    pub fn break_watches(&self, how: Break) {
        // Nobody may be watching.
        let _ = self.shared.breaks.send(how);
    }

    /// No more faults and delays. Watches that are open stay as they are.
    pub fn heal(&self) {
        *self.shared.plan.lock() = None;
        *self.shared.delay.lock() = None;
    }

    /// The calls so far and what happened to them, the first ones.
    pub fn calls(&self) -> Vec<(Call, Fault)> {
        self.shared.calls.lock().clone()
    }

    /// How many calls of a verb there were.
    pub fn count(&self, verb: Verb) -> u64 {
        self.shared.counts.lock().get(&verb).copied().unwrap_or(0)
    }

    fn note(&self, request: &Request<Body>) -> (Call, Fault) {
        let verb = Verb::of(request.method(), request.uri());
        let number = {
            let mut counts = self.shared.counts.lock();
            let count = counts.entry(verb).or_default();
            *count += 1;
            *count
        };
        let call = Call {
            number,
            verb,
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
        };
        let plan = self.shared.plan.lock().clone();
        let fault = plan.map_or(Fault::None, |plan| plan(&call));
        seen(format_args!("{:?} {} {fault:?}", call.verb, call.path));
        let mut calls = self.shared.calls.lock();
        if calls.len() < REMEMBERED {
            calls.push((call.clone(), fault.clone()));
        }
        (call, fault)
    }

    async fn handle(self, request: Request<Body>) -> Result<Response<WireBody>, BoxError> {
        let (call, fault) = self.note(&request);
        match &fault {
            Fault::Refuse { code, reason } => return refusal(*code, reason),
            Fault::LoseRequest => return Err("connection reset before the request arrived".into()),
            Fault::Delay(time) => tokio::time::sleep(*time).await,
            Fault::Silence => return std::future::pending().await,
            Fault::None | Fault::LoseAnswer | Fault::SilentAnswer | Fault::Stall => {}
        }
        let response = self.service.clone().oneshot(request).await?;
        match fault {
            Fault::LoseAnswer => return Err("connection reset before the answer arrived".into()),
            Fault::SilentAnswer => return std::future::pending().await,
            _ => {}
        }
        let (head, body) = response.into_parts();
        let mut body = body.map_err(BoxError::from).boxed_unsync();
        if fault == Fault::Stall {
            body = stalled(body);
        }
        let body = match call.verb {
            Verb::Watch => self.disturbed(body),
            _ => body,
        };
        Ok(Response::from_parts(head, body))
    }

    fn disturbed(&self, body: WireBody) -> WireBody {
        let delay = self.shared.delay.lock().clone();
        let body = match delay {
            Some(delay) => delayed(body, delay),
            None => body,
        };
        breakable(body, self.shared.breaks.subscribe())
    }
}

fn refusal(code: u16, reason: &str) -> Result<Response<WireBody>, BoxError> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": format!("a test says {reason}"),
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code)?;
    if code == 429 {
        let one = http::HeaderValue::from_static("1");
        response.headers_mut().insert("retry-after", one);
    }
    Ok(response)
}

impl Service<Request<Body>> for Wire {
    type Response = Response<WireBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().handle(request))
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wire({:?})", self.shared.counts.lock())
    }
}
