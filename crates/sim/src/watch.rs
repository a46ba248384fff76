//! Watches of the operator: each event passes a gate, and so does the end of the stream.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde::Deserialize;
use tower::BoxError;

use crate::life::Life;
use crate::plan::Fault;
use crate::target::is_noise;
use crate::trace::Note;
use crate::wire::WireBody;

/// What a server says when a version is too old for it.
const EXPIRED: &[u8] = b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"the simulation compacted the history\",\"reason\":\"Expired\",\"code\":410}}\n";

/// A stream of events on its way to the operator.
struct Stream {
    body: WireBody,
    resource: String,
    life: Life,
    /// Bytes of a line that has not ended.
    partial: BytesMut,
    /// What is delivered next, without further gates.
    ready: VecDeque<Bytes>,
    /// Nothing more comes from the server.
    over: bool,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    resource_version: String,
}

/// The body of a watch, each event of which passes a gate.
pub(crate) fn watched(body: WireBody, resource: String, life: Life) -> WireBody {
    let stream = Stream {
        body,
        resource,
        life,
        partial: BytesMut::new(),
        ready: VecDeque::new(),
        over: false,
    };
    let frames = stream::unfold(stream, |mut stream| async move {
        let frame = stream.next().await?;
        Some((frame.map(Frame::data), stream))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Stream {
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            self.life.check().await;
            if let Some(bytes) = self.ready.pop_front() {
                return Some(Ok(bytes));
            }
            if let Some(line) = self.line() {
                self.deliver(line).await;
                continue;
            }
            if self.over {
                return None;
            }
            let frame = tokio::select! { biased; // Nothing gets through a connection that is broken.
                () = self.life.director.cut_off() => Some(Err("connection reset by peer".into())),
                frame = self.body.frame() => frame,
            };
            match frame {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.partial.extend_from_slice(data);
                    }
                }
                Some(Err(error)) => {
                    self.over = true;
                    return Some(Err(error));
                }
                None => self.over = true,
            }
        }
    }

    /// The next whole line.
    fn line(&mut self) -> Option<Bytes> {
        let end = self.partial.iter().position(|byte| *byte == b'\n')?;
        let line = self.partial.copy_to_bytes(end + 1);
        Some(line)
    }

    async fn deliver(&mut self, line: Bytes) {
        let Ok(event) = serde_json::from_slice::<Line>(&line) else {
            self.ready.push_back(line);
            return;
        };
        let revision = event.object.metadata.resource_version.parse();
        let revision = revision.unwrap_or_default();
        self.life.front_end.reached(revision).await;
        if !matches!(&*event.kind, "ADDED" | "MODIFIED" | "DELETED") {
            self.ready.push_back(line);
            return;
        }
        let Metadata {
            name, namespace, ..
        } = event.object.metadata;
        let key = match &*namespace {
            "" => name,
            namespace => format!("{namespace}/{name}"),
        };
        let director = self.life.director.clone();
        director.dawdle().await;
        let id = director.name_event(&self.resource, &event.kind, &key, revision);
        let fault = director.fault_at_event(&id);
        if let Some(Fault::Skip(_)) = fault {
            director.hold(&self.resource, &key);
            self.end_with(&[Bytes::from_static(EXPIRED)]);
            return;
        }
        if let Some(Fault::Lag(_)) = fault {
            tokio::time::sleep(director.pace.lag).await;
            self.life.check().await;
        }
        if !is_noise(&self.resource) {
            director.be_active();
        }
        director.note_of(None, Note::Event { id, revision });
        match fault {
            Some(Fault::Cut(_)) => self.end_with(&[line]),
            Some(Fault::StaleReconnect(_)) => {
                self.life.hold_front_end(revision.saturating_sub(1));
                self.end_with(&[line, Bytes::from_static(EXPIRED)]);
            }
            Some(Fault::Expire(_)) => self.end_with(&[line, Bytes::from_static(EXPIRED)]),
            _ => self.ready.push_back(line),
        }
    }

    /// Delivers this, and then the stream ends.
    fn end_with(&mut self, lines: &[Bytes]) {
        self.ready.extend(lines.iter().cloned());
        self.partial.clear();
        self.over = true;
    }
}
