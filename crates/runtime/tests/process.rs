//! Whole processes: signals, leases that are lost while a thread is blocked, and processes that are held and go on.
//!
//! The processes are this test binary, started again with a role in its environment. `KUBEWRIGHT_HELD_RUNS` says how many
//! times one is held; by default a few.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use kubewright_runtime::{
    Client, Context, Controller, LeaseOptions, Manager, Outcome, Scope, from_fn,
};
use kubewright_server::{Endpoint, Server};
use kubewright_testing::{limit, seen};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

const ROLE: &str = "KUBEWRIGHT_TEST_ROLE";
const IDENTITY: &str = "KUBEWRIGHT_TEST_IDENTITY";

/// Short, so that the tests are; the margin between the last two is what a process has to end in.
const LEASE: Duration = Duration::from_secs(2);
const RENEW: Duration = Duration::from_millis(1_200);
const RETRY: Duration = Duration::from_millis(150);

/// The longest that anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest that a process lives: its parent may be gone, and then nobody ends it.
const LIFE: Duration = Duration::from_secs(300);

// What the processes do.

/// Not a test by itself: the process that others are about.
#[test]
fn process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    // Where the signals are looked at, not all threads are blocked.
    let threads = if role == "stuck" { 2 } else { 1 };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .expect("a runtime");
    // A thread, because those of the runtime may be blocked; without a word, because nobody may be left to read it.
    std::thread::spawn(|| {
        let (_nobody, end) = std::sync::mpsc::sync_channel::<()>(0);
        // Nobody sends: this is a wait for its time alone.
        let _ = end.recv_timeout(LIFE);
        std::process::exit(9);
    });
    let ended = runtime.block_on(act(&role));
    runtime.shutdown_background();
    println!("ended: {ended}");
    std::process::exit(7);
}

async fn act(role: &str) -> String {
    let identity = std::env::var(IDENTITY).unwrap_or_default();
    let reconciler = {
        let (role, identity) = (role.to_owned(), identity.clone());
        from_fn(move |config: Arc<ConfigMap>, cx: Context| {
            println!("reconciling");
            reconcile(role.clone(), identity.clone(), config, cx)
        })
    };
    let controller = Controller::of::<ConfigMap>("touch")
        .scope(
            Scope::all()
                .namespace("default")
                .fields("metadata.name=shared"),
        )
        .reconciler(reconciler);
    let manager = Manager::from_env().await.expect("the cluster is named");
    let lease = LeaseOptions::new("default", "lease", &identity)
        .lease_duration(LEASE)
        .renew_deadline(RENEW)
        .retry_period(RETRY);
    let manager = match role {
        "slow" => manager,
        "stuck" => manager.runnable(block),
        _ => manager.leader_election(lease),
    };
    match manager.controller(controller).run().await {
        Ok(()) => "well".to_owned(),
        Err(error) => error.to_string(),
    }
}

async fn reconcile(
    role: String,
    identity: String,
    config: Arc<ConfigMap>,
    cx: Context,
) -> Result<Outcome, kubewright_runtime::Error> {
    match role.as_str() {
        "slow" => sleep(Duration::from_secs(3_600)).await,
        // The thread is blocked, as by a system call that never returns.
        "blocked" => loop {
            std::thread::park();
        },
        "stuck" => {}
        _ => {
            // A merge patch names no version: nothing but the lease keeps two from writing.
            let sign = |config: &mut ConfigMap| {
                let data = config.data.get_or_insert_default();
                data.insert("writer".to_owned(), identity.clone());
                data.insert("run".to_owned(), cx.reconcile_id().to_string());
            };
            cx.client().modify(&*config, sign).await?;
        }
    }
    Ok(Outcome::requeue_after(Duration::from_millis(20)))
}

/// A part of the manager that can be neither finished nor dropped.
async fn block(_: CancellationToken) -> Result<(), kubewright_runtime::Error> {
    println!("blocking");
    loop {
        std::thread::park();
    }
}

// Those who look at them.

struct World {
    _server: Server,
    endpoint: Option<Endpoint>,
    client: kube::Client,
    _folder: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl World {
    async fn start() -> Self {
        let server = limit(Server::builder().start()).await;
        let server = server.expect("a server starts");
        seen("a server");
        let endpoint = limit(server.listen(([127, 0, 0, 1], 0).into())).await;
        let endpoint = endpoint.expect("it listens");
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        endpoint.write_kubeconfig(&kubeconfig).expect("written");
        let client = kube::Client::new(server.service(), "default");
        let mut shared = ConfigMap::default();
        shared.metadata.name = Some("shared".to_owned());
        shared.metadata.namespace = Some("default".to_owned());
        seen("its endpoint and kubeconfig");
        let created = limit(Client::new(client.clone()).create(&shared)).await;
        created.expect("it is created");
        Self {
            _server: server,
            endpoint: Some(endpoint),
            client,
            _folder: folder,
            kubeconfig,
        }
    }

    fn process(&self, role: &str, identity: &str) -> Process {
        Process::start(role, identity, &self.kubeconfig)
    }
}

struct Process {
    child: Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
    seen: Vec<String>,
}

impl Process {
    fn start(role: &str, identity: &str, kubeconfig: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["process", "--exact", "--nocapture"])
            .env(ROLE, role)
            .env(IDENTITY, identity)
            .env("KUBECONFIG", kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let out = child.stdout.take().expect("it is piped");
        Self {
            child,
            lines: BufReader::new(out).lines(),
            seen: Vec::new(),
        }
    }

