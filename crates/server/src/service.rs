//! The service: a request comes in, an answer goes out. In-process calls and sockets meet here.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use crate::access::audit::{Exchange, Trail};
use crate::access::{Attributes, Decision, impersonate, token};
use crate::api;
use crate::auth::{self, Caller, User};
use crate::core::{Core, Load};
use crate::documents;
use crate::health;
use crate::http::accept::{Accept, Format, Protobuf};
use crate::http::body::{self, ResponseBody};
use crate::http::compress;
use crate::http::path::{self, Target};
use crate::http::query::Query;
use crate::http::respond::{self, Answer};
use crate::listen::Stranger;
use crate::request::RequestInfo;
use crate::status::ApiError;

/// Answers requests. Cheap to clone; clones answer for the same server.
///
/// It takes any HTTP request and never fails: what goes wrong is told in the answer.
#[derive(Clone)]
pub struct ApiService {
    core: Arc<Core>,
    caller: Caller,
    stranger: Option<Stranger>,
    distance: Distance,
}

/// How far away a client is. Compression costs more than it saves on the same machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distance {
    SameMachine,
    Network,
}

impl ApiService {
    /// A service for calls from inside the process.
    pub(crate) fn in_process(core: Arc<Core>, caller: Caller) -> Self {
        Self {
            core,
            caller,
            stranger: None,
            distance: Distance::SameMachine,
        }
    }

    /// The service of one connection.
    pub(crate) fn for_connection(
        &self,
        caller: Caller,
        stranger: Stranger,
        distance: Distance,
    ) -> Self {
        Self {
            core: self.core.clone(),
            caller,
            stranger: Some(stranger),
            distance,
        }
    }

    async fn handle<B>(self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let audit_id = self.core.environment.uid();
        let received = self.core.environment.now();
        let mut warnings = Vec::new();
        let mut trail = Trail::default();
        let result = self.route(&parts, body, &mut warnings, &mut trail);
        let mut answer = match result.await {
            Ok(answer) => answer,
            Err(error) => {
                // Without the text: it may repeat what the client sent, and that may be secret.
                tracing::debug!(method = %parts.method, path = parts.uri.path(), code = %error.code(), reason = error.reason(), "refused");
                respond::failure(&error, error_format(&parts))
            }
        };
        if trail
            .decision
            .as_ref()
            .is_some_and(|decision| !decision.allowed)
        {
            respond::no_sniff(&mut answer);
        }
        self.write_down(&parts, &audit_id, received, &trail, &answer);
        respond::finish(&mut answer, &audit_id, &warnings);
        match self.distance {
            Distance::SameMachine => answer,
            Distance::Network => compress::compress(&parts.headers, answer),
        }
    }

    async fn route<B>(
        &self,
        parts: &Parts,
        body: B,
        warnings: &mut Vec<String>,
        trail: &mut Trail,
    ) -> Result<Answer, ApiError>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let target = path::parse(parts.uri.path());
        let user = self.identify(parts, &target, trail)?;
        let query = Query::parse(parts.uri.query().unwrap_or(""))?;
        let info = RequestInfo::new(parts, target, query);
        self.authorize(&info, &user, trail)?;
        let query = match &info.target {
            Target::Resource(_) => return self.objects(parts, info, user, body, warnings).await,
            _ if !info.reads() => return Err(ApiError::method_not_allowed()),
            _ => info.query,
        };
        match info.target {
            Target::Index => Ok(documents::index(&self.core)),
            Target::Health(path) => Ok(health::health(&self.core, &path, &query)),
            Target::Version => Ok(health::version()),
            Target::Metrics => Ok(health::metrics(&self.core)),
            Target::OpenIdConfiguration => Ok(token::configuration(&self.core.access.issuer)),
            Target::OpenIdKeys => Ok(token::keys(&self.core.access.issuer)),
            Target::Unknown | Target::Resource(_) => Ok(respond::page_not_found()),
            document => {
                let accept = Accept::read(&parts.headers, &query, Protobuf::Objects);
                documents::answer(&self.core, &document, &parts.headers, &query, accept)
            }
        }
    }

    /// Who is calling, and as whom.
    fn identify(
        &self,
        parts: &Parts,
        target: &Target,
        trail: &mut Trail,
    ) -> Result<User, ApiError> {
        let service_account = |token: &str| self.core.service_account(token);
        let user = auth::authenticate(
            &self.core.tokens,
            service_account,
            &self.caller,
            &parts.headers,
            target,
        )?;
        // Whoever asks for the health of the server has not said who they are and stays a stranger.
        if let Some(stranger) = self.stranger.as_ref().filter(|_| !user.is_anonymous()) {
            stranger.vouch();
        }
        let other = impersonate(&self.core.access, &user, &parts.headers);
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
        info: &RequestInfo<'_>,
        user: &User,
        trail: &mut Trail,
    ) -> Result<(), ApiError> {
        let access = &self.core.access;
        // What is allowed anyway needs no words, but for those that are written down.
        if access.audit.is_none() && access.is_unrestricted(user) {
            return Ok(());
        }
        let asked = Attributes::of_request(info);
        if access.audit.is_none() && access.allows(user, &asked) {
            return Ok(());
        }
        let decision = access.decide(user, &asked);
        let result = match decision.allowed {
            true => Ok(()),
            false => Err(asked.forbidden(user, &decision.reason)),
        };
        trail.decision = Some(decision);
        result
    }

    /// Writes the exchange into the audit log, if there is one.
    fn write_down(
        &self,
        parts: &Parts,
        id: &str,
        received: jiff::Timestamp,
        trail: &Trail,
        answer: &Answer,
    ) {
        let Some(audit) = &self.core.access.audit else {
            return;
        };
        let query = Query::parse(parts.uri.query().unwrap_or("")).unwrap_or_default();
        let info = RequestInfo::new(parts, path::parse(parts.uri.path()), query);
        let exchange = Exchange {
            id,
            parts,
            asked: Attributes::of_request(&info),
            trail,
            code: answer.status().as_u16(),
            received,
        };
        audit.record(&exchange, &self.core.environment);
    }

    async fn objects<B>(
        &self,
        parts: &Parts,
        info: RequestInfo<'_>,
        user: User,
        body: B,
        warnings: &mut Vec<String>,
    ) -> Result<Answer, ApiError>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let load = match info.reads() {
            true => Load::Read,
            false => Load::Write,
        };
        // Held until the answer is made, not until it is sent: a watch or a slow reader keeps nobody out.
        let _place = self.core.admit(load)?;
        let bytes = match load {
            Load::Read => Bytes::new(),
            Load::Write => body::read(&parts.headers, body).await?,
        };
        api::dispatch(&self.core, info, &parts.headers, user, bytes, warnings).await
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

/// Refusals are written for whoever asked, even when the question could not be read.
fn error_format(parts: &Parts) -> Format {
    let query = Query::parse(parts.uri.query().unwrap_or("")).unwrap_or_default();
    let accept = Accept::read(&parts.headers, &query, Protobuf::Objects);
    if accept.is_ok_and(|accept| accept.format == Format::Protobuf) {
        return Format::Protobuf;
    }
    let json_only = HeaderMap::from_iter(
        parts
            .headers
            .get(http::header::USER_AGENT)
            .map(|agent| (http::header::USER_AGENT, agent.clone())),
    );
    Accept::read(&json_only, &query, Protobuf::Objects).map_or(Format::Json, |accept| accept.format)
}
