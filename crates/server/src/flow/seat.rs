//! Seats as requests hold them: waited for, given back for a while, and given up when dropped.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::FlowControl;
use super::machine::{Arrival, FlowId, Limits, Load, Machine, Rejection, Ticket};
use crate::status::ApiError;

/// How long a request waits for a seat: a quarter of the time that a request may take, as in Kubernetes.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// When a client that was turned away should come back, in seconds.
const RETRY_AFTER: u32 = 1;

/// The machine, and how to reach those who wait in it.
#[derive(Debug, Default)]
pub(super) struct Queues {
    machine: Machine,
    /// One for each ticket that waits in the machine.
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
    rejected: BTreeMap<(Arc<str>, Rejection), u64>,
    dispatched: BTreeMap<Arc<str>, u64>,
}

impl Queues {
    pub(super) fn configure(&mut self, limits: impl Iterator<Item = (Arc<str>, Limits)>) {
        self.machine.configure(limits);
        self.dispatch();
    }

    fn dispatch(&mut self) {
        for ticket in self.machine.dispatch() {
            // One who has just gone away gives the seat back itself.
            if let Some(waiter) = self.waiting.remove(&ticket) {
                let _ = waiter.send(());
            }
        }
    }

    fn release(&mut self, id: &FlowId, width: usize) {
        self.machine.release(id, width);
        self.dispatch();
    }

    fn reject(&mut self, id: &FlowId, why: Rejection) -> ApiError {
        *self.rejected.entry((id.level.clone(), why)).or_default() += 1;
        let text = "too many requests, please try again later";
        ApiError::too_many_requests(text, RETRY_AFTER)
    }

    pub(super) fn metrics(&self, text: &mut String) {
        let loads: Vec<(&str, Load)> = self.machine.loads().collect();
        let mut gauge = |name: &str, help: &str, value: fn(&Load) -> usize| {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
            for (level, load) in &loads {
                let _ = writeln!(text, "{name}{{priority_level=\"{level}\"}} {}", value(load));
            }
        };
        gauge(
            "apiserver_flowcontrol_nominal_limit_seats",
            "Seats of each priority level.",
            |load| load.nominal,
        );
        gauge(
            "apiserver_flowcontrol_current_executing_seats",
            "Seats that are taken.",
            |load| load.executing,
        );
        gauge(
            "apiserver_flowcontrol_current_inqueue_requests",
            "Requests that wait for a seat.",
            |load| load.waiting,
        );
        let name = "apiserver_flowcontrol_dispatched_requests_total";
        let _ = write!(
            text,
            "# HELP {name} Requests that got a seat.\n# TYPE {name} counter\n"
        );
        for (level, count) in &self.dispatched {
            let _ = writeln!(text, "{name}{{priority_level=\"{level}\"}} {count}");
        }
        let name = "apiserver_flowcontrol_rejected_requests_total";
        let _ = write!(
            text,
            "# HELP {name} Requests that were turned away.\n# TYPE {name} counter\n"
        );
        for ((level, why), count) in &self.rejected {
            let why = why.as_str();
            let _ = writeln!(
                text,
                "{name}{{priority_level=\"{level}\",reason=\"{why}\"}} {count}"
            );
        }
    }
}

