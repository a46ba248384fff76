//! Waiting: until an object is as it should be, until an event, until the operator has come to rest.
//!
//! A wait reads again when the server's revision has changed, by tokio's clock, which tests pause.

use std::fmt::Write as _;
use std::panic::Location;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::core::ApiResource;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{ClientError, Key, Query};
use kubewright_testing::Exchange;
use tokio::time::{Instant, sleep};

use super::builder::Refusals;
use super::report::{self, Failure, Subject};
use super::world::World;

/// How often the revision is looked at.
const STEP: Duration = Duration::from_millis(5);
/// How long an unchanged object is trusted to be unchanged.
const RECHECK: Duration = Duration::from_secs(1);
/// How long an operator that has come to rest does not write.
const QUIET: Duration = Duration::from_secs(1);
/// Writes that a failure shows.
const SHOWN: usize = 10;

/// Why a wait ends before it has seen what it waits for.
#[derive(Debug)]
pub(super) enum Stop {
    TimedOut(Duration),
    /// The operator ended, for this reason.
    Ended(String),
    /// No role allows this.
    Denied(Box<Exchange>),
}

impl World {
    /// Waits until the object of this key is as it should be, and gives it. One that does not exist is `None`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// # let world = World::start().await;
    /// let key = Key::new("default", "settings");
    /// let map = world.until(&key, |map: Option<&ConfigMap>| map.is_some()).await;
    /// assert!(map.is_some());
    /// # }
    /// ```
    ///
    /// # Panics
    /// When it is not within the time limit, when the operator ends, or when its role refuses a request: with the object, its
    /// conditions and events, the last reconciles and their causes, and the last refused requests.
    #[track_caller]
    pub fn until<'a, K: TypedObject>(
        &'a self,
        key: &'a Key,
        holds: impl Fn(Option<&K>) -> bool + 'a,
    ) -> impl Future<Output = Option<K>> + 'a {
        let place = Location::caller();
        let subject = Subject {
            resource: ApiResource::erase::<K>(&()),
            key: key.clone(),
        };
        Box::pin(async move {
            let what = subject.to_string();
            let look = async || {
                let object = self.client.live().get::<K>(key).await?;
                Ok(holds(object.as_ref()).then_some(object))
            };
            self.poll(look, Failure::new(what, place).about(subject))
                .await
        })
    }

    /// Waits until the objects of a query are as they should be, and gives them.
    ///
    /// # Panics
    /// As [`until`](World::until).
    #[track_caller]
    pub fn until_all<'a, K: TypedObject>(
        &'a self,
        query: Query,
        holds: impl Fn(&[K]) -> bool + 'a,
    ) -> impl Future<Output = Vec<K>> + 'a {
        let place = Location::caller();
        Box::pin(async move {
            let what = format!("all {}", K::plural(&()));
            let look = async || {
                let objects = self.client.live().list::<K>(query.clone()).await?;
                Ok(holds(&objects).then_some(objects))
            };
            self.poll(look, Failure::new(what, place)).await
        })
    }

    /// Waits until there is an event with this reason, and gives it.
    ///
    /// # Panics
    /// As [`until`](World::until).
    #[track_caller]
    pub fn until_event<'a>(&'a self, reason: &'a str) -> impl Future<Output = Event> + 'a {
        let place = Location::caller();
        Box::pin(async move {
            let look = async || {
                let events = self.client.live().list::<Event>(Query::all()).await?;
                let mut events = events.into_iter();
                Ok(events.find(|event| event.reason.as_deref() == Some(reason)))
            };
            let what = format!("an event with reason {reason:?}");
            self.poll(look, Failure::new(what, place)).await
        })
    }

    /// Waits until something is found that is not an object: what a webhook received, what a file has in it.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// # let world = World::start().await;
    /// let file = "/tmp/written-by-the-operator";
    /// let text = world.until_some("a file", async || std::fs::read_to_string(file).ok()).await;
    /// assert_eq!(text, "done");
    /// # }
    /// ```
    ///
    /// # Panics
    /// As [`until`](World::until), with `what` was looked for.
    #[track_caller]
    pub fn until_some<'a, T: 'a>(
        &'a self,
        what: &'a str,
        mut look: impl AsyncFnMut() -> Option<T> + 'a,
    ) -> impl Future<Output = T> + 'a {
        let place = Location::caller();
        Box::pin(async move {
            let pace = Pace::new(self);
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                if let Err(stop) = pace.tick().await {
                    report::fail(self, Failure::new(what.to_owned(), place), stop).await;
                }
            }
        })
    }

    /// Waits until the operator has not written for a second.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// # let world = World::start().await;
    /// world.settled().await;
    /// world.assert_no_writes(Duration::from_secs(5)).await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// When it keeps writing until the time limit, with the last writes and why they were made; also as
    /// [`until`](World::until).
    #[track_caller]
    pub fn settled(&self) -> impl Future<Output = ()> + '_ {
        self.settled_for(QUIET)
    }

    /// Waits until the operator has not written for so long.
    ///
    /// # Panics
    /// As [`settled`](World::settled).
    #[track_caller]
    pub fn settled_for(&self, quiet: Duration) -> impl Future<Output = ()> + '_ {
        let place = Location::caller();
        Box::pin(async move {
            let (mark, pace) = (self.mark(), Pace::new(self).longer(quiet));
            let (mut last, mut since) = (self.wire().last_write(), Instant::now());
            while since.elapsed() < quiet {
                if let Err(stop) = pace.tick().await {
                    let what = "the operator to come to rest".to_owned();
                    let failure = Failure::new(what, place).writes(self.writes_since(mark));
                    report::fail(self, failure, stop).await;
                }
                let now = self.wire().last_write();
                if now != last {
                    (last, since) = (now, Instant::now());
                }
            }
        })
    }

    /// Fails when the operator writes within this time: an operator does not write when nothing changes.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::prelude::*;
    /// # use kubewright::testing::World;
    /// # async fn test() {
    /// # let world = World::start().await;
    /// # world.settled().await;
    /// world.assert_no_writes(Duration::from_secs(60)).await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// When it does, with its writes and the reconciles that made them.
    #[track_caller]
    pub fn assert_no_writes(&self, within: Duration) -> impl Future<Output = ()> + '_ {
        let place = Location::caller();
        let mark = self.mark();
        Box::pin(async move {
            sleep(within).await;
            let writes = self.writes_since(mark);
            if writes.is_empty() {
                return;
            }
            let mut text = format!(
                "{} writes within {within:?} although nothing changed, at {place}",
                writes.len()
            );
            for write in writes.iter().take(SHOWN) {
                let _ = write!(text, "\n  {write}");
            }
            let runs = self.reconciles();
            let wrote = runs.iter().filter(|run| !run.writes.is_empty());
            let shown: Vec<_> = wrote.rev().take(SHOWN).collect();
            let _ = write!(text, "\nthe last reconciles that wrote:");
            for run in shown.iter().rev() {
                let _ = write!(text, "\n  {run}");
            }
            panic!("{text}");
        })
    }

    /// Looks until something is found.
    async fn poll<T>(
        &self,
        mut look: impl AsyncFnMut() -> Result<Option<T>, ClientError>,
        failure: Failure,
    ) -> T {
        let mut pace = Pace::new(self);
        loop {
            match look().await {
                Ok(Some(found)) => return found,
                Ok(None) => {}
                Err(error) => panic!(
                    "{} cannot be read: {}, at {}",
                    failure.what,
                    crate::Error::from(error).report(),
                    failure.place
                ),
            }
            if let Err(stop) = pace.next().await {
                report::fail(self, failure, stop).await;
            }
        }
    }
}

