//! The wire: a service between clients and a server, that does to calls what a test wants.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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

use crate::access::Access;
use crate::body::{Break, Delay, WireBody, breakable, delayed, stalled};
use crate::call::{Call, Exchange, Fault, Verb};
use crate::eventually::seen;

/// Calls that are remembered.
const REMEMBERED: usize = 100_000;
/// Calls that no role allows and that are remembered.
const MAX_DENIED: usize = 16;

type Plan = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;

/// A transport to a server that records calls and injects faults. Cheap to clone; clones share their faults and records.
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
    log: Mutex<Log>,
}

/// The last calls, and what all of them used.
#[derive(Default)]
struct Log {
    exchanges: VecDeque<Exchange>,
    /// How many calls were forgotten: the number of the first one that is remembered.
    forgotten: usize,
    used: BTreeSet<Access>,
    /// The number of the last write, counted from one.
    last_write: usize,
    denied: VecDeque<Exchange>,
}

impl Log {
    /// Remembers a call, and gives its number.
    fn push(&mut self, exchange: Exchange) -> usize {
        if self.exchanges.len() == REMEMBERED {
            self.exchanges.pop_front();
            self.forgotten += 1;
        }
        let writes = exchange.is_write() && !exchange.is_lease();
        self.exchanges.push_back(exchange);
        let passed = self.forgotten + self.exchanges.len();
        if writes {
            self.last_write = passed;
        }
        passed - 1
    }

    fn answered(&mut self, number: usize, code: u16, message: Option<String>) {
        let at = number.checked_sub(self.forgotten);
        let Some(exchange) = at.and_then(|at| self.exchanges.get_mut(at)) else {
            return;
        };
        exchange.code = Some(code);
        exchange.message = message;
        let accesses = exchange.accesses();
        if exchange.denied().is_some() {
            self.denied.push_back(exchange.clone());
        }
        if self.denied.len() > MAX_DENIED {
            self.denied.pop_front();
        }
        self.used.extend(accesses);
    }

    fn since(&self, number: usize) -> impl Iterator<Item = &Exchange> {
        let skipped = number.saturating_sub(self.forgotten);
        self.exchanges.iter().skip(skipped)
    }
}

impl Wire {
    /// Makes a transport to a server, without faults.
    pub fn new(service: ApiService) -> Self {
        let shared = Shared {
            plan: Mutex::default(),
            delay: Mutex::default(),
            breaks: broadcast::channel(16).0,
            counts: Mutex::default(),
            log: Mutex::default(),
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

    /// The last calls and what happened to them, up to a hundred thousand.
    pub fn calls(&self) -> Vec<(Call, Fault)> {
        let log = self.shared.log.lock();
        let calls = log.exchanges.iter();
        calls
            .map(|it| (it.call.clone(), it.fault.clone()))
            .collect()
    }

    /// How many calls there were; a mark for [`Wire::exchanges_since`].
    pub fn passed(&self) -> usize {
        let log = self.shared.log.lock();
        log.forgotten + log.exchanges.len()
    }

    /// The calls from a mark on and how they were answered, as far as they are remembered.
    pub fn exchanges_since(&self, mark: usize) -> Vec<Exchange> {
        self.shared.log.lock().since(mark).cloned().collect()
    }

    /// The last calls that no role allows.
    pub fn denied(&self) -> Vec<Exchange> {
        self.shared.log.lock().denied.iter().cloned().collect()
    }

    /// The number of the last call that was a write, counted from one; zero if there was none. Leases, which are renewed all the
    /// time, do not count.
    pub fn last_write(&self) -> usize {
        self.shared.log.lock().last_write
    }

    /// What roles had to allow for all calls that were answered, each once.
    pub fn used(&self) -> Vec<Access> {
        self.shared.log.lock().used.iter().cloned().collect()
    }

    /// How many calls of a verb there were.
    pub fn count(&self, verb: Verb) -> u64 {
        self.shared.counts.lock().get(&verb).copied().unwrap_or(0)
    }

    fn note(&self, request: &Request<Body>) -> (Call, Fault, usize) {
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
            access: Access::of(request.method(), request.uri()),
        };
        let plan = self.shared.plan.lock().clone();
        let fault = plan.map_or(Fault::None, |plan| plan(&call));
        seen(format_args!("{:?} {} {fault:?}", call.verb, call.path));
        let exchange = Exchange {
            call: call.clone(),
            fault: fault.clone(),
            code: None,
            message: None,
        };
        let number = self.shared.log.lock().push(exchange);
        (call, fault, number)
    }

    /// Notes how the server answered. A refusal is read for what it says.
    async fn answered(
        &self,
        number: usize,
        response: Response<WireBody>,
    ) -> Result<Response<WireBody>, BoxError> {
        let code = response.status().as_u16();
        if code < 400 {
            self.shared.log.lock().answered(number, code, None);
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        // From a server of this process, and short.
        let bytes = body.collect().await?.to_bytes();
        let status: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let message = status["message"].as_str().map(str::to_owned);
        self.shared.log.lock().answered(number, code, message);
        let body = Full::new(bytes).map_err(|never| match never {});
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }

    async fn handle(self, request: Request<Body>) -> Result<Response<WireBody>, BoxError> {
        let (call, fault, number) = self.note(&request);
        match &fault {
            Fault::Refuse { code, reason } => {
                return self.answered(number, refusal(*code, reason)?).await;
            }
            Fault::LoseRequest => return Err("connection reset before the request arrived".into()),
            Fault::Delay(time) => tokio::time::sleep(*time).await,
            Fault::Silence => return std::future::pending().await,
            Fault::None | Fault::LoseAnswer | Fault::SilentAnswer | Fault::Stall => {}
        }
        let response = self.service.clone().oneshot(request).await?;
        let response = response.map(|body| body.map_err(BoxError::from).boxed_unsync());
        let response = self.answered(number, response).await?;
        match fault {
            Fault::LoseAnswer => return Err("connection reset before the answer arrived".into()),
            Fault::SilentAnswer => return std::future::pending().await,
            _ => {}
        }
        let (head, mut body) = response.into_parts();
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
