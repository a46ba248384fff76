//! The aggregation layer: groups and versions that another server answers for, by an APIService with a Service.
//!
//! A request is authenticated and authorized here and passed on with its caller's identity in the headers that
//! `extension-apiserver-authentication` names (`kube-aggregator/pkg/apiserver/handler_proxy.go`). Which there are follows
//! the stored APIServices, as everything that is derived from objects does. Requests that change the protocol, such as
//! `exec`, are not passed on.

mod discovery;
mod headers;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;

use crate::auth::User;
use crate::callout::{
    Callout, ClientIdentity, InvalidTarget, ServerTrust, Target as CalloutTarget,
};
use crate::http::head::Head;
use crate::http::path::{GroupVersion, Target};
use crate::http::respond::Answer;
use crate::pki::{FrontProxy, PkiError};
use crate::status::ApiError;
use crate::storage::{Change, Event, Record};

pub(crate) use discovery::resources as discovered;
pub(crate) use headers::REQUEST_HEADERS;

/// The collection of APIServices.
pub(crate) const COLLECTION: &str = "apiregistration.k8s.io/apiservices";

/// The groups and versions that other servers answer for.
#[derive(Debug, Default)]
pub(crate) struct Aggregation {
    remotes: RwLock<BTreeMap<GroupVersion, Arc<Remote>>>,
    /// Notified when one comes, changes or goes.
    pub(crate) changed: Notify,
    /// Made when it is first needed.
    front_proxy: OnceLock<FrontProxy>,
}

/// One group and version that another server answers for.
#[derive(Debug)]
pub(crate) struct Remote {
    /// The name of its APIService.
    pub(crate) name: String,
    pub(crate) gv: GroupVersion,
    /// The APIService's spec, to tell one from another.
    spec: ApiServiceSpec,
    target: Result<CalloutTarget, InvalidTarget>,
}

/// An APIService as far as this is concerned with it.
#[derive(Deserialize)]
struct StoredApiService {
    metadata: StoredName,
    spec: ApiServiceSpec,
}

#[derive(Deserialize)]
struct StoredName {
    name: String,
}

/// The spec of an APIService.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ApiServiceSpec {
    group: String,
    version: String,
    service: Option<Value>,
    ca_bundle: String,
    #[serde(rename = "insecureSkipTLSVerify")]
    insecure_skip_tls_verify: bool,
}

impl Remote {
    /// What an APIService comes to; nothing for those that this server answers for.
    fn of(StoredApiService { metadata, spec }: StoredApiService) -> Option<Self> {
        let service = spec.service.as_ref()?;
        let trusted = if spec.insecure_skip_tls_verify {
            ServerTrust::Anybody
        } else {
            ServerTrust::Bundle(&spec.ca_bundle)
        };
        Some(Self {
            name: metadata.name,
            gv: GroupVersion::new(&spec.group, &spec.version),
            target: CalloutTarget::behind(service, trusted),
            spec,
        })
    }
}