impl FlowControl {
    /// Waits for seats of a flow. Dropping the future leaves no trace.
    ///
    /// # Errors
    /// 429 when too many requests of the flow or its level are waiting, or after [`LONGEST_WAIT`].
    pub(crate) async fn seat(&self, id: &FlowId, width: usize) -> Result<Seat, ApiError> {
        let (mut waiter, dispatched) = {
            let mut queues = self.queues.lock();
            match queues.machine.arrive(id, width) {
                Arrival::Rejected(why) => return Err(queues.reject(id, why)),
                Arrival::Running { width } => {
                    *queues.dispatched.entry(id.level.clone()).or_default() += 1;
                    return Ok(Seat::new(&self.queues, id, width));
                }
                Arrival::Waiting { ticket, width } => {
                    let (sender, dispatched) = oneshot::channel();
                    queues.waiting.insert(ticket, sender);
                    let mut seat = Seat::new(&self.queues, id, width);
                    seat.held = false;
                    let seat = Some(seat);
                    (Waiter { ticket, seat }, dispatched)
                }
            }
        };
        let in_time = tokio::time::timeout(LONGEST_WAIT, dispatched).await.is_ok();
        if in_time && let Some(mut seat) = waiter.seat.take() {
            seat.held = true;
            let mut queues = self.queues.lock();
            *queues.dispatched.entry(id.level.clone()).or_default() += 1;
            drop(queues);
            return Ok(seat);
        }
        drop(waiter);
        Err(self.queues.lock().reject(id, Rejection::TimeOut))
    }
}

/// A request that waits for its seats.
struct Waiter {
    ticket: Ticket,
    /// The seats that it will have; gone once it has them.
    seat: Option<Seat>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let Some(seat) = &self.seat else { return };
        let mut queues = seat.queues.lock();
        queues.waiting.remove(&self.ticket);
        // Whoever was dispatched and did not live to see it gives the seats back.
        if !queues.machine.cancel(&seat.id, self.ticket) {
            queues.machine.release(&seat.id, seat.width);
        }
        queues.dispatch();
    }
}

/// Seats that a request holds. They are free again when this is dropped.
pub(crate) struct Seat {
    queues: Arc<Mutex<Queues>>,
    id: FlowId,
    width: usize,
    held: bool,
}

impl Seat {
    fn new(queues: &Arc<Mutex<Queues>>, id: &FlowId, width: usize) -> Self {
        Self {
            queues: queues.clone(),
            id: id.clone(),
            width,
            held: true,
        }
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.held) {
            self.queues.lock().release(&self.id, self.width);
        }
    }

    fn take_again(&mut self) {
        if !self.held {
            self.held = self.queues.lock().machine.retake(&self.id, self.width);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.give_back();
    }
}

tokio::task_local! {
    /// The seat of the request that the task is answering.
    static SEAT: SharedSeat;
}

/// A request's seat and how many of its parts are waiting for something at this moment.
type SharedSeat = Arc<Mutex<(Option<Seat>, usize)>>;

/// Answers a request with a seat, which [`release_while`] gives back for a while, and gives the seat back to the
/// caller. A task-local rather than a parameter: the places that wait are below layers that have no other business
/// with flow control.
pub(crate) async fn with_seat<F: Future>(seat: Seat, request: F) -> (F::Output, Option<Seat>) {
    let shared = SharedSeat::new(Mutex::new((Some(seat), 0)));
    let output = SEAT.scope(shared.clone(), request).await;
    let seat = shared.lock().0.take();
    (output, seat)
}

/// Waits for something that takes none of the server's time, such as a webhook or the disk. The seat of the request is
/// free meanwhile; outside of a request nothing is given back.
pub(crate) async fn release_while<F: Future>(wait: F) -> F::Output {
    let mut wait = pin!(wait);
    // What need not be waited for, such as the disk of a server in memory, leaves the seat alone.
    if let Poll::Ready(output) = futures::poll!(wait.as_mut()) {
        return output;
    }
    let _released = SEAT.try_with(Released::new).ok();
    wait.await
}

/// A seat that is given back until this is dropped.
struct Released(SharedSeat);

impl Released {
    fn new(shared: &SharedSeat) -> Self {
        let mut state = shared.lock();
        state.1 += 1;
        if state.1 == 1
            && let Some(seat) = &mut state.0
        {
            seat.give_back();
        }
        Self(shared.clone())
    }
}

impl Drop for Released {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.1 -= 1;
        if state.1 == 0
            && let Some(seat) = &mut state.0
        {
            seat.take_again();
        }
    }
}
