//! The transport between informer and server: counts what is asked, and breaks where a test wants it.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams};
use kube::client::Body;
use kubewright_cache::{Key, Reader};
use kubewright_server::{ApiService, Server};
use kubewright_testing::limit;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tower::{BoxError, Service, ServiceExt};

type WireBody = UnsyncBoxBody<Bytes, BoxError>;

/// What happens to every open watch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Break {
    /// It ends without an error.
    Close,
    /// The connection is reset.
    Reset,
    /// It ends in the middle of a line.
    Truncate,
    /// A line arrives that is not an event.
    Garbage,
}

/// An answer in place of the server's.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
}

#[derive(Clone)]
pub(crate) struct Wire {
    service: ApiService,
    shared: Arc<Shared>,
}

struct Shared {
    log: Mutex<Vec<String>>,
    queries: Mutex<Vec<String>>,
    answers: Mutex<VecDeque<Answer>>,
    always: Mutex<BTreeMap<&'static str, Answer>>,
    breaks: broadcast::Sender<Break>,
    double_bookmarks: AtomicBool,
    doubled: AtomicUsize,
    slow_lists: AtomicBool,
    listing: Arc<()>,
    short_watches: AtomicBool,
    /// One for each watch that is open, and one here.
    open: Arc<()>,
}

