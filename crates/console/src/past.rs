//! The past: all objects as they were at a revision, read with exact lists for as long as the server has its history.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::Method;
use kubewright_cache::{Object, Shape};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cluster::{Call, ClusterError, Connection, escape};
use crate::feed::Phase;
use crate::kinds::Kind;
use crate::rows::{Row, Rows, plain_columns};
use crate::table::{AS_TABLE, Column, list_of};
use crate::world::{Collection, World};

/// Moments that are kept for the next look: a slider goes back and forth.
const KEPT: usize = 6;
/// Lists under way at once.
const AT_ONCE: usize = 8;
/// Objects in a page.
const PAGE: &str = "500";

/// Moments that were looked at lately.
#[derive(Default)]
pub(crate) struct Pasts(Mutex<VecDeque<Arc<Past>>>);

/// A moment. Kinds are read when they are needed.
pub(crate) struct Past {
    /// The revision; without one, whatever the server has when it is asked.
    revision: Option<u64>,
    kinds: Mutex<BTreeMap<String, Arc<Read>>>,
}

/// One kind at that moment.
pub(crate) struct Read {
    kind: Kind,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Rows,
    pub(crate) phase: Phase,
}

impl Pasts {
    pub(crate) fn at(&self, revision: u64) -> Arc<Past> {
        let mut kept = self.0.lock();
        if let Some(past) = kept.iter().find(|past| past.revision == Some(revision)) {
            return past.clone();
        }
        if kept.len() == KEPT {
            kept.pop_front();
        }
        let past = Arc::new(Past {
            revision: Some(revision),
            kinds: Mutex::default(),
        });
        kept.push_back(past.clone());
        past
    }
}

impl Past {
    /// The moment at which its kinds are read.
    pub(crate) fn present() -> Self {
        Self {
            revision: None,
            kinds: Mutex::default(),
        }
    }

    /// One kind at this moment.
    ///
    /// # Errors
    /// When the history does not reach that far, or the user may not see the kind.
    pub(crate) async fn read(
        &self,
        connection: &Connection,
        feed: (&Kind, &Phase),
    ) -> Result<Arc<Read>, ClusterError> {
        let (kind, phase) = feed;
        if let Some(read) = self.kinds.lock().get(&kind.id) {
            return Ok(read.clone());
        }
        let namespace = match phase {
            Phase::Live { namespace, .. } => namespace.clone(),
            _ => None,
        };
        let read = Arc::new(list(connection, kind, namespace, self.revision).await?);
        self.kinds.lock().insert(kind.id.clone(), read.clone());
        Ok(read)
    }

    /// Reads many kinds. Those that cannot be read are left out; the error is the first of an expired history.
    pub(crate) async fn read_all(
        &self,
        connection: &Connection,
        kinds: Vec<(Kind, Phase)>,
    ) -> Result<(), ClusterError> {
        let mut waiting = kinds.iter();
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < AT_ONCE
                && let Some((kind, phase)) = waiting.next()
            {
                under_way.push(self.read(connection, (kind, phase)));
            }
            match under_way.next().await {
                Some(Err(error)) if error.code == 410 => return Err(error),
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }
}

impl World for Past {
    fn each(&self, look: &mut dyn FnMut(Collection<'_>)) {
        let kinds: Vec<Arc<Read>> = self.kinds.lock().values().cloned().collect();
        for read in &kinds {
            look(Collection {
                kind: &read.kind,
                rows: &read.rows,
                phase: read.phase.clone(),
            });
        }
    }
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: Metadata,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(rename = "continue", default)]
    token: String,
}

async fn list(
    connection: &Connection,
    kind: &Kind,
    namespace: Option<String>,
    revision: Option<u64>,
) -> Result<Read, ClusterError> {
    let path = kind.path(namespace.as_deref());
    let mut query = revision.map_or_else(String::new, |revision| {
        format!("resourceVersion={revision}&resourceVersionMatch=Exact")
    });
    let mut read = Read {
        kind: kind.clone(),
        columns: plain_columns(),
        rows: Rows::default(),
        phase: Phase::Live {
            namespace,
            why: None,
        },
    };
    loop {
        let uri = format!("{path}?includeObject=Object&limit={PAGE}&{query}");
        let body = connection
            .call(Call::new(Method::GET, uri).accept(AS_TABLE))
            .await?;
        let (body, columns) = list_of(body).map_err(ClusterError::malformed)?;
        read.columns = columns
            .filter(|columns| !columns.is_empty())
            .unwrap_or(read.columns);
        let list: List<'_> = serde_json::from_slice(&body).map_err(ClusterError::malformed)?;
        for item in &list.items {
            let object = Object::parse(item.get().as_bytes(), &Shape::default());
            read.rows.put(Arc::new(Row::new(
                kind,
                object.map_err(ClusterError::malformed)?,
            )));
        }
        if list.metadata.token.is_empty() {
            return Ok(read);
        }
        query = format!("continue={}", escape(&list.metadata.token));
    }
}

/// The revision of the server now, as a list of a kind has it.
pub(crate) async fn newest(
    connection: &Connection,
    kind: &Kind,
    namespace: Option<&str>,
) -> Result<u64, ClusterError> {
    let uri = format!("{}?limit=1", kind.path(namespace));
    let list = connection.json(Call::new(Method::GET, uri)).await?;
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    version.parse().map_err(ClusterError::malformed)
}

/// The oldest revision that can still be listed, found by halving.
pub(crate) async fn oldest(
    connection: &Connection,
    kind: &Kind,
    namespace: Option<&str>,
    newest: u64,
) -> u64 {
    let (mut gone, mut there) = (0, newest);
    while gone + 1 < there {
        let middle = gone + (there - gone) / 2;
        let path = kind.path(namespace);
        let uri = format!("{path}?limit=1&resourceVersion={middle}&resourceVersionMatch=Exact");
        match connection.call(Call::new(Method::GET, uri)).await {
            Ok(_) => there = middle,
            Err(_) => gone = middle,
        }
    }
    there
}
