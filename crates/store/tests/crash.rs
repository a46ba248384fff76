//! Kills a process under write load two hundred times and checks what is left each time.
//!
//! The test runs itself again as the process to kill. The child says what it is about to do, what it has seen and what
//! was acknowledged; the parent reads some of that, kills it, and compares a copy of the directory with what it was
//! acknowledged_state.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kubewright_store::environment::Environment;
use kubewright_store::{
    At, Collection, Draft, Fsync, OpenOptions, Pairs, Record, Recovery, Store, Write,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

const KILLS: u64 = 200;
const WRITERS: usize = 8;
const KEYS: usize = 3;
/// Set for the child: the directory and the number of its life.
const DIRECTORY: &str = "KUBEWRIGHT_CRASH_DIRECTORY";
const LIFE: &str = "KUBEWRIGHT_CRASH_LIFE";
const NAME: &str = "acknowledged_writes_survive_two_hundred_kills";

#[test]
fn acknowledged_writes_survive_two_hundred_kills() {
    match std::env::var_os(DIRECTORY) {
        Some(directory) => child(Path::new(&directory)),
        None => parent(),
    }
}

fn open(directory: &Path, life: u64) -> (Store, Recovery) {
    // The promise that is tested, against the end of the process, is the same for all three.
    let fsync = match life % 3 {
        0 => Fsync::Always,
        1 => Fsync::Interval(Duration::from_millis(2)),
        _ => Fsync::Never,
    };
    // Small, so that images are written all the time.
    let options = OpenOptions::default().fsync(fsync).image_after(8_000);
    Store::open(directory, options, Environment::system())
        .expect("a crash leaves nothing that cannot be opened")
}

// The child: writers with keys of their own, each doing one thing after the other.

fn child(directory: &Path) {
    let life = std::env::var(LIFE).ok().and_then(|life| life.parse().ok());
    let life = life.expect("the parent sets it");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build();
    runtime.expect("threads can be started").block_on(async {
        let (store, recovery) = open(directory, life);
        say(&format!(
            "open {} {}",
            recovery.revision, recovery.truncated_bytes
        ));
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            writers.spawn(write_forever(store.collection("pods"), writer, life));
        }
        writers.join_all().await;
    });
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may be gone; then so are we.
    let said = out
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush());
    said.unwrap_or_else(|_| std::process::exit(0));
}

async fn write_forever(pods: Collection, writer: usize, life: u64) {
    let mut random = StdRng::seed_from_u64(life * 1_000 + writer as u64);
    for count in 0u64.. {
        let key = format!("w{writer}/{}", random.random_range(0..KEYS));
        let value = format!("{life}-{count}-{}", "x".repeat(random.random_range(0..300)));
        let (verb, write) = match pods.get(&key) {
            None => (
                "put",
                Write::Create {
                    draft: draft(&format!("{key}-{life}-{count}"), &value),
                    key: key.clone(),
                },
            ),
            Some(old) if random.random_range(0..4) == 0 => (
                "delete",
                Write::Delete {
                    key: key.clone(),
                    expected_revision: old.revision(),
                },
            ),
            Some(old) => (
                "put",
                Write::Update {
                    draft: draft(old.uid(), &value),
                    key: key.clone(),
                    expected_revision: old.revision(),
                },
            ),
        };
        say(&format!("try {verb} {key}"));
        let done = pods
            .commit(write)
            .expect("one writer per key, and never behind by a whole reservation");
        say(&format!("seen {}", done.record.revision()));
        done.durability.wait().await.expect("the disk works");
        say(&format!(
            "done {verb} {key} {} {}",
            done.record.revision(),
            done.record.uid()
        ));
    }
}

fn draft(uid: &str, value: &str) -> Draft {
    let head = r#"{"resourceVersion":""#;
    Draft {
        uid: uid.into(),
        labels: [("uid", uid)].into_iter().collect(),
        fields: Pairs::default(),
        body: format!(r#"{head}","uid":"{uid}","value":"{value}"}}"#).into_bytes(),
        version_at: head.len(),
    }
}

// The parent: what was acknowledged, and what must therefore be there.

/// The last that is known of one key.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    Present { revision: u64, uid: String },
    Absent { since: u64 },
}

#[derive(Debug, Default)]
struct AcknowledgedState {
    known: BTreeMap<String, Known>,
    /// What was being tried when the end came.
    trying: BTreeMap<String, &'static str>,
    highest: u64,
    opened: Option<(u64, u64)>,
    acknowledged: u64,
}

impl AcknowledgedState {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["open", revision, torn] => {
                let revision = number(revision);
                assert!(
                    revision > self.highest,
                    "revisions go back: {revision} after {}",
                    self.highest
                );
                self.opened = Some((revision, number(torn)));
            }
            ["try", verb, key] => {
                let verb = if verb == "delete" { "delete" } else { "put" };
                self.trying.insert(key.to_owned(), verb);
            }
            ["seen", revision] => self.highest = self.highest.max(number(revision)),
            ["done", verb, key, revision, uid] => {
                let (revision, uid) = (number(revision), uid.to_owned());
                let known = match verb {
                    "delete" => Known::Absent { since: revision },
                    _ => Known::Present { revision, uid },
                };
                self.known.insert(key.to_owned(), known);
                self.trying.remove(key);
                self.acknowledged += 1;
            }
            _ => {} // The test harness has things to say, too.
        }
    }

    /// Compares what is there with what was acknowledged, and takes it as known.
    fn verify(&mut self, store: &Store) {
        let pods = store
            .collection("pods")
            .snapshot(At::Latest)
            .expect("the latest is known");
        for (key, known) in &self.known {
            let trying = self.trying.get(key).copied();
            verify_one(key, known, trying, pods.get(key).map(|r| &**r));
        }
        self.trying.clear();
        let absent = |key: &String| (key.clone(), Known::Absent { since: 0 });
        let mut known: BTreeMap<_, _> = self.known.keys().map(absent).collect();
        for record in pods.range("", None) {
            check_body(record);
            self.highest = self.highest.max(record.revision());
            known.insert(
                record.key().to_owned(),
                Known::Present {
                    revision: record.revision(),
                    uid: record.uid().to_owned(),
                },
            );
        }
        self.known = known;
    }
}

