//! The log of a container: whole, its end, or as it grows.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::api::call::Call;
use crate::http::body::full;
use crate::http::respond::{self, Answer};
use crate::logs::{LogLine, LogOf, LogPiece, LogRun, MoreLog, NoLog, PodLogs};
use crate::status::ApiError;

const TEXT: &str = "text/plain";

/// What of a log is wanted.
struct Wanted {
    follow: bool,
    timestamps: bool,
    since: Option<Timestamp>,
    tail: Option<usize>,
    bytes: Option<usize>,
}

/// Answers with the log of a container.
pub(crate) fn log(call: &Call) -> Result<Answer, ApiError> {
    let record = call
        .served
        .collection
        .get(&call.key())
        .ok_or_else(|| call.not_found())?;
    let pod = call.served.revive(&record)?;
    let wanted = Wanted::read(call)?;
    let container = container(&call.name, call.query.get("container"), &pod)?;
    let node = pod["spec"]["nodeName"].as_str().unwrap_or("");
    let Some(logs) = &call.core.pod_logs else {
        return Err(no_provider(call, node));
    };
    if node.is_empty() {
        // Nothing can have been written yet.
        return Ok(respond::answer(StatusCode::OK, TEXT, full(Bytes::new())));
    }
    let of = LogOf {
        namespace: call.namespace.clone().unwrap_or_default(),
        pod: call.name.clone(),
        uid: pod["metadata"]["uid"].as_str().unwrap_or("").to_owned(),
        node: node.to_owned(),
        container,
        run: if call.query.flag("previous") {
            LogRun::Previous
        } else {
            LogRun::Current
        },
    };
    let first = logs.read(&of, 0).map_err(|why| refusal(&of, &why))?;
    let reader = Reader::new(logs.clone(), of, wanted, first, call.core.stopping.clone());
    let frames = stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(chunk)), reader))
    });
    let body = StreamBody::new(frames).boxed_unsync();
    Ok(respond::answer(StatusCode::OK, TEXT, body))
}

fn no_provider(call: &Call, node: &str) -> ApiError {
    match node {
        "" => ApiError::bad_request(format!("pod {} does not have a host assigned", call.name)),
        node => ApiError::internal(format!(
            "the agent of node {node:?} cannot be reached for the log"
        )),
    }
}

fn refusal(of: &LogOf, why: &NoLog) -> ApiError {
    let (container, pod) = (&of.container, &of.pod);
    match why {
        NoLog::NotStarted(reason) => ApiError::bad_request(format!(
            "container {container:?} in pod {pod:?} is waiting to start: {reason}"
        )),
        NoLog::NoPrevious => ApiError::bad_request(format!(
            "previous terminated container {container:?} in pod {pod:?} not found"
        )),
        NoLog::Unreachable => ApiError::internal(format!(
            "the agent of node {:?} cannot be reached for the log",
            of.node
        )),
    }
}

/// The container that is meant in the pod of this name: the one that was asked for, or the only one.
pub(super) fn container(name: &str, asked: Option<&str>, pod: &Value) -> Result<String, ApiError> {
    let names = |list: &str| -> Vec<&str> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|c| c["name"].as_str()).collect()
    };
    let (main, init) = (names("containers"), names("initContainers"));
    let ephemeral = names("ephemeralContainers");
    match asked {
        Some(asked)
            if [&main, &init, &ephemeral]
                .iter()
                .any(|list| list.contains(&asked)) =>
        {
            Ok(asked.to_owned())
        }
        Some(asked) => Err(ApiError::bad_request(format!(
            "container {asked} is not valid for pod {name}"
        ))),
        None if main.len() == 1 => Ok(main[0].to_owned()),
        None => {
            let mut text = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                main.join(" ")
            );
            if !init.is_empty() {
                text += &format!(" or one of the init containers: [{}]", init.join(" "));
            }
            Err(ApiError::bad_request(text))
        }
    }
}

impl Wanted {
    fn read(call: &Call) -> Result<Self, ApiError> {
        let query = &call.query;
        let count = |name: &str| -> Result<Option<usize>, ApiError> {
            let Some(value) = query.integer(name)? else {
                return Ok(None);
            };
            usize::try_from(value).map(Some).map_err(|_| {
                ApiError::bad_request(format!("{name} must be greater than or equal to 0"))
            })
        };
        let since_time = query.get("sinceTime").map(str::parse::<Timestamp>);
        let since_time = since_time
            .transpose()
            .map_err(|_| ApiError::bad_request("sinceTime must be a time of RFC 3339"))?;
        let seconds = count("sinceSeconds")?.map(|s| i64::try_from(s).unwrap_or(i64::MAX));
        let now = call.core.environment.now();
        let since_seconds = seconds.map(|s| {
            let back = now.checked_sub(SignedDuration::from_secs(s));
            back.unwrap_or(Timestamp::MIN)
        });
        Ok(Self {
            follow: query.flag("follow"),
            timestamps: query.flag("timestamps"),
            since: since_time.or(since_seconds),
            tail: count("tailLines")?,
            bytes: count("limitBytes")?,
        })
    }
}

/// One client's way through a log.
struct Reader {
    logs: Arc<dyn PodLogs>,
    of: LogOf,
    wanted: Wanted,
    ready: VecDeque<LogLine>,
    next: u64,
    more: MoreLog,
    stopping: CancellationToken,
}

impl Reader {
    fn new(
        logs: Arc<dyn PodLogs>,
        of: LogOf,
        wanted: Wanted,
        first: LogPiece,
        stopping: CancellationToken,
    ) -> Self {
        let mut reader = Self {
            logs,
            of,
            wanted,
            ready: VecDeque::new(),
            next: 0,
            more: MoreLog::Never,
            stopping,
        };
        reader.take(first);
        if let Some(tail) = reader.wanted.tail {
            let surplus = reader.ready.len().saturating_sub(tail);
            reader.ready.drain(..surplus);
        }
        reader
    }

    fn take(&mut self, piece: LogPiece) {
        let since = self.wanted.since;
        let lines = piece.lines.into_iter();
        self.ready
            .extend(lines.filter(|line| since.is_none_or(|since| line.at >= since)));
        self.next = piece.next;
        self.more = piece.more;
    }

    /// The next bytes; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.wanted.bytes == Some(0) {
                return None;
            }
            if !self.ready.is_empty() {
                return Some(self.render());
            }
            if !self.wanted.follow {
                return None;
            }
            match std::mem::replace(&mut self.more, MoreLog::Never) {
                MoreLog::Never => return None,
                MoreLog::After(more) => tokio::select! {
                    // A server that stops ends its streams, however busy they are.
                    biased;
                    () = self.stopping.cancelled() => return None,
                    () = more => {}
                },
            }
            let piece = self.logs.read(&self.of, self.next).ok()?;
            self.take(piece);
        }
    }

    fn render(&mut self) -> Bytes {
        let mut text = String::new();
        for line in self.ready.drain(..) {
            if self.wanted.timestamps {
                text += &format!("{:.9} ", line.at);
            }
            text += &line.text;
            text.push('\n');
        }
        let mut bytes = Bytes::from(text);
        if let Some(left) = &mut self.wanted.bytes {
            bytes.truncate(*left);
            *left -= bytes.len();
        }
        bytes
    }
}
