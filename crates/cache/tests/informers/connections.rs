//! Informers over sockets, on several threads, whose connections are cut repeatedly.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, LimitRange, Secret, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::ApiResource;
use kubewright_cache::{Event, Factory, Registration, Scope, SharedInformer};
use kubewright_server::{Endpoint, Server};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take, by the clock of the machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// So many objects of each kind are made in a round.
const OBJECTS: usize = 20;

fn kinds() -> [ApiResource; 8] {
    [
        ApiResource::erase::<ConfigMap>(&()),
        ApiResource::erase::<Secret>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
        ApiResource::erase::<Endpoints>(&()),
        ApiResource::erase::<LimitRange>(&()),
        ApiResource::erase::<NetworkPolicy>(&()),
        ApiResource::erase::<Lease>(&()),
        ApiResource::erase::<Role>(&()),
    ]
}

/// Carries bytes between clients and a server, and can cut a connection.
struct Relay {
    address: SocketAddr,
    carried: Arc<Mutex<Vec<AbortHandle>>>,
    _task: JoinSet<()>,
}

impl Relay {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let carried: Arc<Mutex<Vec<AbortHandle>>> = Arc::default();
        let known = carried.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut carriers = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                known.lock().push(carriers.spawn(carry(client, server)));
            }
        });
        Self {
            address,
            carried,
            _task: task,
        }
    }

    /// Cuts the oldest connection that is open.
    fn cut_one(&self) {
        let carried = self.carried.lock();
        let open = carried.iter().find(|carrier| !carrier.is_finished());
        open.expect("a connection is open").abort();
    }
}

async fn carry(mut client: TcpStream, server: SocketAddr) {
    let mut server = TcpStream::connect(server)
        .await
        .expect("the server listens");
    // Ends with an error when a side is gone.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

/// How often each object was said to be new, and the last round that its label shows.
type Heard = Arc<Mutex<BTreeMap<String, (usize, String)>>>;

/// An informer of one kind, and what its handler heard.
struct Followed {
    informer: SharedInformer<DynamicObject>,
    registration: Registration,
    heard: Heard,
}

fn follow(factory: &Factory, resource: &ApiResource) -> Followed {
    let informer = factory.dynamic(resource, Scope::all().namespace("default"));
    let heard = Heard::default();
    let note = heard.clone();
    let handler = move |event: Event<DynamicObject>| {
        let object = event.object();
        let round = object.label("round").map(|it| it.to_string());
        let mut heard = note.lock();
        let entry = heard.entry(object.key().name().to_owned()).or_default();
        entry.0 += usize::from(matches!(event, Event::Added { .. }));
        entry.1 = round.unwrap_or_default();
    };
    let registration = informer.add_handler(handler).expect("it runs");
    Followed {
        informer,
        registration,
        heard,
    }
}

struct World {
    _server: Server,
    _endpoint: Endpoint,
    relay: Relay,
    admin: kube::Client,
    factory: Factory,
}

impl World {
    async fn new() -> Self {
        let server = Server::builder().start().await.expect("a server");
        let address = "127.0.0.1:0".parse().expect("an address");
        let endpoint = server.listen(address).await.expect("it listens");
        let relay = Relay::to(endpoint.address()).await;
        let kubeconfig = Kubeconfig::from_yaml(endpoint.kubeconfig().as_str()).expect("it is one");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.expect("a configuration");
        let scheme = config.cluster_url.scheme_str().unwrap_or("http");
        let url = format!("{scheme}://{}", relay.address);
        config.cluster_url = url.parse().expect("an address");
        let client = kube::Client::try_from(config);
        Self {
            admin: kube::Client::new(server.service(), "default"),
            factory: Factory::new(client.expect("a client")),
            relay,
            _endpoint: endpoint,
            _server: server,
        }
    }

    /// Makes objects of all kinds at once, and changes each of them.
    async fn write(&self, round: usize) {
        let mut writers = JoinSet::new();
        for resource in kinds() {
            let api: Api<DynamicObject> =
                Api::default_namespaced_with(self.admin.clone(), &resource);
            writers.spawn(async move {
                for at in 0..OBJECTS {
                    write(&api, &resource, &format!("it-{round}-{at}"), round).await;
                }
            });
        }
        timeout(PATIENCE, writers.join_all())
            .await
            .expect("writers end");
    }
}

async fn write(api: &Api<DynamicObject>, resource: &ApiResource, name: &str, round: usize) {
    let mut object = DynamicObject::new(name, resource);
    object.data = match resource.kind.as_str() {
        "LimitRange" => json!({"spec": {"limits": []}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {}}}),
        _ => json!({}),
    };
    let made = api.create(&PostParams::default(), &object).await;
    made.unwrap_or_else(|error| panic!("{} {name}: {error}", resource.kind));
    let change: Value = json!({"metadata": {"labels": {"round": round.to_string()}}});
    let (params, change) = (PatchParams::default(), Patch::Merge(change));
    let changed = api.patch(name, &params, &change).await;
    changed.expect("it is changed");
}

/// Waits until a handler has heard of every object of these rounds once, and of its last state.
async fn heard_of_all(followed: &Followed, rounds: usize) {
    let end = Instant::now() + PATIENCE;
    let expected: BTreeMap<String, (usize, String)> = (0..rounds)
        .flat_map(|round| (0..OBJECTS).map(move |at| (round, at)))
        .map(|(round, at)| (format!("it-{round}-{at}"), (1, round.to_string())))
        .collect();
    loop {
        let mut heard = followed.heard.lock().clone();
        // Objects that the server has of its own.
        heard.retain(|name, _| name.starts_with("it-"));
        if heard == expected {
            return;
        }
        assert!(
            Instant::now() < end,
            "{:?} has heard of {} of {} objects: {heard:?}",
            followed.informer,
            heard.len(),
            expected.len()
        );
        sleep(Duration::from_millis(20)).await;
    }
}

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn informers_on_several_threads_lose_no_event() {
    let world = World::new().await;
    let mut followed: Vec<Followed> = kinds()
        .iter()
        .map(|resource| follow(&world.factory, resource))
        .collect();
    world.factory.start();
    let synced = timeout(PATIENCE, world.factory.synced()).await;
    synced.expect("it syncs in time").expect("it syncs");
    world.write(0).await;
    for followed in &followed {
        heard_of_all(followed, 1).await;
    }

    // One connection fails and one reader goes, both while events come.
    let left = followed.pop().expect("there are eight");
    let stopped = left.registration;
    let interfering = async {
        sleep(Duration::from_millis(20)).await;
        world.relay.cut_one();
        stopped.remove();
        drop(left.informer);
    };
    tokio::join!(world.write(1), interfering);
    for followed in &followed {
        heard_of_all(followed, 2).await;
    }
    let ended = timeout(PATIENCE, world.factory.shutdown()).await;
    ended.expect("all informers end");
}
