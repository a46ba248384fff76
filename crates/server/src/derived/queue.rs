//! What the server itself has to write because of another write, in order and until it is done.
//!
//! A task is in the queue from the change that makes it necessary until it was done without another such change in
//! between. It is about an object as it is when the task runs, so any number of changes is one task.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

/// The longest time between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(10);
const FIRST_BACKOFF: Duration = Duration::from_millis(10);
/// The longest time that a request waits for what follows from it. It is done in any case.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many tasks about ClusterRoles follow each other at once. Aggregated roles may select each other in circles.
const MAX_STREAK: u32 = 256;

/// One object that the server has to bring up to date.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// Accepts the names of a CustomResourceDefinition, or tears it down.
    Definition(String),
    /// Computes the rules of an aggregated ClusterRole.
    ClusterRole(String),
    /// Makes the IPAddress of this name, or takes it away, as the Services have it.
    IpAddress(String),
    /// Says in a ServiceCIDR that it is ready, or lets one go that is deleted.
    ServiceCidr(String),
}

impl Task {
    pub(crate) fn service_cidr(name: &str) -> Self {
        Task::ServiceCidr(name.to_owned())
    }
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// There is more to do; others come first.
    Again,
    /// It cannot be done now.
    Failed,
}

/// The tasks of one server. Every operation takes time by the logarithm of their number at most.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    added: Notify,
    /// Notified when no task about a ClusterRole is left that could be done now.
    roles_done: Notify,
}

/// Every entry is in exactly one of `objects`, `roles` and `delayed`, under its sequence.
#[derive(Debug, Default)]
struct State {
    entries: HashMap<Task, Entry>,
    /// Tasks about anything but ClusterRoles that can be done now, in order.
    objects: BTreeMap<u64, Task>,
    /// Tasks about ClusterRoles that can be done now, in order.
    roles: BTreeMap<u64, Task>,
    /// Tasks that wait for another attempt.
    delayed: BTreeMap<(Instant, u64), Task>,
    /// Those who wait until all `objects` up to a sequence were tried.
    waiting: BTreeMap<u64, Vec<oneshot::Sender<()>>>,
    /// Grows with each addition.
    sequence: u64,
    /// Tasks about ClusterRoles since none was waiting.
    streak: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// When it was last added: lower ones are done first.
    sequence: u64,
    /// Set while the task waits for another attempt.
    due: Option<Instant>,
    failures: u32,
}

/// A task that is being done, as it was when it was taken.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) task: Task,
    sequence: u64,
}

impl State {
    fn add(&mut self, task: Task, due: Option<Instant>, failures: u32) {
        self.remove(&task);
        self.sequence += 1;
        let sequence = self.sequence;
        match due {
            Some(due) => drop(self.delayed.insert((due, sequence), task.clone())),
            None => drop(self.ready(&task).insert(sequence, task.clone())),
        }
        let entry = Entry {
            sequence,
            due,
            failures,
        };
        self.entries.insert(task, entry);
    }

    fn remove(&mut self, task: &Task) -> Option<Entry> {
        let entry = self.entries.remove(task)?;
        match entry.due {
            Some(due) => self.delayed.remove(&(due, entry.sequence)),
            None => self.ready(task).remove(&entry.sequence),
        };
        Some(entry)
    }

    /// The tasks like this one that can be done now.
    fn ready(&mut self, task: &Task) -> &mut BTreeMap<u64, Task> {
        match task {
            Task::ClusterRole(_) => &mut self.roles,
            Task::Definition(_) | Task::IpAddress(_) | Task::ServiceCidr(_) => &mut self.objects,
        }
    }

    /// Moves tasks to those that can be done whose time has come.
    fn wake(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry()
            && first.key().0 <= now
        {
            let ((_, sequence), task) = first.remove_entry();
            if let Some(entry) = self.entries.get_mut(&task) {
                entry.due = None;
            }
            self.ready(&task).insert(sequence, task);
        }
    }

    /// The task that was added first of those that can be done now.
    fn first(&self) -> Option<(u64, &Task)> {
        let firsts = [&self.objects, &self.roles].map(BTreeMap::first_key_value);
        let first = firsts.into_iter().flatten().min_by_key(|(at, _)| **at);
        first.map(|(sequence, task)| (*sequence, task))
    }

    /// Tells those who wait for tasks that were all tried.
    fn release_waiting(&mut self) {
        let untried = self.objects.first_key_value().map(|(at, _)| *at);
        while let Some(first) = self.waiting.first_entry()
            && untried.is_none_or(|untried| *first.key() < untried)
        {
            // Whoever hung up meanwhile does not listen any more.
            first.remove().into_iter().for_each(|waiting| {
                let _ = waiting.send(());
            });
        }
    }
}

