//! Snapshots of a cluster that lives in this process: taken, named, compared with the present, forked into a second cluster.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::Response;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use crate::cluster::Connection;
use crate::http::{Body, Problem, json_of};

/// Snapshots that are kept at most.
const MOST: usize = 16;
/// Letters of a name at most.
const LONGEST: usize = 40;

/// Takes snapshots of a cluster of this process and starts others from them.
pub trait Snapshots: Send + Sync + 'static {
    /// Keeps everything as it is now under a name. The client reads a copy in which nothing happens any more.
    fn take(&self, name: String) -> BoxFuture<'static, Result<kube::Client, SnapshotError>>;

    /// Starts a cluster from a snapshot.
    fn fork(&self, name: String) -> BoxFuture<'static, Result<Fork, SnapshotError>>;
}

/// A cluster that was started from a snapshot.
#[derive(Debug, Clone)]
pub struct Fork {
    /// The link to its console.
    pub link: String,
    /// Where its kubeconfig was written.
    pub kubeconfig: String,
}

/// A snapshot was not taken, or no cluster could be started from it.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot {name}: {message}")]
pub struct SnapshotError {
    name: String,
    message: String,
}

impl SnapshotError {
    /// Says why something could not be done with the snapshot of this name.
    pub fn new(name: impl Into<String>, message: impl fmt::Display) -> Self {
        Self {
            name: name.into(),
            message: message.to_string(),
        }
    }
}

/// The snapshots of this console.
#[derive(Default)]
pub(crate) struct Taken {
    maker: Option<Arc<dyn Snapshots>>,
    kept: Mutex<Vec<Kept>>,
}

#[derive(Clone)]
struct Kept {
    name: String,
    at: Timestamp,
    connection: Connection,
    fork: Option<Fork>,
}

/// The name of a snapshot.
#[derive(Debug, Deserialize)]
pub(crate) struct Name {
    name: String,
}

impl Taken {
    pub(crate) fn new(maker: Option<Arc<dyn Snapshots>>) -> Self {
        Self {
            maker,
            kept: Mutex::default(),
        }
    }

    fn maker(&self) -> Result<&Arc<dyn Snapshots>, Problem> {
        let not_here = "snapshots are taken of clusters that the console's own process runs";
        self.maker
            .as_ref()
            .ok_or_else(|| Problem::BadRequest(not_here.to_owned()))
    }

    /// A connection to the cluster as it was when this snapshot was taken.
    ///
    /// # Errors
    /// When there is no such snapshot.
    pub(crate) fn connection(&self, name: &str) -> Result<Connection, Problem> {
        Ok(self.find(name)?.connection)
    }

    fn find(&self, name: &str) -> Result<Kept, Problem> {
        let kept = self.kept.lock();
        let found = kept.iter().find(|kept| kept.name == name).cloned();
        found.ok_or_else(|| Problem::BadRequest(format!("there is no snapshot named {name:?}")))
    }

    /// The snapshots, oldest first, and whether any can be taken.
    pub(crate) fn list(&self) -> Response<Body> {
        let kept = self.kept.lock();
        let shown: Vec<_> = kept
            .iter()
            .map(|kept| {
                let fork = kept.fork.as_ref();
                let fork =
                    fork.map(|fork| json!({"link": fork.link, "kubeconfig": fork.kubeconfig}));
                json!({"name": kept.name, "at": kept.at.as_millisecond(), "fork": fork})
            })
            .collect();
        json_of(&json!({"available": self.maker.is_some(), "snapshots": shown}))
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    /// When the name is taken or not a name, or the cluster is not in this process.
    pub(crate) async fn take(&self, wanted: Name) -> Result<Response<Body>, Problem> {
        let maker = self.maker()?;
        let name = wanted.name;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(is_name) {
            let message = "a name has small letters, digits and dashes, 40 at most".to_owned();
            return Err(Problem::BadRequest(message));
        }
        let (is_taken, count) = {
            let kept = self.kept.lock();
            (kept.iter().any(|kept| kept.name == name), kept.len())
        };
        if is_taken || count >= MOST {
            let message = if is_taken {
                format!("there is a snapshot named {name:?} already")
            } else {
                format!("{MOST} snapshots are kept at most")
            };
            return Err(Problem::BadRequest(message));
        }
        let client = maker.take(name.clone()).await.map_err(refused)?;
        self.kept.lock().push(Kept {
            name,
            at: Timestamp::now(),
            connection: Connection::new(client),
            fork: None,
        });
        Ok(self.list())
    }

    /// Starts a second cluster from a snapshot.
    pub(crate) async fn fork(&self, wanted: Name) -> Result<Response<Body>, Problem> {
        let kept = self.find(&wanted.name)?;
        if kept.fork.is_none() {
            let fork = self.maker()?.fork(wanted.name.clone()).await;
            let fork = fork.map_err(refused)?;
            let mut all = self.kept.lock();
            if let Some(kept) = all.iter_mut().find(|kept| kept.name == wanted.name) {
                kept.fork = Some(fork);
            }
        }
        Ok(self.list())
    }
}

fn refused(error: SnapshotError) -> Problem {
    Problem::BadRequest(error.to_string())
}
