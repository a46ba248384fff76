//! A source of objects with their printed cells: lists and watches in the Table representation, read as plain objects.
//!
//! The API server prints the columns of every kind, built in and custom, so a table looks as `kubectl get` shows it and
//! one watch brings both the cells and the object. The cells travel in a field of the object that no kind has. A server
//! that does not print tables answers with plain objects, which have no cells.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::Method;
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kubewright_cache::source::{
    BoxFuture, Chunks, Failure, FailureKind, ListRequest, Source, StreamingList, WatchRequest,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::cluster::{Call, ClusterError, Connection, escape};
use crate::kinds::Kind;

/// The field of an object that has its cells.
pub(crate) const CELLS: &str = "console.kubewright/cells";

pub(crate) const AS_TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";
/// The largest page of a list, and the largest event of a watch.
const LARGEST_PAGE: usize = 256 << 20;
const LARGEST_EVENT: usize = 16 << 20;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(rename = "type", default)]
    pub(crate) of: String,
    #[serde(default)]
    pub(crate) priority: i32,
    #[serde(default)]
    pub(crate) description: String,
}

/// The columns of a kind, as the last table had them.
pub(crate) type Columns = Arc<Mutex<Arc<Vec<Column>>>>;

/// Lists and watches one kind, in all namespaces or one.
pub(crate) struct TableSource {
    pub(crate) connection: Connection,
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) columns: Columns,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table<'a> {
    #[serde(default)]
    kind: String,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(default)]
    column_definitions: Option<Vec<Column>>,
    #[serde(borrow, default)]
    rows: Option<Vec<Row<'a>>>,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    of: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Makes a list of a table; anything else is returned unchanged. Also returns the columns, if the table has them.
