//! Controllers end to end: a manager over an API server in the process.

use kubewright_testing::{limit, until};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::Resource;
use kubewright_runtime::{
    Change, Client, Context, Controller, Delete, Error, Key, Manager, Outcome, Reconciler, Watch,
    from_fn,
};
use kubewright_server::Server;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

async fn server() -> (Server, kube::Client) {
    let server = Server::builder().start().await.expect("a server starts");
    let client = kube::Client::new(server.service(), "default");
    (server, client)
}

fn config(name: &str, value: &str) -> ConfigMap {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    config.metadata.namespace = Some("default".to_owned());
    config.data = Some(BTreeMap::from([("value".to_owned(), value.to_owned())]));
    config
}

fn value(config: &ConfigMap) -> String {
    let data = config.data.as_ref().and_then(|data| data.get("value"));
    data.cloned().unwrap_or_default()
}

/// A manager that runs until the test is over.
struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), kubewright_runtime::manager::ManagerError>>,
}

fn run(manager: Manager) -> Running {
    let stop = CancellationToken::new();
    let task = tokio::spawn(manager.run_until(stop.clone()));
    Running { stop, task }
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        let ended = limit(self.task).await.expect("the manager does not panic");
        ended.expect("the manager ends well");
    }
}

/// Copies each ConfigMap into a Secret that it owns.
struct Copy(mpsc::Sender<String>);

impl Reconciler<ConfigMap> for Copy {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Error> {
        let key = cx.key().clone();
        let owner = OwnerReference {
            controller: Some(true),
            ..config.owner_ref(&()).ok_or_else(|| Error::msg("no uid"))?
        };
        let written = cx
            .client()
            .create_or_update::<Secret>(&key, |secret| {
                secret.metadata.owner_references = Some(vec![owner]);
                secret.string_data = None;
                let bytes = k8s_openapi::ByteString(value(&config).into_bytes());
                secret.data = Some(BTreeMap::from([("value".to_owned(), bytes)]));
            })
            .await?;
        let _ = self
            .0
            .try_send(format!("{} {:?}", key.as_str(), written.change));
        Ok(Outcome::done())
    }

    async fn gone(&self, key: &Key, _cx: &Context) -> Result<Outcome, Error> {
        let _ = self.0.try_send(format!("{} gone", key.as_str()));
        Ok(Outcome::done())
    }
}

#[limited::test]
async fn object_is_reconciled_when_it_or_what_it_owns_changes() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    client
        .create(&config("a", "one"))
        .await
        .expect("it is created");
    let (sender, mut heard) = mpsc::channel(1024);
    let controller = Controller::of::<ConfigMap>("copy")
        .owns::<Secret>()
        .scope(kubewright_runtime::Scope::all().namespace("default"))
        .reconciler(Copy(sender));
    let history = controller.handle();
    let running = run(Manager::new(kube).controller(controller));
    assert_eq!(
        limit(heard.recv()).await.as_deref(),
        Some("default/a Created")
    );

    let key = Key::new("default", "a");
    let secret: Secret = client
        .live()
        .get(&key)
        .await
        .expect("it is read")
        .expect("it is there");
    client
        .delete(&secret, Delete::background())
        .await
        .expect("it is deleted");
    // The controller hears of its own creation, too.
    let mut line = limit(heard.recv()).await;
    while line.as_deref() == Some("default/a Unchanged") {
        line = limit(heard.recv()).await;
    }
    assert_eq!(
        line.as_deref(),
        Some("default/a Created"),
        "what is owned is put back"
    );

    let present: ConfigMap = client
        .live()
        .get(&key)
        .await
        .expect("it is read")
        .expect("it is there");
    client
        .modify(&present, |c| {
            *c = ConfigMap {
                data: config("a", "two").data,
                ..c.clone()
            }
        })
        .await
        .expect("it is changed");
    while line.as_deref() != Some("default/a Updated") {
        line = limit(heard.recv()).await;
    }
    let causes: Vec<String> = history
        .history()
        .list()
        .iter()
        .map(|r| serde_json::to_string(r).expect("JSON"))
        .collect();
    assert!(
        causes
            .iter()
            .any(|json| json.contains(r#""fields":["data.value"]"#)),
        "{causes:#?}"
    );

    let present: ConfigMap = client
        .live()
        .get(&key)
        .await
        .expect("it is read")
        .expect("it is there");
    client
        .delete(&present, Delete::background())
        .await
        .expect("it is deleted");
    while line.as_deref() != Some("default/a gone") {
        line = limit(heard.recv()).await;
    }
    running.end().await;
}

#[limited::test]
async fn own_writes_are_seen_at_once() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    let key = Key::new("default", "a");
    assert!(
        client
            .get::<ConfigMap>(&key)
            .await
            .expect("it is read")
            .is_none()
    );
    for round in 0..50 {
        let written = client
            .create_or_update::<ConfigMap>(&key, |c| c.data = config("a", &round.to_string()).data)
            .await
            .expect("it is written");
        assert_eq!(
            written.change,
            if round % 10 == 0 {
                Change::Created
            } else {
                Change::Updated
            }
        );
        let read = client
            .get::<ConfigMap>(&key)
            .await
            .expect("it is read")
            .expect("it is there");
        assert_eq!(value(&read), round.to_string());
        if round % 10 == 9 {
            client
                .delete(&*read, Delete::background())
                .await
                .expect("it is deleted");
            assert!(
                client
                    .get::<ConfigMap>(&key)
                    .await
                    .expect("it is read")
                    .is_none()
            );
        }
    }
}

