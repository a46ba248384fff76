//! The logs of simulated containers: bounded, the current run and the one before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use imbl::OrdMap;
use jiff::Timestamp;
use kubewright_cache::Key;
use kubewright_server::{LogLine, LogOf, LogPiece, LogRun, MoreLog, NoLog, PodLogs};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::step::{Output, Written};

/// Most lines that are kept of a run that is played; the oldest go first. There may be fifty thousand of these.
const MOST_LINES: usize = 1_000;
/// Most bytes that are kept of a run that is real; the oldest lines go first. A kubelet keeps 10 MiB, on disk.
const MOST_BYTES: usize = 2 << 20;

/// How much is kept of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The lines of a container that is played.
    Lines,
    /// The bytes of a container that runs.
    Bytes,
}

/// The logs of all simulated containers. Clones are the same logs.
///
/// Give one to the server with `Server::builder().pod_logs(Arc::new(logs.clone()))` and to the nodes that fill it, and
/// `kubectl logs` works.
#[derive(Debug, Clone)]
pub struct Logs(Arc<Shelf>);

#[derive(Debug)]
struct Shelf {
    /// A copy of all logs is a clone of the root; what is written after that is copied then.
    pods: Mutex<OrdMap<Key, Arc<PodLog>>>,
    /// Changes with every line, to wake those who follow.
    version: watch::Sender<u64>,
}

#[derive(Debug, Clone, Default)]
struct PodLog {
    uid: String,
    containers: BTreeMap<String, ContainerLog>,
}

#[derive(Debug, Clone, Default)]
struct ContainerLog {
    current: Option<RunLog>,
    previous: Option<RunLog>,
}

#[derive(Debug, Clone, Default)]
struct RunLog {
    lines: VecDeque<LogLine>,
    /// The bytes of all lines that are kept.
    bytes: usize,
    /// How many lines are kept no longer.
    gone: u64,
    ended: bool,
}

impl Default for Logs {
    fn default() -> Self {
        Self(Arc::new(Shelf {
            pods: Mutex::default(),
            version: watch::Sender::new(0),
        }))
    }
}

impl Logs {
    /// Writes down what containers of a pod wrote.
    pub(crate) fn write(
        &self,
        key: &Key,
        uid: &str,
        now: Timestamp,
        output: Vec<Output>,
        keep: Keep,
    ) {
        if output.is_empty() {
            return;
        }
        let mut pods = self.0.pods.lock();
        let pod = Arc::make_mut(pods.entry(key.clone()).or_default());
        if pod.uid != uid {
            *pod = PodLog {
                uid: uid.to_owned(),
                ..PodLog::default()
            };
        }
        for Output { container, what } in output {
            let log = pod.containers.entry(container).or_default();
            match what {
                Written::Begin => log.previous = log.current.replace(RunLog::default()),
                Written::Line(text) => {
                    let line = LogLine { at: now, text };
                    log.current.get_or_insert_default().push(line, keep);
                }
                Written::End => log.current.get_or_insert_default().ended = true,
            }
        }
        drop(pods);
        self.0.version.send_modify(|version| *version += 1);
    }

    /// The same logs, from now on written and forgotten independently.
    pub(crate) fn copy(&self) -> Self {
        Self(Arc::new(Shelf {
            pods: Mutex::new(self.0.pods.lock().clone()),
            version: watch::Sender::new(0),
        }))
    }

    /// Forgets the logs of a pod.
    pub(crate) fn forget(&self, key: &Key) {
        let forgotten = self.0.pods.lock().remove(key).is_some();
        if forgotten {
            self.0.version.send_modify(|version| *version += 1);
        }
    }
}

impl RunLog {
    fn push(&mut self, line: LogLine, keep: Keep) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.is_full(keep) {
            if let Some(oldest) = self.lines.pop_front() {
                self.bytes -= oldest.text.len();
                self.gone += 1;
            }
        }
    }

    /// Whether there is more than is kept. The last line always is.
    fn is_full(&self, keep: Keep) -> bool {
        let most = match keep {
            Keep::Lines => self.lines.len() > MOST_LINES,
            // An empty line takes room as well.
            Keep::Bytes => self.bytes + self.lines.len() > MOST_BYTES,
        };
        most && self.lines.len() > 1
    }
}

