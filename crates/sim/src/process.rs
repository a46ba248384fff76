//! The operator's process: started, killed, started again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kubewright_cache::Factory;
use kubewright_cluster::{Clock, Cluster};
use kubewright_runtime::client::Consistency;
use kubewright_runtime::{CancellationToken, Client, Environment, Manager};
use kubewright_server::User;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::director::{Director, Up};
use crate::external::{AnyExternal, External, ExternalSystem};
use crate::life::Life;
use crate::program::Program;
use crate::trace::Note;
use crate::wire::Wire;

/// How much the clock of each replica is ahead of that of the one before.
const SKEW: Duration = Duration::from_secs(3);
/// How often a process may end by itself within one run.
const ENDS: u32 = 20;

/// Makes a manager for a process.
pub(crate) type MakeManager = Arc<dyn Fn(&Process) -> Manager + Send + Sync>;

/// What a process of the operator is.
#[derive(Clone)]
pub(crate) enum Start {
    /// A manager in this process.
    Manager(MakeManager),
    /// A program of its own.
    Program(Program),
}

/// A process of the operator that is about to start. It has everything that differs from production: the connection, the
/// clock, the random numbers.
pub struct Process {
    cluster: Arc<Cluster>,
    client: Client,
    environment: Environment,
    external: Option<Arc<dyn AnyExternal>>,
    life: Life,
    replica: u32,
}

impl Process {
    /// A manager over this process's connection, clock and random numbers. Add controllers to it, as `main` does.
    pub fn manager(&self) -> Manager {
        Manager::over(self.client.clone())
            .environment(self.environment.clone())
            .shutdown_timeout(Duration::from_secs(1))
    }

    /// The cached client of the manager.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The cluster of the run: to run some of its built-in controllers as this process, say.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The number of this process, from one: each start of any replica has the next. For identities in leases, say.
    pub fn number(&self) -> u32 {
        self.life.number
    }

    /// The replica that this is a process of, from zero.
    pub fn replica(&self) -> u32 {
        self.replica
    }

    /// The external system of the run, as this process reaches it.
    ///
    /// # Panics
    /// When the campaign has no external system of this type.
    pub fn external<E: ExternalSystem>(&self) -> External<E> {
        let system = self.external.clone();
        let system = system.expect("the campaign has an external system");
        let system = system.as_any().downcast::<E>();
        External {
            system: system.unwrap_or_else(|_| panic!("the external system is of another type")),
            life: self.life.clone(),
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Process({})", self.number())
    }
}

/// What is done to the operator from outside.
enum Order {
    /// Kill it and start it again; with a revision, on an API server that has only reached that.
    Restart(Option<u64>),
}

/// The operator, as long as a run lasts. Whenever a process of it ends, another is started.
pub(crate) struct Operator {
    /// One for each replica.
    orders: Vec<mpsc::Sender<Order>>,
    exits: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

/// One of the replicas.
struct Replica {
    setting: Setting,
    index: u32,
    exits: Arc<Mutex<Vec<String>>>,
    /// How many processes were started, of all replicas.
    started: Arc<AtomicU32>,
}

/// A clock that does not show what others show. Each replica has its own.
struct Ahead {
    clock: Clock,
    by: Duration,
}

impl kubewright_runtime::environment::Clock for Ahead {
    fn now(&self) -> jiff::Timestamp {
        self.clock
            .now()
            .saturating_add(self.by)
            .unwrap_or(jiff::Timestamp::MAX)
    }
}

/// What all processes of an operator have in common.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) director: Arc<Director>,
    pub(crate) start: Start,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) consistency: Consistency,
    pub(crate) external: Option<Arc<dyn AnyExternal>>,
}

