//! Discovery and OpenAPI: documents about what is served, made when first asked for and kept until that changes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use jiff::SignedDuration;
use kubewright_schema::discovery::{self, Aggregated};
use kubewright_schema::openapi::{self, Described, Source};
use kubewright_schema::{Table, catalog};
use parking_lot::Mutex;
use ring::digest::{Context, Digest, SHA512, digest};

use crate::environment::Environment;
use crate::http::accept::{Accept, DiscoveryVersion, Format, Representation};
use crate::http::body::full;
use crate::http::path::{GroupVersion, Target};
use crate::http::query::Query;
use crate::http::respond::{self, Answer};
use crate::registry::{Registry, Resources};
use crate::resource::{Nature, Served};
use crate::status::ApiError;

/// Media type of OpenAPI version 2 as protobuf, and the one that older clients ask for.
const OPENAPI_V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const OPENAPI_V2_PROTOBUF_OLD: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Documents that were asked for, each until what it is made of changes.
pub(crate) struct Documents {
    /// Resources that are measured and not stored.
    measured: &'static [catalog::Resource],
    registry: Arc<Registry>,
    environment: Environment,
    kept: Mutex<HashMap<Name, Kept>>,
}

/// A document and what it was made of.
struct Kept {
    basis: Basis,
    /// Made by whoever asks first, outside of the lock; none when there is no such document.
    document: Arc<OnceLock<Option<Document>>>,
}

/// What a document is made of.
enum Basis {
    /// Everything that is served, at this generation.
    Everything(u64),
    /// The resources of one group, or of one version of it, in order.
    Resources(Vec<Arc<Served>>),
}

impl Basis {
    fn of(resources: &Resources, name: &Name) -> Self {
        match name {
            Name::OpenApiV3(gv) => Self::Resources(resources.of(gv).cloned().collect()),
            // Discovery of one version also says which version of the group is preferred.
            Name::Resources(GroupVersion { group, .. }) | Name::Group(group)
                if !resources.has_elsewhere(group) =>
            {
                let group = resources.of_group(group);
                Self::Resources(group.flat_map(|(_, own)| own.values()).cloned().collect())
            }
            _ => Self::Everything(resources.generation),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everything(a), Self::Everything(b)) => a == b,
            (Self::Resources(a), Self::Resources(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
            }
            _ => false,
        }
    }

    /// Whether anything is left of it.
    fn is_gone(&self) -> bool {
        match self {
            Self::Everything(_) => false,
            // Of a resource that is not served any more, this is the last to know.
            Self::Resources(own) => own.iter().all(|served| Arc::strong_count(served) == 1),
        }
    }
}

/// Which document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Aggregated { core: bool, older: bool },
    CoreVersions,
    Groups,
    Group(String),
    Resources(GroupVersion),
    OpenApiV2,
    OpenApiV2Protobuf,
    OpenApiV3(GroupVersion),
}

/// A document and the hash that names its content.
#[derive(Debug, Clone)]
struct Document {
    bytes: Bytes,
    hash: Arc<str>,
}

impl Document {
    fn new(bytes: Vec<u8>) -> Self {
        Self {
            hash: hash_text(digest(&SHA512, &bytes)),
            bytes: bytes.into(),
        }
    }
}

fn hash_text(digest: Digest) -> Arc<str> {
    let bytes = digest.as_ref().iter();
    let hash: String = bytes.map(|b| format!("{b:02X}")).collect();
    hash.into()
}

impl Documents {
    /// Documents about what a registry serves.
    pub(crate) fn new(
        registry: Arc<Registry>,
        environment: Environment,
        measured: &'static [catalog::Resource],
    ) -> Self {
        Self {
            measured,
            registry,
            environment,
            kept: Mutex::default(),
        }
    }