impl PodLogs for Logs {
    fn read(&self, of: &LogOf, from: u64) -> Result<LogPiece, NoLog> {
        // Before the lines are looked at: what is written after that wakes the reader.
        let mut version = self.0.version.subscribe();
        let pods = self.0.pods.lock();
        let pod = pods
            .get(&Key::new(&of.namespace, &of.pod))
            .filter(|pod| pod.uid == of.uid);
        let log = pod.and_then(|pod| pod.containers.get(&of.container));
        let run = match of.run {
            LogRun::Previous => log
                .and_then(|l| l.previous.as_ref())
                .ok_or(NoLog::NoPrevious)?,
            LogRun::Current => log
                .and_then(|l| l.current.as_ref())
                .ok_or_else(|| NoLog::NotStarted("ContainerCreating".to_owned()))?,
        };
        let skip = usize::try_from(from.saturating_sub(run.gone)).unwrap_or(usize::MAX);
        let lines: Vec<LogLine> = run.lines.iter().skip(skip).cloned().collect();
        let over = run.ended || of.run == LogRun::Previous;
        Ok(LogPiece {
            next: run.gone + run.lines.len() as u64,
            lines,
            more: if over {
                MoreLog::Never
            } else {
                MoreLog::After(Box::pin(async move {
                    // An error means that the logs are gone, which the next read tells.
                    let _ = version.changed().await;
                }))
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(run: LogRun) -> LogOf {
        LogOf::new("default", "p", "app").uid("u").run(run)
    }

    fn written(what: Vec<Written>) -> Vec<Output> {
        let container = "app".to_owned();
        let output = |what| Output {
            container: container.clone(),
            what,
        };
        what.into_iter().map(output).collect()
    }

    fn texts(logs: &Logs, run: LogRun, from: u64) -> Vec<String> {
        let piece = logs.read(&of(run), from).expect("a log");
        piece.lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_new_run_makes_the_old_one_the_previous() {
        let (logs, key, now) = (
            Logs::default(),
            Key::new("default", "p"),
            Timestamp::UNIX_EPOCH,
        );
        let missing = logs.read(&of(LogRun::Current), 0).expect_err("nothing yet");
        assert_eq!(missing, NoLog::NotStarted("ContainerCreating".to_owned()));
        for run in ["one", "two"] {
            let lines = vec![Written::Begin, Written::Line(run.to_owned())];
            logs.write(&key, "u", now, written(lines), Keep::Lines);
        }
        assert_eq!(texts(&logs, LogRun::Previous, 0), ["one"]);
        assert_eq!(texts(&logs, LogRun::Current, 0), ["two"]);
        logs.write(
            &key,
            "another",
            now,
            written(vec![Written::Begin]),
            Keep::Lines,
        );
        assert!(logs.read(&of(LogRun::Current), 0).is_err());
    }

    #[test]
    fn a_copy_goes_its_own_way() {
        let (logs, key, now) = (
            Logs::default(),
            Key::new("default", "p"),
            Timestamp::UNIX_EPOCH,
        );
        let line = |text: &str| written(vec![Written::Line(text.to_owned())]);
        logs.write(&key, "u", now, line("before"), Keep::Lines);
        let copy = logs.copy();
        logs.write(&key, "u", now, line("here"), Keep::Lines);
        copy.write(&key, "u", now, line("there"), Keep::Lines);
        assert_eq!(texts(&logs, LogRun::Current, 0), ["before", "here"]);
        assert_eq!(texts(&copy, LogRun::Current, 0), ["before", "there"]);
        logs.forget(&key);
        assert!(copy.read(&of(LogRun::Current), 0).is_ok());
    }

    #[tokio::test]
    async fn reader_is_woken_by_more_and_by_the_end() {
        let (logs, key, now) = (
            Logs::default(),
            Key::new("default", "p"),
            Timestamp::UNIX_EPOCH,
        );
        let line = |i: usize| Written::Line(i.to_string());
        let many = std::iter::once(Written::Begin).chain((0..MOST_LINES + 5).map(line));
        logs.write(&key, "u", now, written(many.collect()), Keep::Lines);
        let piece = logs.read(&of(LogRun::Current), 0).expect("a log");
        assert_eq!(
            (piece.lines.len(), piece.lines[0].text.as_str()),
            (MOST_LINES, "5")
        );
        let MoreLog::After(more) = piece.more else {
            panic!("it goes on");
        };
        let last = vec![Written::Line("last".to_owned()), Written::End];
        logs.write(&key, "u", now, written(last), Keep::Lines);
        more.await;
        let piece = logs.read(&of(LogRun::Current), piece.next).expect("a log");
        assert_eq!(piece.lines[0].text, "last");
        assert!(matches!(piece.more, MoreLog::Never));
    }

    #[test]
    fn a_container_that_runs_has_its_last_bytes_kept() {
        let (logs, key, now) = (
            Logs::default(),
            Key::new("default", "p"),
            Timestamp::UNIX_EPOCH,
        );
        let line = |size: usize| Written::Line("x".repeat(size));
        let many = std::iter::once(Written::Begin).chain((0..2 * MOST_LINES).map(|_| line(10)));
        logs.write(&key, "u", now, written(many.collect()), Keep::Bytes);
        assert_eq!(texts(&logs, LogRun::Current, 0).len(), 2 * MOST_LINES);
        let large = (0..11).map(|_| line(1 << 18)).collect();
        logs.write(&key, "u", now, written(large), Keep::Bytes);
        let kept = texts(&logs, LogRun::Current, 0);
        assert_eq!((kept.len(), kept[0].len()), (7, 1 << 18));
        logs.write(
            &key,
            "u",
            now,
            written(vec![line(MOST_BYTES * 2)]),
            Keep::Bytes,
        );
        assert_eq!(texts(&logs, LogRun::Current, 0).len(), 1);
    }
}