impl Queue {
    /// Adds tasks. One that is being done will be done again.
    pub(crate) fn extend(&self, tasks: impl IntoIterator<Item = Task>) {
        let mut tasks = tasks.into_iter().peekable();
        if tasks.peek().is_none() {
            return;
        }
        let mut state = self.state.lock();
        for task in tasks {
            let circles = matches!(task, Task::ClusterRole(_)) && state.streak >= MAX_STREAK;
            let due = circles.then(|| Instant::now() + MAX_BACKOFF);
            if circles {
                tracing::warn!(?task, "aggregated roles select each other in circles");
            }
            state.add(task, due, 0);
        }
        drop(state);
        self.added.notify_one();
    }

    /// Adds a task, if there is one.
    pub(crate) fn extend_some(&self, task: Option<Task>) {
        if task.is_some() {
            self.extend(task);
        }
    }

    /// Forgets all tasks; whoever waits for one has waited enough.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        *state = State {
            sequence: state.sequence,
            ..State::default()
        };
        drop(state);
        self.roles_done.notify_waiters();
    }

    /// The next task to be done, if there is one. It stays in the queue until [`Queue::finish`].
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        state.wake(Instant::now());
        state.first().map(|(sequence, task)| Taken {
            task: task.clone(),
            sequence,
        })
    }

    /// Waits until there may be a task.
    pub(crate) async fn ready(&self) {
        let due = {
            let state = self.state.lock();
            let first = state.delayed.first_key_value();
            first.map(|((due, _), _)| *due)
        };
        match due {
            None => self.added.notified().await,
            Some(due) => tokio::select! {
                () = self.added.notified() => {}
                () = sleep_until(due) => {}
            },
        }
    }

    /// Says how a task ended.
    pub(crate) fn finish(&self, taken: Taken, outcome: Outcome) {
        let mut state = self.state.lock();
        if matches!(taken.task, Task::ClusterRole(_)) {
            state.streak += 1;
        }
        // One that was added again meanwhile is left alone.
        let entry = state.entries.get(&taken.task).copied();
        if let Some(entry) = entry.filter(|entry| entry.sequence == taken.sequence) {
            match outcome {
                Outcome::Done => drop(state.remove(&taken.task)),
                Outcome::Again => state.add(taken.task, None, 0),
                Outcome::Failed => {
                    let backoff = FIRST_BACKOFF * 2_u32.pow(entry.failures.min(10));
                    let due = Instant::now() + backoff.min(MAX_BACKOFF);
                    state.add(taken.task, Some(due), entry.failures + 1);
                }
            }
        }
        state.release_waiting();
        if state.roles.is_empty() {
            state.streak = 0;
            drop(state);
            self.roles_done.notify_waiters();
        }
    }

    /// Waits until every task that is in the queue now was tried, but for those about ClusterRoles.
    pub(crate) async fn objects_tried(&self) {
        let tried = {
            let mut state = self.state.lock();
            let last = state.sequence;
            let first = state.objects.first_key_value();
            if first.is_none_or(|(first, _)| *first > last) {
                return;
            }
            let (tell, tried) = oneshot::channel();
            state.waiting.entry(last).or_default().push(tell);
            tried
        };
        // Too late is no failure: the task is not the request's, and goes on.
        let _ = timeout(PATIENCE, tried).await;
    }

    /// Waits until aggregated roles are what they come to, or cannot be for now.
    pub(crate) async fn roles_done(&self) {
        let done = async {
            loop {
                let mut done = std::pin::pin!(self.roles_done.notified());
                done.as_mut().enable();
                if self.state.lock().roles.is_empty() {
                    return;
                }
                done.await;
            }
        };
        let _ = timeout(PATIENCE, done).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str) -> Task {
        Task::Definition(name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_added_while_it_is_done_is_done_again() {
        let queue = Queue::default();
        queue.extend([definition("a"), definition("b")]);
        let first = queue.take().expect("there");
        assert_eq!(first.task, definition("a"));
        queue.extend([definition("a")]);
        queue.finish(first, Outcome::Done);
        let second = queue.take().expect("there");
        assert_eq!(second.task, definition("b"));
        queue.finish(second, Outcome::Done);
        let third = queue.take().expect("it was added meanwhile");
        queue.finish(third, Outcome::Failed);
        assert!(queue.take().is_none(), "it is not due");
        let again = loop {
            // Wakes for additions that were taken already, too.
            queue.ready().await;
            if let Some(taken) = queue.take() {
                break taken;
            }
        };
        queue.finish(again, Outcome::Done);
        assert!(queue.take().is_none());
        queue.objects_tried().await;
    }

    #[tokio::test(start_paused = true)]
    async fn roles_in_a_circle_do_not_run_for_ever() {
        let queue = Queue::default();
        let role = || Task::ClusterRole("a".to_owned());
        queue.extend([role()]);
        let mut runs = 0;
        while let Some(taken) = queue.take() {
            runs += 1;
            queue.extend([role()]);
            queue.finish(taken, Outcome::Done);
        }
        assert_eq!(runs, MAX_STREAK + 1);
        queue.roles_done().await;
    }
}