    /// What discovery lists: all resources, and measurements where somebody can be asked for them.
    fn catalog<'a>(&self, resources: &'a Resources) -> Vec<&'a catalog::Resource> {
        let mut all = resources.catalog();
        let measured = self.measured.iter();
        all.extend(measured.filter(|resource| resources.is_here(resource)));
        all
    }

    /// What discovery lists of one group.
    fn group_catalog<'a>(
        &self,
        resources: &'a Resources,
        group: &str,
    ) -> Vec<&'a catalog::Resource> {
        let mut own = resources.group_catalog(group);
        let measured = self.measured.iter().filter(|r| *r.group == *group);
        own.extend(measured.filter(|resource| resources.is_here(resource)));
        own
    }

    fn get(
        &self,
        resources: &Resources,
        name: Name,
        make: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Document> {
        let basis = Basis::of(resources, &name);
        let document = {
            let mut kept = self.kept.lock();
            match kept.get(&name) {
                Some(known) if known.basis.is(&basis) => known.document.clone(),
                _ => {
                    kept.retain(|_, known| !known.basis.is_gone());
                    let document = Arc::<OnceLock<_>>::default();
                    let made = document.clone();
                    kept.insert(name, Kept { basis, document });
                    made
                }
            }
        };
        document.get_or_init(|| make().map(Document::new)).clone()
    }
}

/// Answers a request for a document.
pub(crate) fn answer(
    documents: &Documents,
    target: &Target,
    headers: &HeaderMap,
    query: &Query,
    accept: Result<Accept, ApiError>,
) -> Result<Answer, ApiError> {
    let resources = documents.registry.now();
    match target {
        Target::CoreVersions | Target::Groups => {
            groups(documents, &resources, target, headers, accept?)
        }
        Target::Group(group) => {
            let make = || discovery::group(&documents.group_catalog(&resources, group), group);
            let document = documents.get(&resources, Name::Group(group.clone()), make);
            Ok(plain(document, accept?.format))
        }
        Target::GroupVersion(gv) => {
            let make = || {
                let own = documents.group_catalog(&resources, &gv.group);
                discovery::resource_list(&own, &gv.group, &gv.version)
            };
            let document = documents.get(&resources, Name::Resources(gv.clone()), make);
            Ok(plain(document, accept?.format))
        }
        Target::OpenApiV2 => openapi_v2(documents, &resources, headers),
        Target::OpenApiV3Index => Ok(openapi_v3_index(documents, &resources)),
        Target::OpenApiV3(path) => Ok(openapi_v3(documents, &resources, path, headers, query)),
        _ => Ok(respond::page_not_found()),
    }
}

fn plain(document: Option<Document>, format: Format) -> Answer {
    match document {
        Some(document) => respond::json(StatusCode::OK, format, document.bytes),
        None => respond::page_not_found(),
    }
}

/// `/api` and `/apis`, aggregated when the client can read that.
fn groups(
    documents: &Documents,
    resources: &Resources,
    target: &Target,
    headers: &HeaderMap,
    accept: Accept,
) -> Result<Answer, ApiError> {
    let is_core = *target == Target::CoreVersions;
    let Representation::Discovery(version) = accept.representation else {
        let name = if is_core {
            Name::CoreVersions
        } else {
            Name::Groups
        };
        let document = documents.get(resources, name, || {
            let catalog = documents.catalog(resources);
            Some(if is_core {
                discovery::api_versions(&catalog, "127.0.0.1")
            } else {
                discovery::group_list(&catalog)
            })
        });
        let mut answer = plain(document, accept.format);
        answer
            .headers_mut()
            .insert(VARY, HeaderValue::from_static("Accept"));
        return Ok(answer);
    };
    let (aggregated, content_type) = match version {
        DiscoveryVersion::V2 => (
            Aggregated::V2,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        ),
        DiscoveryVersion::V2Beta1 => (
            Aggregated::V2Beta1,
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        ),
    };
    let name = Name::Aggregated {
        core: is_core,
        older: version == DiscoveryVersion::V2Beta1,
    };
    let document = documents.get(resources, name, || {
        let catalog = documents.catalog(resources);
        Some(if is_core {
            discovery::aggregated_core(&catalog, aggregated)
        } else {
            discovery::aggregated_groups(&catalog, aggregated)
        })
    });
    let document = document.ok_or_else(|| ApiError::internal("no discovery document"))?;
    Ok(tagged(document, content_type, headers))
}