    /// Reads until a line says this.
    async fn until(&mut self, text: &str) -> String {
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            match line {
                Ok(Ok(Some(line))) if line.contains(text) => return line,
                Ok(Ok(Some(line))) => self.seen.push(line),
                other => panic!("no {text}: {other:?}; last seen: {:?}", self.seen.last()),
            }
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &pid])
            .status();
        assert!(sent.expect("kill is there").success());
    }

    async fn exit_code(&mut self) -> Option<i32> {
        let ended = timeout(PATIENCE, self.child.wait()).await;
        let ended =
            ended.unwrap_or_else(|_| panic!("it runs on; last seen: {:?}", self.seen.last()));
        ended.expect("it is ours").code()
    }
}

/// Starts a process, waits until it does what takes long, and asks it to stop twice.
async fn check_second_signal(role: &str, begun: &str) {
    let world = World::start().await;
    let mut process = world.process(role, "a");
    process.until(begun).await;
    process.signal("-TERM");
    sleep(Duration::from_millis(300)).await;
    assert!(
        process.child.try_wait().expect("ours").is_none(),
        "it lets what runs finish"
    );
    process.signal("-TERM");
    let start = Instant::now();
    let line = process.until("ended: ").await;
    assert_eq!(
        line,
        "ended: asked to stop twice; what was running was not waited for"
    );
    assert_eq!(process.exit_code().await, Some(7));
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
}

#[limited::test]
async fn second_signal_ends_a_process_at_once() {
    check_second_signal("slow", "reconciling").await;
}

#[limited::test]
async fn second_signal_ends_a_process_whose_thread_is_blocked() {
    check_second_signal("stuck", "blocking").await;
}

/// The only thread of the runtime is blocked, so nobody there can notice that the lease is lost.
#[limited::test]
async fn process_whose_thread_is_blocked_has_ended_before_another_can_lead() {
    let world = World::start().await;
    let mut blocked = world.process("blocked", "a");
    blocked.until("reconciling").await;
    // From here on it cannot renew: its last renewal was before.
    let blocked_at = Instant::now();
    let mut other = world.process("replica", "b");
    let exited = tokio::spawn(async move {
        let code = blocked.exit_code().await;
        (code, Instant::now())
    });
    other.until("reconciling").await;
    let other_led = Instant::now();
    let (code, ended) = limit(exited).await.expect("no panic");
    assert_eq!(code, Some(3), "the watchdog ended it");
    assert!(
        ended < other_led,
        "it ended {:?} after it was blocked, the other led after {:?}",
        ended - blocked_at,
        other_led - blocked_at
    );
}

/// Who wrote the shared object, in the order of the server, each run of writes by one once.
async fn writers(client: kube::Client, found: Arc<parking_lot::Mutex<Vec<String>>>) {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let params = WatchParams::default().fields("metadata.name=shared");
    let events = limit(api.watch(&params, "0")).await;
    let mut events = events.expect("watched").boxed();
    while let Ok(Some(event)) = limit(events.try_next()).await {
        let (WatchEvent::Added(config) | WatchEvent::Modified(config)) = event else {
            continue;
        };
        let writer = config.data.unwrap_or_default().remove("writer");
        let mut found = found.lock();
        if let Some(writer) = writer
            && found.last() != Some(&writer)
        {
            seen(format!("written by {writer}"));
            found.push(writer);
        }
    }
}

/// Holds the leader for a while, as a debugger or a virtual machine that is moved does.
async fn held(run: u64) {
    let world = World::start().await;
    let found = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let watching = tokio::spawn(writers(world.client.clone(), found.clone()));
    let mut first = world.process("replica", "a");
    first.until("reconciling").await;
    let mut second = world.process("replica", "b");
    // Anywhere between two renewals, and from a blink to twice the lease.
    sleep(Duration::from_millis(run * 37 % 300)).await;
    let pause = Duration::from_millis(200 + run * 531 % 3_800);
    first.signal("-STOP");
    sleep(pause).await;
    let took_over = found.lock().contains(&"b".to_owned());
    first.signal("-CONT");
    if took_over {
        let code = first.exit_code().await;
        assert!(matches!(code, Some(3 | 7)), "run {run}: {code:?}");
    } else {
        sleep(LEASE / 2).await;
    }
    if pause > LEASE + RETRY * 4 {
        second.until("reconciling").await;
    }
    sleep(Duration::from_millis(500)).await;
    let found = found.lock().clone();
    let orderly = [vec!["a"], vec!["a", "b"]];
    assert!(
        orderly.iter().any(|order| found.iter().eq(order)),
        "run {run}, held for {pause:?}: {found:?}"
    );
    watching.abort();
    drop(world.endpoint);
}

#[limited::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_that_was_held_never_writes_after_another_leads() {
    let runs: u64 = std::env::var("KUBEWRIGHT_HELD_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok())
        .unwrap_or(4);
    for batch in (0..runs).collect::<Vec<_>>().chunks(4) {
        let held = batch.iter().map(|run| tokio::spawn(held(*run)));
        for ended in held.collect::<Vec<_>>() {
            let ended = timeout(PATIENCE * 2, ended).await;
            ended.expect("it takes seconds").expect("all is in order");
        }
    }
}