fn verify_one(key: &str, known: &Known, trying: Option<&str>, found: Option<&Record>) {
    match (known, found) {
        (Known::Absent { .. }, None) => {}
        (Known::Present { .. }, None) => {
            assert_eq!(trying, Some("delete"), "{key} is lost: {known:?}");
        }
        (Known::Absent { since }, Some(record)) => {
            assert!(
                trying.is_some() && record.revision() > *since,
                "{key} is back: {record:?}"
            );
        }
        (Known::Present { revision, uid }, Some(record)) => {
            assert_eq!(record.uid(), uid, "{key} is another object");
            let ahead = record.revision() > *revision && trying.is_some();
            assert!(
                ahead || record.revision() == *revision,
                "{key}: {known:?} {record:?}"
            );
        }
    }
}

/// A record is whole: its parts say the same.
fn check_body(record: &Record) {
    let body = std::str::from_utf8(record.body()).expect("it was text");
    let head = format!(
        r#"{{"resourceVersion":"{}","uid":"{}","#,
        record.revision(),
        record.uid()
    );
    assert!(body.starts_with(&head) && body.ends_with(r#""}"#), "{body}");
    assert_eq!(record.labels().get("uid"), Some(record.uid()));
}

fn number(text: &str) -> u64 {
    text.parse().expect("the child says numbers")
}

fn parent() {
    let data = TempDir::new().expect("there is room");
    let mut random = StdRng::seed_from_u64(42);
    let mut acknowledged_state = AcknowledgedState::default();
    let (mut torn, mut torn_reports) = (0, 0);
    for life in 0..KILLS {
        if life % 4 == 3 && torn == 0 {
            torn = tear(data.path(), &mut random);
        }
        acknowledged_state.opened = None;
        live_and_die(
            data.path(),
            life,
            random.random_range(0..400),
            &mut acknowledged_state,
        );
        if let Some((_, reported)) = acknowledged_state.opened {
            assert_eq!(reported, torn, "of a torn tail");
            torn_reports += u64::from(torn > 0);
        }
        let copy = copy(data.path());
        let (store, recovery) = open(copy.path(), 2);
        assert!(
            recovery.revision > acknowledged_state.highest,
            "{} after {}",
            recovery.revision,
            acknowledged_state.highest
        );
        acknowledged_state.verify(&store);
        torn = recovery.truncated_bytes;
    }
    assert!(
        acknowledged_state.acknowledged > 10 * KILLS,
        "only {} writes",
        acknowledged_state.acknowledged
    );
    assert!(torn_reports > 10, "only {torn_reports} torn tails");
}

/// Starts a child, reads some lines, kills it, and reads what it had said until then.
fn live_and_die(
    directory: &Path,
    life: u64,
    lines: usize,
    acknowledged_state: &mut AcknowledgedState,
) {
    let exe = std::env::current_exe().expect("the test is a file");
    let mut child = Command::new(exe)
        .args([NAME, "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(LIFE, life.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a process can be started");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    for count in 0.. {
        if count == lines {
            child.kill().expect("it is alive or a zombie");
        }
        let mut line = String::new();
        out.read_line(&mut line).expect("the child says text");
        match line.strip_suffix('\n') {
            Some(line) => acknowledged_state.hear(line),
            None if line.is_empty() => break,
            None => {} // Its last words, cut short.
        }
    }
    child.wait().expect("it has been killed");
}

/// Leaves the beginning of a record at the end of the log, as a write that was cut short does. Not in a segment that
/// has not got its first record yet: there, nothing else can follow.
fn tear(directory: &Path, random: &mut StdRng) -> u64 {
    let mut files = files(directory).into_iter();
    let Some(last) = files.rfind(|f| f.to_string_lossy().contains("log-")) else {
        return 0;
    };
    if fs::metadata(&last).expect("it exists").len() < 29 {
        return 0;
    }
    let length = random.random_range(1..200);
    let mut tail = vec![0x55; length];
    tail[..length.min(4)].copy_from_slice(&5_000u32.to_le_bytes()[..length.min(4)]);
    let mut file = File::options().append(true).open(last).expect("it exists");
    file.write_all(&tail).expect("there is room");
    length as u64
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory).expect("it exists");
    let mut files: Vec<_> = files.map(|f| f.expect("it exists").path()).collect();
    files.sort();
    files
}

fn copy(directory: &Path) -> TempDir {
    let copy = TempDir::new().expect("there is room");
    for file in files(directory) {
        let name = file.file_name().expect("files have names");
        fs::copy(&file, copy.path().join(name)).expect("there is room");
    }
    copy
}