/// An answer that the client need not take again while the content is the same.
fn tagged(document: Document, content_type: &'static str, headers: &HeaderMap) -> Answer {
    let tag = format!("\"{}\"", document.hash);
    let known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .any(|v| v.as_bytes() == tag.as_bytes());
    let mut answer = if known {
        let mut answer =
            respond::answer(StatusCode::NOT_MODIFIED, content_type, full(Bytes::new()));
        answer.headers_mut().remove(http::header::CONTENT_TYPE);
        answer
    } else {
        respond::answer(StatusCode::OK, content_type, full(document.bytes))
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer
        .headers_mut()
        .insert(VARY, HeaderValue::from_static("Accept"));
    answer
}

fn described<'a>(served: impl Iterator<Item = &'a Arc<Served>>) -> Vec<Described<'a>> {
    served
        .map(|served| Described {
            resource: &served.resource,
            source: match &served.nature {
                Nature::Builtin(_) => Source::Table,
                Nature::Custom(custom) => Source::Custom(&custom.schema),
            },
        })
        .collect()
}

fn openapi_v2(
    documents: &Documents,
    resources: &Resources,
    headers: &HeaderMap,
) -> Result<Answer, ApiError> {
    let accepted = headers
        .get(http::header::ACCEPT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("*/*");
    let form = accepted.split(',').find_map(|accepted| {
        match accepted.split(';').next().unwrap_or("").trim() {
            "application/json" | "application/*" | "*/*" => Some(Name::OpenApiV2),
            OPENAPI_V2_PROTOBUF | OPENAPI_V2_PROTOBUF_OLD => Some(Name::OpenApiV2Protobuf),
            _ => None,
        }
    });
    let form = form.ok_or_else(|| {
        ApiError::not_acceptable(format!(
            "406: Not Acceptable\n\nAvailable representations: application/json, {OPENAPI_V2_PROTOBUF}"
        ))
        .with_empty_details()
    })?;
    let make = || {
        Some(openapi::v2::document(
            Table::builtin(),
            &described(resources.all()),
        ))
    };
    let missing = || ApiError::internal("no OpenAPI document");
    let json = documents
        .get(resources, Name::OpenApiV2, make)
        .ok_or_else(missing)?;
    if form == Name::OpenApiV2 {
        return Ok(tagged(json, "application/json", headers));
    }
    let make = || {
        let document = serde_json::from_slice(&json.bytes).ok()?;
        Some(openapi::gnostic::encode(&document))
    };
    let document = documents.get(resources, form, make);
    let document = document.ok_or_else(missing)?;
    Ok(tagged(document, OPENAPI_V2_PROTOBUF, headers))
}

fn openapi_v3_document(
    documents: &Documents,
    resources: &Resources,
    gv: &GroupVersion,
) -> Option<Document> {
    documents.get(resources, Name::OpenApiV3(gv.clone()), || {
        let (group, version) = (gv.group.as_str(), gv.version.as_str());
        Some(openapi::v3::document(
            Table::builtin(),
            group,
            version,
            &described(resources.of(gv)),
        ))
    })
}

/// Names the content of the document of a group and version. Where definitions alone decide about the content it is
/// made of what they say: the documents of thousands of them need not be written for the index.
fn openapi_v3_hash(
    documents: &Documents,
    resources: &Resources,
    gv: &GroupVersion,
) -> Option<Arc<str>> {
    let mut digest = Context::new(&SHA512);
    for served in resources.of(gv) {
        let Some(custom) = served.custom() else {
            return Some(openapi_v3_document(documents, resources, gv)?.hash);
        };
        digest.update(custom.openapi_basis(&served.resource).as_ref());
    }
    Some(hash_text(digest.finish()))
}

fn openapi_v3_index(documents: &Documents, resources: &Resources) -> Answer {
    let entries = resources.group_versions().filter_map(|gv| {
        let path = openapi::v3::path(&gv.group, &gv.version);
        Some((path, openapi_v3_hash(documents, resources, gv)?))
    });
    respond::json(
        StatusCode::OK,
        Format::Json,
        openapi::v3::index(entries).into(),
    )
}

fn openapi_v3(
    documents: &Documents,
    resources: &Resources,
    path: &str,
    headers: &HeaderMap,
    query: &Query,
) -> Answer {
    let found = resources
        .group_versions()
        .find(|gv| openapi::v3::path(&gv.group, &gv.version) == path);
    let document = found.and_then(|gv| {
        let hash = openapi_v3_hash(documents, resources, gv)?;
        let document = openapi_v3_document(documents, resources, gv)?;
        Some(Document { hash, ..document })
    });
    let Some(document) = document else {
        return respond::page_not_found();
    };
    let asked = query.get("hash");
    let hash = document.hash.clone();
    let location = format!("/openapi/v3/{path}?hash={hash}");
    let mut answer = tagged(document, "application/json", headers);
    match asked {
        None => {}
        Some(asked) if *asked == *hash => {
            let year = documents
                .environment
                .now()
                .saturating_add(SignedDuration::from_hours(24 * 365));
            if let Ok(expires) = year.map_err(|_| ()).and_then(|t| http_date(t).ok_or(())) {
                answer.headers_mut().insert(EXPIRES, expires);
            }
            answer
                .headers_mut()
                .insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        }
        // The content has changed since the client read the index: show it the new address.
        Some(_) => {
            *answer.status_mut() = StatusCode::MOVED_PERMANENTLY;
            *answer.body_mut() = full(Bytes::new());
            if let Ok(location) = HeaderValue::from_str(&location) {
                answer.headers_mut().insert(LOCATION, location);
            }
        }
    }
    answer
}

fn http_date(at: jiff::Timestamp) -> Option<HeaderValue> {
    let text = jiff::fmt::strtime::format("%a, %d %b %Y %H:%M:%S GMT", at).ok()?;
    HeaderValue::from_str(&text).ok()
}

/// The paths of `/`.
pub(crate) fn index(documents: &Documents) -> Answer {
    let resources = documents.registry.now();
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for gv in resources.group_versions() {
        let path = catalog::api_version(&gv.group, &gv.version);
        if gv.group.is_empty() {
            paths.push(format!("/api/{path}"));
        } else {
            paths.extend([format!("/apis/{}", gv.group), format!("/apis/{path}")]);
        }
    }
    for path in [
        "/.well-known/openid-configuration",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ] {
        paths.push(path.to_owned());
    }
    paths.sort();
    paths.dedup();
    respond::value(
        StatusCode::OK,
        Format::PrettyJson,
        &serde_json::json!({ "paths": paths }),
    )
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;
    use crate::registry::Defined;
    use crate::resource::Incarnation;
    use crate::storage::{HistoryLimits, Store};

    #[test]
    fn a_document_is_made_anew_when_what_it_is_made_of_changes() {
        let store = Store::new(Environment::default(), HistoryLimits::default());
        let registry = Arc::new(Registry::builtin(&store));
        let documents = Documents::new(registry.clone(), Environment::default(), &[]);
        let made = Cell::new(0);
        let apps = || {
            Name::OpenApiV3(GroupVersion {
                group: "apps".into(),
                version: "v1".into(),
            })
        };
        let get = |name: Name| {
            let make = || {
                made.set(made.get() + 1);
                Some(Vec::new())
            };
            documents
                .get(&registry.now(), name, make)
                .expect("a document");
            made.get()
        };
        assert_eq!((get(apps()), get(apps())), (1, 1), "made once");
        assert_eq!((get(Name::OpenApiV2), get(Name::OpenApiV2)), (2, 2));
        let defined = Arc::new(Defined {
            incarnation: Arc::new(Incarnation::of(&json!({}))),
            versions: Vec::new(),
        });
        registry.define("widgets.example.com", Some(defined), 1);
        assert_eq!(get(apps()), 2, "nothing has changed in its group");
        assert_eq!(get(Name::OpenApiV2), 3, "this one is about everything");
    }
}