impl Aggregation {
    /// What the stored APIServices come to.
    pub(crate) fn read<'a>(records: impl Iterator<Item = &'a Arc<Record>>) -> Self {
        let found = Self::default();
        for remote in records.filter_map(|record| read(record)) {
            found.put(remote);
        }
        found
    }

    /// Follows one change of an APIService. Called under the store's lock.
    pub(crate) fn apply(&self, event: &Event) {
        let before = event.previous().and_then(|record| read(record));
        let after = match event.change() {
            Change::Deleted { .. } => None,
            Change::Created | Change::Updated { .. } => read(event.record()),
        };
        let gone = before.filter(|before| after.as_ref().is_none_or(|after| after.gv != before.gv));
        if let Some(gone) = gone {
            self.remove(&gone);
        }
        if let Some(after) = after {
            self.put(after);
        }
    }

    /// Puts what follows from other objects in place of everything.
    pub(crate) fn replace(&self, other: &Self) {
        *self.remotes.write() = other.remotes.read().clone();
        self.changed.notify_one();
    }

    fn put(&self, remote: Remote) {
        let mut remotes = self.remotes.write();
        let known = remotes.get(&remote.gv);
        // Its status is written often, and changes nothing here.
        if known.is_none_or(|known| known.spec != remote.spec) {
            remotes.insert(remote.gv.clone(), Arc::new(remote));
            self.changed.notify_one();
        }
    }

    /// Forgets who answered. Another APIService may say the same group and version in a data directory of old; then the
    /// route is that one's.
    fn remove(&self, gone: &Remote) {
        let mut remotes = self.remotes.write();
        let is_its = |known: &Arc<Remote>| known.name == gone.name;
        if remotes.get(&gone.gv).is_some_and(is_its) {
            remotes.remove(&gone.gv);
            self.changed.notify_one();
        }
    }

    /// All that there are, in order.
    pub(crate) fn all(&self) -> Vec<Arc<Remote>> {
        self.remotes.read().values().cloned().collect()
    }

    /// Who answers a request for this, if not this server.
    pub(crate) fn find(&self, target: &Target) -> Option<Arc<Remote>> {
        let gv = match target {
            Target::Resource(path) => &path.gv,
            Target::GroupVersion(gv) => gv,
            _ => return None,
        };
        self.remotes.read().get(gv).cloned()
    }

    /// By which certificate other servers know this one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn front_proxy(&self) -> Result<&FrontProxy, PkiError> {
        if let Some(known) = self.front_proxy.get() {
            return Ok(known);
        }
        let made = FrontProxy::generate()?;
        // Of two who make one at the same time, the first decides.
        Ok(self.front_proxy.get_or_init(|| made))
    }

    /// What tells one state from another, for tests that compare.
    pub(crate) fn describe(&self) -> String {
        let remotes = self.all();
        let lines = remotes.iter().map(|r| format!("{} {:?}", r.name, r.spec));
        lines.collect::<Vec<_>>().join(" ")
    }

    /// Passes a request on to whoever answers for it.
    ///
    /// # Errors
    /// 503 when nobody can be reached.
    pub(crate) async fn pass_on(
        &self,
        callout: &Callout,
        remote: &Remote,
        request: Forwarded<'_>,
    ) -> Result<Answer, ApiError> {
        let unavailable = |why: &dyn std::fmt::Display| {
            ApiError::service_unavailable(format!("error trying to reach service: {why}"))
        };
        let target = remote.target.as_ref().map_err(|why| unavailable(why))?;
        let request = request.build(target)?;
        let front_proxy = self.front_proxy().map_err(ApiError::internal)?;
        let identity = ClientIdentity(front_proxy.identity.clone());
        let answered = callout.pass_on(target, &identity, request).await;
        let mut answer = answered.map_err(|why| unavailable(&why))?;
        headers::remove_hop_by_hop(answer.headers_mut());
        Ok(answer)
    }
}

/// What a stored APIService comes to, if another server answers for it.
fn read(record: &Record) -> Option<Remote> {
    let api_service = serde_json::from_slice(record.body()).ok()?;
    Remote::of(api_service)
}

/// A request that is to be passed on.
pub(crate) struct Forwarded<'a> {
    pub(crate) method: http::Method,
    pub(crate) uri: &'a http::Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) user: &'a User,
    pub(crate) body: Bytes,
}

impl<'a> Forwarded<'a> {
    /// A request of a client.
    pub(crate) fn of(head: &'a Head, user: &'a User, body: Bytes) -> Self {
        Self {
            method: head.method.clone(),
            uri: &head.uri,
            headers: &head.headers,
            user,
            body,
        }
    }

    fn build(self, target: &CalloutTarget) -> Result<Request<Full<Bytes>>, ApiError> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let path = path.parse().map_err(ApiError::internal)?;
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = path;
        *request.headers_mut() = headers::passed_on(self.headers, self.user, &target.authority);
        Ok(request)
    }
}