/// When to look again, and when to stop looking.
struct Pace<'a> {
    world: &'a World,
    began: Instant,
    limit: Duration,
    revision: u64,
}

impl<'a> Pace<'a> {
    fn new(world: &'a World) -> Self {
        Self {
            world,
            began: Instant::now(),
            limit: world.plan.time_limit,
            revision: world.cluster.server().revision(),
        }
    }

    fn longer(mut self, time: Duration) -> Self {
        self.limit += time;
        self
    }

    /// Completes when there may be something else to see.
    async fn next(&mut self) -> Result<(), Stop> {
        let recheck = Instant::now() + RECHECK;
        loop {
            self.tick().await?;
            let revision = self.world.cluster.server().revision();
            if revision != self.revision || Instant::now() >= recheck {
                self.revision = revision;
                return Ok(());
            }
        }
    }

    /// Waits for a moment, unless there is nothing to wait for any more.
    async fn tick(&self) -> Result<(), Stop> {
        if self.world.plan.refusals == Refusals::Fail
            && let Some(denied) = self.world.wire().denied().pop()
        {
            return Err(Stop::Denied(Box::new(denied)));
        }
        if self.began.elapsed() >= self.limit {
            return Err(Stop::TimedOut(self.limit));
        }
        let Some(running) = self.world.running() else {
            sleep(STEP).await;
            return Ok(());
        };
        tokio::select! { biased; // An end explains what is not there.
            cause = running.failed() => Err(Stop::Ended(cause)),
            () = sleep(STEP) => Ok(()),
        }
    }
}
