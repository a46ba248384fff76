//! The program of the parts: each serves its picture, and the entry the page that lays them over each other.
//!
//! | path | answer |
//! |---|---|
//! | `/healthz`, `/readyz` | `ok` |
//! | `/part.svg` | the picture of this part, with its version and pod in the headers |
//! | `/` | the page; of the entry alone |
//! | `/parts/NAME.svg` | the picture of another part, fetched from its Service; of the entry alone |

mod client;
pub mod figure;
mod listen;
mod page;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use tokio::task::JoinSet;

use crate::part::Part;
use client::Fetched;
pub use listen::serve;

/// The header that says which version a picture is of.
pub const VERSION: &str = "x-podtato-version";
/// The header that says which pod drew a picture.
pub const POD: &str = "x-podtato-pod";
/// Who a server is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The part that it serves.
    pub part: Part,
    /// The version, which says what the part looks like.
    pub version: String,
    /// The name of the app, which the Services of the parts begin with.
    pub app: String,
    /// The name of the pod.
    pub pod: String,
}

/// Answers one request. The entry asks the other parts.
pub async fn answer(identity: &Identity, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    }
    let is_entry = identity.part == Part::Entry;
    match path {
        "/healthz" | "/readyz" => text(StatusCode::OK, "ok"),
        "/part.svg" => picture(own(identity)),
        "/" if is_entry => page(identity).await,
        _ if is_entry => match path.strip_prefix("/parts/").and_then(named) {
            Some(part) => match fetch(identity, part).await {
                Some(fetched) => picture(fetched),
                None => text(StatusCode::BAD_GATEWAY, "the part does not answer"),
            },
            None => text(StatusCode::NOT_FOUND, "not found"),
        },
        _ => text(StatusCode::NOT_FOUND, "not found"),
    }
}

fn named(file: &str) -> Option<Part> {
    Part::find(file.strip_suffix(".svg")?)
}

/// The picture of this part.
fn own(identity: &Identity) -> Fetched {
    Fetched {
        version: identity.version.clone(),
        pod: identity.pod.clone(),
        picture: Bytes::from(figure::draw(identity.part, &identity.version)),
    }
}

async fn fetch(identity: &Identity, part: Part) -> Option<Fetched> {
    if part == identity.part {
        return Some(own(identity));
    }
    client::fetch(&crate::desired::name(&identity.app, part)).await
}

/// Asks all parts at once, and shows those that answer.
async fn page(identity: &Identity) -> Response<Full<Bytes>> {
    let mut asked = JoinSet::new();
    for part in Part::ALL {
        let identity = identity.clone();
        asked.spawn(async move { (part, fetch(&identity, part).await) });
    }
    let mut parts: Vec<(Part, Option<Fetched>)> = asked.join_all().await;
    parts.sort_by_key(|(part, _)| *part);
    let html = page::render(&identity.app, &parts);
    respond(
        StatusCode::OK,
        "text/html; charset=utf-8",
        Bytes::from(html),
    )
}

fn picture(fetched: Fetched) -> Response<Full<Bytes>> {
    let mut response = respond(StatusCode::OK, "image/svg+xml", fetched.picture);
    for (name, value) in [(VERSION, fetched.version), (POD, fetched.pod)] {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    respond(
        status,
        "text/plain; charset=utf-8",
        Bytes::from_static(text.as_bytes()),
    )
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, http::HeaderValue::from_static("no-store"));
    response
}
