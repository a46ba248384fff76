//! What all requests of a console share.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::cluster::Connection;
use crate::feed::Phase;
use crate::feeds::Feeds;
use crate::kinds::Kind;
use crate::mind::Minds;
use crate::overview;
use crate::past::Pasts;
use crate::session::Sessions;
use crate::snapshots::Taken;

/// Whether the page offers to change things. The user's rights decide what is possible in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Changes are offered where the user may make them.
    #[default]
    ReadWrite,
    /// The console makes no request that changes anything.
    ReadOnly,
}

/// What all requests share.
pub(crate) struct State {
    pub(crate) sessions: Sessions,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) pasts: Pasts,
    pub(crate) minds: Minds,
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    pub(crate) mode: Mode,
    /// The connection for terminals, which must be able to go on as a WebSocket.
    pub(crate) terminal_connection: Connection,
    /// The terminals that are open. They end with the console.
    pub(crate) terminals: Mutex<JoinSet<()>>,
    pub(crate) snapshots: Taken,
    /// The overview as of a tick, rendered once for all who look.
    pub(crate) rendered: Mutex<(u64, Bytes)>,
    /// The oldest revision that was found to be listable.
    pub(crate) oldest: tokio::sync::Mutex<Option<(tokio::time::Instant, u64)>>,
}

impl State {
    /// The overview as a message, computed at most once for each tick.
    pub(crate) fn overview(&self, tick: u64) -> Bytes {
        let mut kept = self.rendered.lock();
        if kept.0 != tick || kept.1.is_empty() {
            let mut message: Value = overview::of(&*self.feeds);
            message["t"] = "overview".into();
            *kept = (tick, format!("{message}\n").into());
        }
        kept.1.clone()
    }

    /// The kinds of trees and the overview, with how far each is.
    pub(crate) fn tree_kinds(&self) -> Vec<(Kind, Phase)> {
        let feeds = self.feeds.open_all();
        feeds
            .iter()
            .map(|feed| (feed.kind.clone(), feed.phase()))
            .collect()
    }
}