impl Operator {
    pub(crate) fn start(setting: &Setting, replicas: u32) -> Self {
        let exits = Arc::new(Mutex::new(Vec::new()));
        let started = Arc::new(AtomicU32::new(0));
        let (mut tasks, mut orders) = (JoinSet::new(), Vec::new());
        for index in 0..replicas {
            let (sender, received) = mpsc::channel(8);
            let replica = Replica {
                setting: setting.clone(),
                index,
                exits: exits.clone(),
                started: started.clone(),
            };
            tasks.spawn(keep(replica, received));
            orders.push(sender);
        }
        Self {
            orders,
            exits,
            _tasks: tasks,
        }
    }

    /// Kills the processes and starts them again.
    pub(crate) async fn restart(&self) {
        self.order(None).await;
    }

    /// Kills the processes and starts them on an API server that has only reached a revision, and catches up later.
    pub(crate) async fn restart_at(&self, revision: u64) {
        self.order(Some(revision)).await;
    }

    async fn order(&self, revision: Option<u64>) {
        for replica in &self.orders {
            let _ = replica.send(Order::Restart(revision)).await;
        }
    }

    /// How its processes ended by themselves, if that happened too often.
    pub(crate) fn exits(&self) -> Option<String> {
        let exits = self.exits.lock();
        (exits.len() >= ENDS as usize).then(|| exits[0].clone())
    }
}

/// Starts processes, one after the other.
async fn keep(replica: Replica, mut orders: mpsc::Receiver<Order>) {
    let (setting, exits) = (&replica.setting, &replica.exits);
    let mut stale = None;
    while exits.lock().len() < ENDS as usize {
        let number = replica.started.fetch_add(1, Ordering::Relaxed) + 1;
        let life = Life::new(setting.director.clone(), number);
        if let Some(revision) = stale.take() {
            life.hold_front_end(revision);
        }
        setting.director.set_up(Up::Starting);
        setting.director.note(Note::Started(number));
        let mut process = JoinSet::new();
        process.spawn(run(setting.clone(), life.clone(), replica.index));
        let why = tokio::select! { biased; // A process that is killed does not end by itself.
            () = life.ended() => "killed".to_owned(),
            order = orders.recv() => match order {
                Some(Order::Restart(at)) => {
                    stale = at;
                    "killed".to_owned()
                }
                None => return,
            },
            ended = ended(&mut process) => {
                exits.lock().push(ended.clone());
                ended
            }
        };
        // Nothing gets out any more, and then the process is gone.
        life.end();
        setting.director.note_of(None, Note::Ended(why));
        process.shutdown().await;
        sleep(setting.director.pace.restarted_after).await;
    }
}

/// How a process ended by itself.
async fn ended(process: &mut JoinSet<String>) -> String {
    match process.join_next().await {
        Some(Ok(ended)) => ended,
        Some(Err(error)) => format!("panicked: {error}"),
        None => "ended".to_owned(),
    }
}

async fn run(setting: Setting, life: Life, replica: u32) -> String {
    let server = setting.cluster.server();
    let wire = Wire {
        service: server.service_as(User::admin()),
        cluster: setting.cluster.clone(),
        life: life.clone(),
    };
    let make = match &setting.start {
        Start::Manager(make) => make,
        Start::Program(program) => return program.run(wire).await,
    };
    let kube = wire.client();
    let seed = setting.seed.wrapping_add(u64::from(life.number));
    let factory = Factory::new(kube.clone()).seed(seed);
    let gate = Arc::new(life.clone());
    let client = Client::builder(kube)
        .factory(factory)
        .consistency(setting.consistency)
        .gate(gate.clone())
        .build();
    let clock = Ahead {
        clock: setting.clock.clone(),
        by: SKEW * replica,
    };
    let process = Process {
        cluster: setting.cluster.clone(),
        client,
        environment: Environment::seeded(clock, seed),
        external: setting.external.clone(),
        life,
        replica,
    };
    let manager = make(&process).gate(gate);
    // It runs until it is dropped.
    let ended = manager.run_until(CancellationToken::new()).await;
    match ended {
        Ok(()) => "ended".to_owned(),
        Err(error) => kubewright_runtime::Error::from(error).report(),
    }
}