#[limited::test(start_paused = true)]
async fn failing_key_backs_off_and_a_panic_is_an_error() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    client
        .create(&config("a", "one"))
        .await
        .expect("it is created");
    let tries = AtomicUsize::new(0);
    let (done, mut finished) = mpsc::channel(1024);
    let reconciler = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        let (number, done) = (tries.fetch_add(1, Ordering::SeqCst), done.clone());
        async move {
            match number {
                0 => Err(Error::msg("no")),
                1 => panic!("oh no"),
                2 => Ok(Outcome::requeue()),
                3 => Ok(Outcome::requeue_after(Duration::from_secs(60))),
                _ => {
                    let _ = done.try_send(cx.attempt());
                    Err(Error::terminal("enough"))
                }
            }
        }
    });
    let controller = Controller::of::<ConfigMap>("fails")
        .scope(kubewright_runtime::Scope::all().namespace("default"))
        .reconciler(reconciler);
    let manager = Manager::new(kube).controller(controller);
    let metrics = manager.metrics().clone();
    let running = run(manager);
    assert_eq!(
        limit(finished.recv()).await,
        Some(0),
        "success forgets failures"
    );
    running.end().await;
    let text = metrics.render();
    for line in [
        r#"controller_runtime_reconcile_total{controller="fails",result="requeue"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="fails"} 1"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="fails"} 1"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[limited::test]
async fn watch_can_be_added_and_removed_while_it_runs() {
    let (_server, kube) = server().await;
    let (sender, mut heard) = mpsc::channel(1024);
    let controller = Controller::of::<ConfigMap>("late")
        .scope(kubewright_runtime::Scope::all().namespace("kube-public"))
        .reconciler(Copy(sender));
    let handle = controller.handle();
    let manager = Manager::new(kube);
    let client = manager.client();
    let running = run(manager.controller(controller));
    let mut secret = Secret::default();
    secret.metadata.name = Some("s".to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    client.create(&secret).await.expect("it is created");
    let watch = || {
        Watch::of::<Secret>().map(|secret, _| {
            vec![Key::new(
                "kube-public",
                secret.metadata.name.as_deref().unwrap_or_default(),
            )]
        })
    };
    // Until the controller runs there is nothing to add to.
    let id = until("the controller runs", async || {
        limit(handle.add_watch(watch())).await.ok()
    });
    let id = id.await;
    assert_eq!(
        limit(heard.recv()).await.as_deref(),
        Some("kube-public/s gone")
    );
    assert_eq!(
        handle.remove_watch(id),
        kubewright_runtime::controller::Removed::Yes
    );
    assert_eq!(
        handle.remove_watch(id),
        kubewright_runtime::controller::Removed::WasNotThere
    );
    running.end().await;
}

#[limited::test]
async fn two_watches_of_one_kind_both_lead_to_reconciles() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    let (sender, mut heard) = mpsc::channel(1024);
    let to = |name: &'static str| {
        Watch::of::<Secret>().map(move |_, _| vec![Key::new("kube-public", name)])
    };
    let mut secret = Secret::default();
    secret.metadata.name = Some("s".to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    let controller = Controller::of::<ConfigMap>("twice")
        .watches(to("one"))
        .watches(to("two"))
        .scope(kubewright_runtime::Scope::all().namespace("kube-public"))
        .reconciler(Copy(sender));
    let running = run(Manager::new(kube).controller(controller));
    client.create(&secret).await.expect("it is created");
    let mut lines = Vec::new();
    while lines.len() < 2 {
        let line = limit(heard.recv()).await.expect("the controller runs");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.sort();
    assert_eq!(lines, ["kube-public/one gone", "kube-public/two gone"]);
    running.end().await;
}
