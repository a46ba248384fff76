//! The operator's process: started, killed, started again.

use std::fmt;
use std::sync::Arc;
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
use crate::life::{Life, View};
use crate::program::Program;
use crate::trace::Note;
use crate::wire::Wire;

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
    client: Client,
    environment: Environment,
    external: Option<Arc<dyn AnyExternal>>,
    life: Life,
    number: u32,
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

    /// The number of this process, from one: each restart has the next. For identities in leases, say.
    pub fn number(&self) -> u32 {
        self.number
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
        write!(f, "Process({})", self.number)
    }
}

/// What is done to the operator from outside.
enum Order {
    /// Kill it and start it again; with a revision, on an API server that has only reached that.
    Restart(Option<u64>),
}

/// The operator, as long as a run lasts. Whenever its process ends, another is started.
pub(crate) struct Operator {
    orders: mpsc::Sender<Order>,
    exits: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
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
    pub(crate) fn start(setting: Setting) -> Self {
        let (orders, received) = mpsc::channel(8);
        let exits = Arc::new(Mutex::new(Vec::new()));
        let mut task = JoinSet::new();
        task.spawn(keep(setting, received, exits.clone()));
        Self {
            orders,
            exits,
            _task: task,
        }
    }

    /// Kills the process and starts it again.
    pub(crate) async fn restart(&self) {
        let _ = self.orders.send(Order::Restart(None)).await;
    }

    /// Kills the process and starts it on an API server that has only reached a revision, and catches up later.
    pub(crate) async fn restart_at(&self, revision: u64) {
        let _ = self.orders.send(Order::Restart(Some(revision))).await;
    }

    /// How its processes ended by themselves, if that happened too often.
    pub(crate) fn exits(&self) -> Option<String> {
        let exits = self.exits.lock();
        (exits.len() >= ENDS as usize).then(|| exits[0].clone())
    }
}

/// Starts processes, one after the other.
async fn keep(setting: Setting, mut orders: mpsc::Receiver<Order>, exits: Arc<Mutex<Vec<String>>>) {
    let mut number = 0;
    let mut stale = None;
    while exits.lock().len() < ENDS as usize {
        number += 1;
        let view = Arc::new(View::of(stale.take()));
        let life = Life::new(setting.director.clone(), view.clone());
        setting.director.set_up(Up::Starting);
        setting.director.note(Note::Started(number));
        let mut process = JoinSet::new();
        process.spawn(run(setting.clone(), life.clone(), number));
        if life.held_at().is_some() {
            process.spawn(catch_up(view, setting.director.pace.stale_for));
        }
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
async fn ended(process: &mut JoinSet<Option<String>>) -> String {
    loop {
        match process.join_next().await {
            Some(Ok(Some(ended))) => return ended,
            // The API server has caught up.
            Some(Ok(None)) => {}
            Some(Err(error)) => return format!("panicked: {error}"),
            None => return "ended".to_owned(),
        }
    }
}

async fn catch_up(view: Arc<View>, after: Duration) -> Option<String> {
    sleep(after).await;
    view.release();
    None
}

async fn run(setting: Setting, life: Life, number: u32) -> Option<String> {
    let server = setting.cluster.server();
    let wire = Wire {
        service: server.service_as(User::admin()),
        cluster: setting.cluster.clone(),
        life: life.clone(),
    };
    let make = match &setting.start {
        Start::Manager(make) => make,
        Start::Program(program) => return Some(program.run(wire).await),
    };
    let kube = wire.client();
    let seed = setting.seed.wrapping_add(u64::from(number));
    let factory = Factory::new(kube.clone()).seed(seed);
    let gate = Arc::new(life.clone());
    let client = Client::builder(kube)
        .factory(factory)
        .consistency(setting.consistency)
        .gate(gate.clone())
        .build();
    let process = Process {
        client,
        environment: Environment::seeded(setting.clock.clone(), seed),
        external: setting.external.clone(),
        life,
        number,
    };
    let manager = make(&process).gate(gate);
    // It runs until it is dropped.
    let ended = manager.run_until(CancellationToken::new()).await;
    Some(match ended {
        Ok(()) => "ended".to_owned(),
        Err(error) => kubewright_runtime::Error::from(error).report(),
    })
}
