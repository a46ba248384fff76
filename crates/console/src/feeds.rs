//! All feeds: started when a viewer first needs them, one for each kind, whoever looks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::feed::{Feed, Phase, Shared};
use crate::kinds::{self, Kind};

/// First lists that are under way at once, so that a large cluster is not asked for everything in one moment.
const AT_ONCE: usize = 12;
/// How often discovery is asked while nothing hints at a change.
const LOOK: Duration = Duration::from_secs(10);
/// How long after a change of a definition discovery is asked: they are served a moment later.
const SOON: Duration = Duration::from_millis(150);
/// How long a refusal stands before it is tried again.
const REFUSED_FOR: Duration = Duration::from_secs(15);
/// How long a first list may hold a place among those at once.
const PLACE: Duration = Duration::from_secs(10);

/// The kinds, and the feeds of those that somebody wants to see.
pub(crate) struct Feeds {
    pub(crate) shared: Shared,
    kinds: watch::Sender<Arc<Vec<Kind>>>,
    feeds: Mutex<BTreeMap<String, Arc<Feed>>>,
    tasks: Mutex<JoinSet<()>>,
    places: Arc<Semaphore>,
    cancel: CancellationToken,
    /// Why the kinds are not known, while they are not.
    pub(crate) trouble: Mutex<Option<String>>,
}

impl Feeds {
    pub(crate) fn new(shared: Shared, cancel: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            shared,
            kinds: watch::Sender::new(Arc::default()),
            feeds: Mutex::default(),
            tasks: Mutex::default(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            cancel,
            trouble: Mutex::default(),
        })
    }

    /// Keeps the kinds as the server has them, until cancelled.
    pub(crate) async fn follow_kinds(self: Arc<Self>) {
        loop {
            self.refresh().await;
            // A hint only shortens the wait; the end is looked at first.
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return,
                () = self.definitions_change() => sleep(SOON).await,
                () = sleep(self.pause()) => {}
            }
        }
    }

    fn pause(&self) -> Duration {
        if self.kinds.borrow().is_empty() {
            SOON * 4
        } else {
            LOOK
        }
    }

    /// Completes when a definition or an API service changes, if the user may see them.
    async fn definitions_change(&self) {
        let definitions = self
            .kinds()
            .iter()
            .find(|kind| kind.plural == "customresourcedefinitions")
            .cloned();
        let Some(kind) = definitions else {
            return std::future::pending().await;
        };
        let feed = self.open(&kind);
        feed.settled(LOOK).await;
        let mut changes = feed.subscribe();
        if changes.recv().await.is_err() {
            std::future::pending().await
        }
    }

    async fn refresh(&self) {
        match kinds::discover(&self.shared.connection).await {
            Ok(found) => {
                *self.trouble.lock() = None;
                self.forget_all_but(&found);
                let found = Arc::new(found);
                self.kinds.send_if_modified(|known| {
                    let changed = **known != *found;
                    *known = found;
                    changed
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the kinds of the cluster cannot be read");
                *self.trouble.lock() = Some(error.to_string());
            }
        }
    }

    fn forget_all_but(&self, kinds: &[Kind]) {
        let mut feeds = self.feeds.lock();
        feeds.retain(|id, feed| {
            let stays = kinds.iter().any(|kind| kind.id == *id);
            if !stays {
                feed.stop();
            }
            stays
        });
        drop(feeds);
        while self.tasks.lock().try_join_next().is_some() {}
    }

    pub(crate) fn kinds(&self) -> Arc<Vec<Kind>> {
        self.kinds.borrow().clone()
    }

    pub(crate) fn kind_changes(&self) -> watch::Receiver<Arc<Vec<Kind>>> {
        self.kinds.subscribe()
    }

    /// The kind of this id, waiting a moment for discovery where it has not answered yet.
    pub(crate) async fn kind(&self, id: &str) -> Option<Kind> {
        let mut kinds = self.kinds.subscribe();
        let _ = timeout(LOOK, kinds.wait_for(|kinds| !kinds.is_empty())).await;
        let known = kinds.borrow_and_update();
        known.iter().find(|kind| kind.id == id).cloned()
    }

    /// The feed of a kind, started if it does not run.
    pub(crate) fn open(&self, kind: &Kind) -> Arc<Feed> {
        let mut feeds = self.feeds.lock();
        if let Some(feed) = feeds.get(&kind.id) {
            let given_up = matches!(feed.phase(), Phase::Refused { .. } | Phase::Gone);
            if !(given_up && feed.opened + REFUSED_FOR < Instant::now()) {
                return feed.clone();
            }
        }
        let feed = Feed::new(kind.clone(), self.cancel.child_token());
        feeds.insert(kind.id.clone(), feed.clone());
        let (running, shared, places) = (feed.clone(), self.shared.clone(), self.places.clone());
        self.tasks.lock().spawn(async move {
            let place = places.acquire_owned().await;
            let settled = running.clone();
            let run = running.run(shared);
            tokio::pin!(run);
            // The place is given back with the first state; the feed goes on.
            tokio::select! {
                biased;
                () = &mut run => return,
                () = settled.settled(PLACE) => drop(place),
            }
            run.await;
        });
        feed
    }

    /// The feeds of all kinds that belong into trees and the overview, started if they do not run.
    pub(crate) fn open_all(&self) -> Vec<Arc<Feed>> {
        let kinds = self.kinds();
        kinds
            .iter()
            .filter(|kind| !kind.is_noise())
            .map(|kind| self.open(kind))
            .collect()
    }

    /// The feeds that run.
    pub(crate) fn running(&self) -> Vec<Arc<Feed>> {
        self.feeds.lock().values().cloned().collect()
    }
}