impl Wire {
    pub(crate) fn new(server: &Server) -> Self {
        Self {
            service: server.service(),
            shared: Arc::new(Shared {
                log: Mutex::default(),
                queries: Mutex::default(),
                answers: Mutex::default(),
                always: Mutex::default(),
                breaks: broadcast::channel(16).0,
                double_bookmarks: AtomicBool::new(false),
                doubled: AtomicUsize::new(0),
                slow_lists: AtomicBool::new(false),
                listing: Arc::new(()),
                short_watches: AtomicBool::new(false),
                open: Arc::new(()),
            }),
        }
    }

    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// What was asked, as `list`, `stream` and `watch`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.shared.log.lock().clone()
    }

    pub(crate) fn break_watches(&self, how: Break) {
        // Nobody may be watching.
        let _ = self.shared.breaks.send(how);
    }

    /// The next request gets this answer.
    pub(crate) fn answer_next(&self, code: u16, reason: &'static str) {
        self.shared
            .answers
            .lock()
            .push_back(Answer { code, reason });
    }

    /// Every request of this sort (`list`, `stream`, `watch`) or to this path gets this answer until it is healed.
    pub(crate) fn answer_all(&self, sort: &'static str, code: u16, reason: &'static str) {
        self.shared
            .always
            .lock()
            .insert(sort, Answer { code, reason });
    }

    pub(crate) fn heal(&self) {
        self.shared.always.lock().clear();
        self.shared.answers.lock().clear();
    }

    pub(crate) fn double_bookmarks(&self) {
        self.shared.double_bookmarks.store(true, Ordering::Relaxed);
    }

    /// How many bookmarks came twice.
    pub(crate) fn doubled(&self) -> usize {
        self.shared.doubled.load(Ordering::Relaxed)
    }

    /// Every page of a list takes 30 milliseconds to come.
    pub(crate) fn slow_lists(&self) {
        self.shared.slow_lists.store(true, Ordering::Relaxed);
    }

    /// Whether a list is on its way.
    pub(crate) fn is_listing(&self) -> bool {
        Arc::strong_count(&self.shared.listing) > 1
    }

    /// Every watch is opened, two milliseconds later, and is over.
    pub(crate) fn short_watches(&self) {
        self.shared.short_watches.store(true, Ordering::Relaxed);
    }

    /// How many requests of this sort there were.
    pub(crate) fn count(&self, sort: &str) -> usize {
        let log = self.shared.log.lock();
        log.iter().filter(|asked| *asked == sort).count()
    }

    /// How many watches are open now.
    pub(crate) fn open_watches(&self) -> usize {
        Arc::strong_count(&self.shared.open) - 1
    }

    fn canned(&self, sort: &str, path: &str) -> Option<Answer> {
        let next = self.shared.answers.lock().pop_front();
        let always = self.shared.always.lock();
        next.or_else(|| always.get(sort).or_else(|| always.get(path)).cloned())
    }

    /// What was asked, as it was asked.
    pub(crate) fn queries(&self) -> Vec<String> {
        self.shared.queries.lock().clone()
    }

    async fn handle(self, request: Request<Body>) -> Result<Response<WireBody>, BoxError> {
        let query = request.uri().query().unwrap_or("").to_owned();
        let sort = match (
            query.contains("watch=true"),
            query.contains("sendInitialEvents"),
        ) {
            (true, true) => "stream",
            (true, false) => "watch",
            (false, _) => "list",
        };
        self.shared.log.lock().push(sort.to_owned());
        self.shared.queries.lock().push(query);
        if let Some(answer) = self.canned(sort, request.uri().path()) {
            return Ok(refusal(&answer));
        }
        let _listing = (sort == "list").then(|| self.shared.listing.clone());
        if sort == "list" && self.shared.slow_lists.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        if sort == "watch" && self.shared.short_watches.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(2)).await;
            return Ok(Response::new(nothing()));
        }
        let response = self.service.clone().oneshot(request).await?;
        let (head, body) = response.into_parts();
        let body = body.map_err(BoxError::from).boxed_unsync();
        let body = match sort {
            "list" => body,
            _ => self.breakable(body),
        };
        Ok(Response::from_parts(head, body))
    }

    fn breakable(&self, body: WireBody) -> WireBody {
        let shared = self.shared.clone();
        let start = (Some(body), self.shared.breaks.subscribe(), VecDeque::new());
        let open = self.shared.open.clone();
        let frames = stream::unfold(start, move |(mut body, mut breaks, mut more)| {
            let shared = shared.clone();
            let _open = &open;
            async move {
                if let Some(frame) = more.pop_front() {
                    return Some((frame, (body, breaks, more)));
                }
                let open = body.as_mut()?;
                let next = tokio::select! {
                    biased;
                    Ok(how) = breaks.recv() => Err(how),
                    frame = open.frame() => Ok(frame?),
                };
                match next {
                    Ok(frame) => {
                        let double = shared.double_bookmarks.load(Ordering::Relaxed);
                        if double && let Some(again) = bookmark(&frame) {
                            shared.doubled.fetch_add(1, Ordering::Relaxed);
                            more.push_back(Ok(Frame::data(again)));
                        }
                        Some((frame, (body, breaks, more)))
                    }
                    Err(how) => Some((broken(how)?, (None, breaks, more))),
                }
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

fn bookmark(frame: &Result<Frame<Bytes>, BoxError>) -> Option<Bytes> {
    let data = frame.as_ref().ok()?.data_ref()?;
    let text = std::str::from_utf8(data).ok()?;
    text.starts_with(r#"{"type":"BOOKMARK""#)
        .then(|| data.clone())
}

fn broken(how: Break) -> Option<Result<Frame<Bytes>, BoxError>> {
    match how {
        Break::Close => None,
        Break::Reset => Some(Err("connection reset".into())),
        Break::Truncate => Some(Ok(Frame::data(Bytes::from_static(
            br#"{"type":"MODIFIED","object":{"metadata":{"name":"x"#,
        )))),
        Break::Garbage => Some(Ok(Frame::data(Bytes::from_static(b"<html>bad gateway\n")))),
    }
}

fn nothing() -> WireBody {
    let body = Full::new(Bytes::new()).map_err(|never| match never {});
    body.boxed_unsync()
}

fn refusal(answer: &Answer) -> Response<WireBody> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": answer.code, "reason": answer.reason, "message": format!("as planned: {}", answer.reason),
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(answer.code).expect("a code");
    if answer.code == 429 {
        response
            .headers_mut()
            .insert("retry-after", http::HeaderValue::from_static("1"));
    }
    response
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

/// A server with ConfigMaps in it, and a way to change them that never breaks.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) wire: Wire,
    pub(crate) maps: Api<ConfigMap>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let server = limit(Server::builder().start()).await;
        let server = server.expect("the server starts");
        let client = kube::Client::new(server.service(), "default");
        Self {
            wire: Wire::new(&server),
            maps: Api::namespaced(client, "default"),
            server,
        }
    }

    pub(crate) async fn create(&self, name: &str) {
        let map: ConfigMap = serde_json::from_value(serde_json::json!({
            "metadata": {"name": name, "labels": {"app": name}}, "data": {"n": "0"},
        }))
        .expect("it is a ConfigMap");
        let created = limit(self.maps.create(&PostParams::default(), &map)).await;
        created.expect("it is created");
    }

    pub(crate) async fn update(&self, name: &str, value: &str) {
        let mut map = limit(self.maps.get(name)).await.expect("it is there");
        map.data
            .get_or_insert_default()
            .insert("n".to_owned(), value.to_owned());
        let params = PostParams::default();
        let replaced = limit(self.maps.replace(name, &params, &map)).await;
        replaced.expect("it is replaced");
    }

    pub(crate) async fn delete(&self, name: &str) {
        let deleted = limit(self.maps.delete(name, &DeleteParams::default())).await;
        deleted.expect("it is deleted");
    }

    /// Forgets all history, so that every open watch that reconnects is too late.
    pub(crate) async fn expire(&self) {
        self.create("zz-expire").await;
        self.delete("zz-expire").await;
        let now = self.server.revision();
        self.server.compact(now).expect("it has been reached");
    }

    /// Key and version of all ConfigMaps in the namespace, from the server itself.
    pub(crate) async fn truth(&self) -> BTreeMap<Key, String> {
        let all = self
            .maps
            .list(&Default::default())
            .await
            .expect("they are listed");
        let of = |map: ConfigMap| {
            let name = map.metadata.name.expect("a name");
            (
                Key::new("default", &name),
                map.metadata.resource_version.expect("a version"),
            )
        };
        all.items.into_iter().map(of).collect()
    }
}

/// Key and version of everything in a store.
pub(crate) fn stored(reader: &Reader<ConfigMap>) -> BTreeMap<Key, String> {
    let of = |object: kubewright_cache::Cached<ConfigMap>| {
        (object.key().clone(), object.resource_version().into_owned())
    };
    reader.snapshot().iter().map(of).collect()
}

/// Waits until something is so. The clock of these tests is paused: waiting takes no time.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    for _ in 0..100_000 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

/// Makes a hundred objects, four a second, and counts those that were not heard of within a tenth of a second.
pub(crate) async fn late_ones(world: &World, heard: impl Fn(&str) -> bool) -> usize {
    let mut late = 0;
    for n in 0..100 {
        let name = format!("a{n}");
        world.create(&name).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        late += usize::from(!heard(&name));
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    late
}
