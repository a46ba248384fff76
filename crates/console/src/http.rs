//! Answers: bodies that are whole or come piece by piece, and errors as JSON.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cluster::ClusterError;
use crate::session::Refusal;

/// The body of any answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Why a request of the page is not answered with what it asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("{0}")]
    BadRequest(String),
    #[error("{message}")]
    Unreadable { message: String, line: Option<u64> },
    #[error("the content type must be application/json")]
    ContentType,
    #[error("there is no such page")]
    NotFound,
    #[error("the console was started read-only")]
    ReadOnly,
}

impl Problem {
    fn status(&self) -> StatusCode {
        match self {
            Self::Refused(Refusal::Unauthenticated) => StatusCode::UNAUTHORIZED,
            Self::Refused(Refusal::WrongHost) => StatusCode::MISDIRECTED_REQUEST,
            Self::Refused(Refusal::CrossOrigin) | Self::ReadOnly => StatusCode::FORBIDDEN,
            // The page has its own 401: that of the cluster means that the user's credentials are not accepted there.
            Self::Cluster(error) if error.code == 401 => StatusCode::BAD_GATEWAY,
            Self::Cluster(error) => {
                StatusCode::from_u16(error.code).unwrap_or(StatusCode::BAD_GATEWAY)
            }
            Self::BadRequest(_) | Self::Unreadable { .. } => StatusCode::BAD_REQUEST,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotFound => StatusCode::NOT_FOUND,
        }
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let causes = match &self {
            Self::Cluster(error) => json!(error.causes),
            _ => json!([]),
        };
        let line = match &self {
            Self::Unreadable { line, .. } => *line,
            _ => None,
        };
        let body = json!({"message": self.to_string(), "causes": causes, "line": line});
        whole(self.status(), "application/json", body.to_string().into())
    }
}

/// An answer that is there at once.
pub(crate) fn whole(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// JSON, with success.
pub(crate) fn json_of(value: &impl Serialize) -> Response<Body> {
    let body = serde_json::to_vec(value).unwrap_or_default();
    whole(StatusCode::OK, "application/json", body.into())
}

/// An answer whose pieces come through a channel. The tasks that write to it end with it.
pub(crate) fn pieces(
    content_type: &'static str,
    pieces: mpsc::Receiver<Bytes>,
    tasks: JoinSet<()>,
) -> Response<Body> {
    let body = Pieces {
        pieces,
        _tasks: tasks,
    };
    let mut response = Response::new(body.boxed_unsync());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    _tasks: JoinSet<()>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.pieces
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