pub(crate) fn list_of(body: Bytes) -> Result<(Bytes, Option<Vec<Column>>), serde_json::Error> {
    let table: Table<'_> = serde_json::from_slice(&body)?;
    if table.kind != "Table" {
        return Ok((body, None));
    }
    let mut list = Vec::with_capacity(body.len());
    list.extend_from_slice(br#"{"kind":"List","apiVersion":"v1","metadata":"#);
    list.extend_from_slice(table.metadata.map_or("{}", RawValue::get).as_bytes());
    list.extend_from_slice(br#","items":["#);
    for (at, row) in table.rows.iter().flatten().enumerate() {
        if at > 0 {
            list.push(b',');
        }
        append(&mut list, row);
    }
    list.extend_from_slice(b"]}");
    Ok((list.into(), table.column_definitions))
}

/// Makes an event with a plain object of one with a table.
fn event_of(line: &[u8]) -> Result<(Vec<u8>, Option<Vec<Column>>), serde_json::Error> {
    let event: Event<'_> = serde_json::from_slice(line)?;
    let table: Option<Table<'_>> = serde_json::from_str(event.object.get()).ok();
    let table = table.filter(|table| table.kind == "Table");
    let mut out = Vec::with_capacity(line.len() + 1);
    out.extend_from_slice(format!(r#"{{"type":"{}","object":"#, event.of).as_bytes());
    match table
        .as_ref()
        .map(|table| table.rows.iter().flatten().next())
    {
        None => out.extend_from_slice(event.object.get().as_bytes()),
        Some(Some(row)) => append(&mut out, row),
        // A bookmark may come without a row: its version is that of the table.
        Some(None) => {
            let metadata = table
                .as_ref()
                .and_then(|table| table.metadata)
                .map_or("{}", RawValue::get);
            out.extend_from_slice(format!(r#"{{"metadata":{metadata}}}"#).as_bytes());
        }
    }
    out.extend_from_slice(b"}\n");
    Ok((out, table.and_then(|table| table.column_definitions)))
}

/// Writes the object of a row with its cells as its first field.
fn append(out: &mut Vec<u8>, row: &Row<'_>) {
    let object = row.object.get().trim_start();
    let Some(rest) = object.strip_prefix('{') else {
        return out.extend_from_slice(object.as_bytes());
    };
    out.extend_from_slice(format!(r#"{{"{CELLS}":{}"#, row.cells.get()).as_bytes());
    if !rest.trim_start().starts_with('}') {
        out.push(b',');
    }
    out.extend_from_slice(rest.as_bytes());
}

impl TableSource {
    fn uri(&self, query: &[(&str, String)]) -> String {
        let mut uri = format!(
            "{}?includeObject=Object",
            self.kind.path(self.namespace.as_deref())
        );
        for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
            uri.push_str(&format!("&{name}={}", escape(value)));
        }
        uri
    }

    async fn page(&self, request: ListRequest) -> Result<Bytes, Failure> {
        let uri = self.uri(&[
            ("resourceVersion", request.resource_version),
            ("limit", request.limit.to_string()),
            ("continue", request.continue_token),
        ]);
        let body = self
            .connection
            .open(Call::new(Method::GET, uri).accept(AS_TABLE))
            .await
            .map_err(failure)?;
        let read = Limited::new(body, LARGEST_PAGE).collect().await;
        let body = read
            .map_err(|error| Failure::new(FailureKind::Interrupted, error.to_string()))?
            .to_bytes();
        let (list, columns) = list_of(body)
            .map_err(|error| Failure::new(FailureKind::Malformed, error.to_string()))?;
        self.learn(columns);
        Ok(list)
    }

    fn learn(&self, columns: Option<Vec<Column>>) {
        learn(&self.columns, columns);
    }
}

fn learn(known: &Columns, columns: Option<Vec<Column>>) {
    if let Some(columns) = columns.filter(|columns| !columns.is_empty()) {
        *known.lock() = Arc::new(columns);
    }
}

impl Source for TableSource {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Box<dyn Chunks>, Failure>> {
        Box::pin(async move {
            let page = self.page(request).await?;
            Ok(Box::new(Once(Some(page))) as Box<dyn Chunks>)
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Chunks>, Failure>> {
        Box::pin(async move {
            let uri = self.uri(&[
                ("watch", "true".to_owned()),
                ("allowWatchBookmarks", "true".to_owned()),
                ("timeoutSeconds", request.timeout.as_secs().to_string()),
                ("resourceVersion", request.resource_version),
            ]);
            let body = self
                .connection
                .open(Call::new(Method::GET, uri).accept(AS_TABLE))
                .await
                .map_err(failure)?;
            Ok(Box::new(Lines {
                body,
                columns: self.columns.clone(),
                unread: BytesMut::new(),
                ready: VecDeque::new(),
            }) as Box<dyn Chunks>)
        })
    }

    /// Initial events do not come in pages, and a table of everything at once would be large.
    fn streaming_list(&self) -> StreamingList {
        StreamingList::No
    }

    fn describe(&self) -> String {
        format!("{} as a table", self.kind.path(self.namespace.as_deref()))
    }
}

fn failure(error: ClusterError) -> Failure {
    if error.code == 502 || error.code == 504 {
        return Failure::new(FailureKind::Other, error.message);
    }
    let status = serde_json::json!({"reason": error.reason, "message": error.message});
    Failure::from_status(error.code, status.to_string().as_bytes(), None)
}

struct Once(Option<Bytes>);

impl Chunks for Once {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, Failure>>> {
        Box::pin(async { self.0.take().map(Ok) })
    }
}

/// The events of a watch, line by line.
struct Lines {
    body: Body,
    columns: Columns,
    unread: BytesMut,
    ready: VecDeque<Bytes>,
}

impl Lines {
    /// Moves whole lines from `unread` to `ready`.
    fn cut(&mut self) -> Result<(), Failure> {
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line = self.unread.split_to(end + 1);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let malformed =
                |error: serde_json::Error| Failure::new(FailureKind::Malformed, error.to_string());
            let (event, columns) = event_of(&line).map_err(malformed)?;
            learn(&self.columns, columns);
            self.ready.push_back(event.into());
        }
        if self.unread.len() > LARGEST_EVENT {
            let message = format!("an event is larger than {LARGEST_EVENT} bytes");
            return Err(Failure::new(FailureKind::Malformed, message));
        }
        Ok(())
    }
}

impl Chunks for Lines {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, Failure>>> {
        Box::pin(async {
            loop {
                if let Some(event) = self.ready.pop_front() {
                    return Some(Ok(event));
                }
                match self.body.frame().await? {
                    Ok(frame) => {
                        if let Ok(data) = frame.into_data() {
                            self.unread.extend_from_slice(&data);
                        }
                    }
                    Err(error) => {
                        return Some(Err(Failure::new(
                            FailureKind::Interrupted,
                            error.to_string(),
                        )));
                    }
                }
                if let Err(failure) = self.cut() {
                    return Some(Err(failure));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn table_becomes_a_list_of_objects_with_cells() {
        let table = json!({"kind": "Table", "metadata": {"resourceVersion": "7"},
            "columnDefinitions": [{"name": "Name", "type": "string", "priority": 0}],
            "rows": [{"cells": ["a"], "object": {"metadata": {"name": "a"}}}, {"cells": ["b"], "object": {}}]});
        let (list, columns) = list_of(table.to_string().into()).expect("it is a table");
        let list: Value = serde_json::from_slice(&list).expect("it is JSON");
        assert_eq!(list["metadata"]["resourceVersion"], "7");
        assert_eq!(
            list["items"],
            json!([{CELLS: ["a"], "metadata": {"name": "a"}}, {CELLS: ["b"]}])
        );
        assert_eq!(columns.expect("it has columns")[0].name, "Name");
    }

    #[test]
    fn plain_list_is_not_changed() {
        let list = Bytes::from_static(br#"{"kind":"PodList","metadata":{},"items":[]}"#);
        assert_eq!(list_of(list.clone()).expect("it is JSON").0, list);
    }

    #[test]
    fn events_carry_objects_and_bookmarks_their_version() {
        let added = br#"{"type":"ADDED","object":{"kind":"Table","rows":[{"cells":[1],"object":{"a":1}}]}}"#;
        let (event, _) = event_of(added).expect("it is an event");
        let event: Value = serde_json::from_slice(&event).expect("it is JSON");
        assert_eq!(
            event,
            json!({"type": "ADDED", "object": {CELLS: [1], "a": 1}})
        );
        let bookmark = br#"{"type":"BOOKMARK","object":{"kind":"Table","metadata":{"resourceVersion":"9"},"rows":null}}"#;
        let (event, _) = event_of(bookmark).expect("it is an event");
        let event: Value = serde_json::from_slice(&event).expect("it is JSON");
        assert_eq!(event["object"]["metadata"]["resourceVersion"], "9");
        let error = br#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#;
        let (event, _) = event_of(error).expect("it is an event");
        assert!(String::from_utf8_lossy(&event).contains("410"));
    }
}
