//! The service: a request comes in, an answer goes out. In-process calls and sockets meet here.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use hyper::upgrade::OnUpgrade;
use tower_service::Service;

use crate::access::audit::{Exchange, Trail};
use crate::access::{Attributes, Decision, impersonate, token};
use crate::aggregation::Forwarded;
use crate::api::{self, ObjectRequest};
use crate::auth::{self, Caller, User};
use crate::connection::{Distance, Stranger};
use crate::core::Core;
use crate::documents;
use crate::flow::{self, Classified, FlowId, Holdings, Receiver, Seat};
use crate::health;
use crate::http::accept::{Accept, Protobuf};
use crate::http::body::{self, ResponseBody};
use crate::http::compress;
use crate::http::head::{Head, names_its_host};
use crate::http::path::{ResourcePath, Target};
use crate::http::query::Query;
use crate::http::respond::{self, Answer};
use crate::http::streaming::Tunnel;
use crate::http::websocket::Upgraded;
use crate::request::{RequestInfo, Warnings};
use crate::status::ApiError;

/// Objects for which a list takes a seat, and the most seats that it takes, as in Kubernetes.
const OBJECTS_PER_SEAT: usize = 100;
const WIDEST: usize = 10;

/// Answers requests. Cheap to clone; clones answer for the same server.
///
/// It takes any HTTP request and never fails: what goes wrong is in the answer.
#[derive(Clone)]
pub struct ApiService {
    core: Arc<Core>,
    caller: Caller,
    stranger: Option<Stranger>,
    distance: Distance,
    /// Where a connection that can be upgraded finds what it goes on with.
    upgraded: Option<Upgraded>,
}

/// What became known of a request while it was answered, and goes into its answer or the audit log.
#[derive(Default)]
struct Notes {
    warnings: Warnings,
    trail: Trail,
    flow: Option<Classified>,
}

impl Notes {
    /// The flow of the request; none when it is exempt.
    fn flow(&self) -> Option<&FlowId> {
        self.flow.as_ref().and_then(|found| found.flow.as_ref())
    }
}

impl ApiService {
    /// A service for calls from inside the process.
    pub(crate) fn in_process(core: Arc<Core>, caller: Caller) -> Self {
        Self {
            core,
            caller,
            stranger: None,
            distance: Distance::SameMachine,
            upgraded: None,
        }
    }

    /// The service of one connection.
    pub(crate) fn for_connection(
        &self,
        caller: Caller,
        stranger: Stranger,
        distance: Distance,
        upgraded: Upgraded,
    ) -> Self {
        Self {
            core: self.core.clone(),
            caller,
            stranger: Some(stranger),
            distance,
            upgraded: Some(upgraded),
        }
    }

    async fn handle<B>(self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let (mut parts, body) = request.into_parts();
        let upgrade = parts.extensions.remove::<OnUpgrade>();
        // Callers in this process have no host to name.
        if self.stranger.is_some() && !names_its_host(&parts) {
            return respond::one_host_required();
        }
        let head = Head::new(parts);
        let query = Query::parse(head.uri.query().unwrap_or(""));
        let (query, fault) = match query {
            Ok(query) => (query, None),
            Err(fault) => (Query::default(), Some(fault)),
        };
        let info = RequestInfo::new(&head, query);
        let audit_id = self.core.environment.uid();
        let received = self.core.environment.now();
        let mut notes = Notes::default();
        let routed = match fault {
            None => self.route(&head, &info, body, &mut notes).await,
            // Anonymous clients do not learn what is wrong with their query.
            Some(fault) => self
                .identify(&head, &info, &mut notes.trail)
                .and(Err(fault)),
        };
        let routed = match &self.upgraded {
            Some(upgraded) => {
                routed.and_then(|answer| upgraded.offer(&head.headers, upgrade, answer))
            }
            None => routed.and_then(|answer| match answer.extensions().get::<Tunnel>() {
                Some(tunnel) => tunnel.accept(&head.headers, None).map(|(answer, _)| answer),
                None => Ok(answer),
            }),
        };
        let mut answer = match routed {
            Ok(answer) => answer,
            Err(error) => {
                // Without the text: it may repeat what the client sent, and that may be secret.
                tracing::debug!(method = %head.method, path = head.uri.path(), code = %error.code(), reason = error.reason(), "refused");
                respond::failure(&error, head.error_format(&info.query))
            }
        };
        let decision = notes.trail.decision.as_ref();
        if decision.is_some_and(|decision| !decision.allowed) {
            respond::no_sniff(&mut answer);
        }
        if let Some(flow) = &notes.flow {
            respond::name_flow(&mut answer, &flow.schema_uid, &flow.level_uid);
        }
        if let Some(audit) = &self.core.access.audit {
            let exchange = Exchange {
                id: &audit_id,
                head: &head,
                asked: Attributes::of_request(&info),
                trail: &notes.trail,
                code: answer.status().as_u16(),
                received,
            };
            audit.record(&exchange, &self.core.environment);
        }
        respond::finish(&mut answer, &audit_id, &notes.warnings.to_vec());
        match self.distance {
            Distance::SameMachine => answer,
            Distance::Network => compress::compress(&head.headers, answer),
        }
    }

