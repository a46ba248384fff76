//! The objects that the source serves, and what becomes of them when it is asked to change them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use tokio::sync::{broadcast, watch};

use super::flow::{Flow, Gone, Inlet};
use super::kind::Kind;
use super::rendering::{Rendering, Streaming};
use super::template::{Numbers, POSTINGS};
use super::{Query, plain};

/// Changes go through the objects in steps of this; it divides no count in use.
const STRIDE: usize = 7_919;
/// One in so many objects changes while nobody watches.
const MISSED: usize = 100;

/// What a watch is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Change so many objects, at once or so many a second.
    Events { count: usize, pace: Option<usize> },
    /// End as expired.
    Expire,
}

/// All objects.
pub(crate) struct World {
    renderings: Vec<Arc<Rendering>>,
    instances: usize,
    state: Mutex<State>,
    orders: broadcast::Sender<Order>,
    /// How many watches have been opened and have sent the initial state.
    opened: watch::Sender<usize>,
}

struct State {
    /// The version of each pod.
    versions: Vec<u64>,
    latest: u64,
}

impl World {
    pub(crate) fn new(kind: Kind, objects: usize) -> Result<Self> {
        let renderings = Rendering::all(kind)?.into_iter().map(Arc::new).collect();
        Ok(Self {
            renderings,
            instances: objects / POSTINGS,
            state: Mutex::new(State {
                versions: (1..=objects as u64).collect(),
                latest: objects as u64,
            }),
            orders: broadcast::Sender::new(8),
            opened: watch::Sender::new(0),
        })
    }

    /// Tells the watch what to do; without one, nothing happens.
    pub(crate) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Changes objects in secret, ends the watch, and waits until it is back.
    pub(crate) async fn relist(&self) {
        let mut opened = self.opened.subscribe();
        let before = *opened.borrow();
        let objects = self.locked(|state| state.versions.len());
        for number in (0..objects).step_by(MISSED) {
            self.change(number);
        }
        self.order(Order::Expire);
        // An error means that the sender is gone, which lives as long as this.
        let _ = opened.wait_for(|count| *count > before).await;
    }

    pub(crate) fn list(self: Arc<Self>, accept: &str, query: &Query) -> Response<Flow> {
        let Some(rendering) = self.rendering(accept) else {
            return plain(StatusCode::NOT_ACCEPTABLE);
        };
        let (objects, version) = self.locked(|state| (state.versions.len(), state.latest));
        let start = query.number("continue").unwrap_or(0).min(objects);
        let end = match query.number("limit") {
            Some(limit) if limit > 0 => (start + limit).min(objects),
            _ => objects,
        };
        let token = if end < objects {
            end.to_string()
        } else {
            String::new()
        };
        let frame = rendering.list(end - start, version, &token);
        let content_type = rendering.content_type(Streaming::No);
        let response = streamed(&content_type, |mut inlet| async move {
            inlet.buffer.extend_from_slice(&frame.head);
            let json = !frame.tail.is_empty();
            for number in start..end {
                if !json || number > start {
                    inlet.buffer.extend_from_slice(&rendering.before_item);
                }
                let object = self.object(number, 0);
                rendering.item.render(&object, &mut inlet.buffer);
                inlet.flow().await?;
            }
            inlet.buffer.extend_from_slice(frame.tail);
            inlet.flush().await
        });
        response.unwrap_or_else(|| plain(StatusCode::INTERNAL_SERVER_ERROR))
    }

    pub(crate) fn watch(self: Arc<Self>, accept: &str, query: &Query) -> Response<Flow> {
        let Some(rendering) = self.rendering(accept) else {
            return plain(StatusCode::NOT_ACCEPTABLE);
        };
        let initial = query.text("sendInitialEvents") == Some("true");
        let orders = self.orders.subscribe();
        let content_type = rendering.content_type(Streaming::Yes);
        let response = streamed(&content_type, |mut inlet| async move {
            if initial {
                self.tell_all(&rendering, &mut inlet).await?;
            }
            self.opened.send_modify(|count| *count += 1);
            self.obey(&rendering, &mut inlet, orders).await
        });
        response.unwrap_or_else(|| plain(StatusCode::INTERNAL_SERVER_ERROR))
    }

    async fn tell_all(&self, rendering: &Rendering, inlet: &mut Inlet) -> Result<(), Gone> {
        let (objects, version) = self.locked(|state| (state.versions.len(), state.latest));
        for number in 0..objects {
            rendering
                .added
                .render(&self.object(number, 0), &mut inlet.buffer);
            inlet.flow().await?;
        }
        let bookmark = rendering.initial_end(version).map_err(|_| Gone)?;
        inlet.buffer.extend_from_slice(&bookmark);
        inlet.flush().await
    }

    async fn obey(
        &self,
        rendering: &Rendering,
        inlet: &mut Inlet,
        mut orders: broadcast::Receiver<Order>,
    ) -> Result<(), Gone> {
        loop {
            let order = tokio::select! {
                biased; // A client that has gone needs no events.
                () = inlet.gone() => return Err(Gone),
                order = orders.recv() => order.map_err(|_| Gone)?,
            };
            match order {
                Order::Events { count, pace } => {
                    self.change_all(rendering, inlet, count, pace).await?;
                }
                Order::Expire => {
                    let expired = rendering.expired().map_err(|_| Gone)?;
                    inlet.buffer.extend_from_slice(&expired);
                    return inlet.flush().await;
                }
            }
        }
    }

    async fn change_all(
        &self,
        rendering: &Rendering,
        inlet: &mut Inlet,
        count: usize,
        pace: Option<usize>,
    ) -> Result<(), Gone> {
        let objects = self.locked(|state| state.versions.len());
        let mut clock = pace
            .map(|pace| Duration::from_secs(1) / pace.max(1) as u32)
            .map(tokio::time::interval);
        for turn in 0..count {
            let number = turn * STRIDE % objects;
            self.change(number);
            let stamp = match &mut clock {
                None => 0,
                Some(clock) => {
                    clock.tick().await;
                    now()
                }
            };
            let object = self.object(number, stamp);
            rendering.modified.render(&object, &mut inlet.buffer);
            match clock {
                None => inlet.flow().await?,
                Some(_) => inlet.flush().await?,
            }
        }
        inlet.flush().await
    }

    fn rendering(&self, accept: &str) -> Option<Arc<Rendering>> {
        let mut all = self.renderings.iter();
        all.find(|rendering| rendering.suits(accept)).cloned()
    }

    fn change(&self, number: usize) {
        self.locked(|state| {
            state.latest += 1;
            state.versions[number] = state.latest;
        });
    }

    fn object(&self, number: usize, stamp: u64) -> Numbers {
        Numbers {
            number,
            version: self.locked(|state| state.versions[number]),
            stamp,
            instances: self.instances,
        }
    }

    fn locked<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Answers with what is made while it is sent.
fn streamed<F: Future<Output = Result<(), Gone>> + 'static>(
    content_type: &str,
    make: impl FnOnce(Inlet) -> F,
) -> Option<Response<Flow>> {
    let content_type = HeaderValue::from_str(content_type).ok()?;
    let (inlet, flow) = Flow::new();
    tokio::task::spawn_local(make(inlet));
    let mut response = Response::new(flow);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Some(response)
}

/// Microseconds since 1970, on the clock that all processes of the machine share.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