    /// The filters of every request, in the order of Kubernetes but for one: a request is authorized before it waits for
    /// a seat, so that its body, which comes before the seat, is read from those alone who may send it.
    async fn route<B>(
        &self,
        head: &Head,
        info: &RequestInfo<'_>,
        body: B,
        notes: &mut Notes,
    ) -> Result<Answer, ApiError>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let user = self.identify(head, info, &mut notes.trail)?;
        let asked = Attributes::of_request(info);
        // A cluster in one process has nothing to gain when its own components wait for each other.
        if !matches!(self.caller, Caller::Component(_)) {
            notes.flow = self.core.flow.classify(&user, &asked);
        }
        self.authorize(&asked, &user, &mut notes.trail)?;
        if let Some(remote) = self.core.derived.aggregation.find(&info.target) {
            let mut charge = notes.flow().map(|_| self.core.flow.charge(&user));
            if let Some(charge) = &mut charge {
                charge.begin()?;
            }
            let bytes = body::read(&head.headers, body, charge.as_mut()).await?;
            let _seat = self.seat(notes.flow(), 1).await?;
            let request = Forwarded::of(head, &user, bytes);
            return self.core.pass_on(&remote, request).await;
        }
        match &info.target {
            Target::Resource(path) => {
                let width = self.width(&asked, path, &info.query);
                let request = ObjectRequest {
                    info,
                    headers: &head.headers,
                    user,
                    warnings: notes.warnings.clone(),
                };
                self.objects(request, width, body, notes.flow()).await
            }
            _ if !info.reads() => Err(ApiError::method_not_allowed()),
            Target::Health(path) => Ok(health::health(&self.core, path, &info.query)),
            target => {
                let _seat = self.seat(notes.flow(), 1).await?;
                self.about_the_server(target, head, &info.query).await
            }
        }
    }

    /// Answers what is asked about the server rather than its objects.
    async fn about_the_server(
        &self,
        target: &Target,
        head: &Head,
        query: &Query,
    ) -> Result<Answer, ApiError> {
        match target {
            Target::Index => Ok(documents::index(&self.core.documents)),
            Target::Version => Ok(health::version()),
            Target::Metrics => Ok(health::metrics(&self.core)),
            Target::OpenIdConfiguration => Ok(token::configuration(&self.core.access.issuer)),
            Target::OpenIdKeys => Ok(token::keys(&self.core.access.issuer)),
            Target::Unknown => Ok(respond::page_not_found()),
            document => {
                let accept = Accept::read(&head.headers, query, Protobuf::Objects);
                let (core, document) = (self.core.clone(), document.clone());
                let (headers, query) = (head.headers.clone(), query.clone());
                let make =
                    move || documents::answer(&core.documents, &document, &headers, &query, accept);
                // A description of all kinds takes a while to write.
                match target {
                    Target::OpenApiV2 | Target::OpenApiV3Index | Target::OpenApiV3(_) => {
                        self.core.flow.slices.offload(make).await
                    }
                    _ => make(),
                }
            }
        }
    }

    /// Who is calling, and as whom.
    fn identify(
        &self,
        head: &Head,
        info: &RequestInfo<'_>,
        trail: &mut Trail,
    ) -> Result<User, ApiError> {
        let service_account = |token: &str| self.core.token_checker().service_account(token);
        let user = auth::authenticate(
            &self.core.tokens,
            service_account,
            &self.caller,
            head,
            &info.target,
        )?;
        // Whoever asks for the health of the server has not said who they are and stays a stranger.
        if let Some(stranger) = self.stranger.as_ref().filter(|_| !user.is_anonymous()) {
            stranger.vouch();
        }
        let other = impersonate(&self.core.access, &user, &head.headers);
        if let Err(error) = &other
            && error.code() == StatusCode::FORBIDDEN
        {
            trail.decision = Some(Decision::forbidden());
        }
        if self.core.access.audit.is_some() {
            trail.user = Some(user.clone());
            trail.impersonated = other.as_ref().ok().cloned().flatten();
        }
        Ok(other?.unwrap_or(user))
    }

    /// Whether the user may do what is asked.
    fn authorize(
        &self,
        asked: &Attributes<'_>,
        user: &User,
        trail: &mut Trail,
    ) -> Result<(), ApiError> {
        let access = &self.core.access;
        // What is allowed anyway needs no words, but for those that are written down.
        if access.audit.is_none() && access.is_unrestricted(user) {
            return Ok(());
        }
        if access.audit.is_none() && access.allows(user, asked) {
            return Ok(());
        }
        let decision = access.decide(user, asked);
        let result = if decision.allowed {
            Ok(())
        } else {
            Err(asked.forbidden(user, &decision.reason))
        };
        trail.decision = Some(decision);
        result
    }

    /// Waits for a seat, unless the request is exempt.
    async fn seat(&self, flow: Option<&FlowId>, width: usize) -> Result<Option<Seat>, ApiError> {
        match flow {
            Some(id) => Ok(Some(self.core.flow.seat(id, width).await?)),
            None => Ok(None),
        }
    }

    /// How many seats a request takes. A list, or a watch that begins with one, takes more than others: a seat for a
    /// hundred objects, as in `list_work_estimator.go`.
    fn width(&self, asked: &Attributes<'_>, path: &ResourcePath, query: &Query) -> usize {
        let begins_with_list = || {
            matches!(query.get("resourceVersion"), None | Some("0"))
                || query.flag("sendInitialEvents")
        };
        let lists = match &*asked.verb {
            "list" => true,
            "watch" => begins_with_list(),
            _ => false,
        };
        if !lists || asked.is_about_one() {
            return 1;
        }
        let limit = query.get("limit").and_then(|limit| limit.parse().ok());
        let limit = limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let objects = self.core.registry.now().count(&path.gv, &path.resource);
        objects
            .min(limit)
            .div_ceil(OBJECTS_PER_SEAT)
            .clamp(1, WIDEST)
    }

    /// Answers a request for objects. Its body arrives before it takes a seat: a body that never comes keeps nobody out.
    async fn objects<B>(
        &self,
        request: ObjectRequest<'_>,
        width: usize,
        body: B,
        flow: Option<&FlowId>,
    ) -> Result<Answer, ApiError>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let core = &self.core;
        let mut charge = flow.map(|_| core.flow.charge(&request.user));
        if let Some(charge) = &mut charge {
            charge.begin()?;
        }
        let bytes = if request.info.reads() {
            Bytes::new()
        } else {
            body::read(request.headers, body, charge.as_mut()).await?
        };
        let seat = self.seat(flow, width).await?;
        let answer = Box::pin(api::dispatch(core, request, bytes));
        let (answer, seat) = match seat {
            Some(seat) => flow::with_seat(seat, answer).await,
            None => (answer.await, None),
        };
        flow::send(answer?, Holdings { seat, charge }, self.receiver())
    }

    fn receiver(&self) -> Receiver {
        match self.stranger {
            Some(_) => Receiver::Socket,
            None => Receiver::InProcess,
        }
    }
}

impl<B> Service<Request<B>> for ApiService
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}

impl std::fmt::Debug for ApiService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiService")
    }
}
