//! A manager on a bad line: late watches, refusals, lost answers, panics, and a watch that is forbidden.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kubewright_runtime::client::Consistency;
use kubewright_runtime::environment::VirtualClock;
use kubewright_runtime::{
    Client, Context, Controller, Delete, Environment, Error, Key, Manager, Outcome, Reconciler,
    Scope, Watch, from_fn,
};
use kubewright_server::Server;
use kubewright_testing::{Break, Fault, Verb, Wire, limit};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

async fn server() -> Server {
    Server::builder().start().await.expect("a server starts")
}

fn seeded(seed: u64) -> Environment {
    Environment::seeded(VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH), seed)
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

/// Writes and reads back what was written, over and over, through a transport whose watches are late by up to four seconds. Gives
/// the number of reads that showed the past.
async fn stale_reads(consistency: Consistency, steps: u64, seed: u64) -> u64 {
    let server = server().await;
    let wire = Wire::new(server.service());
    let random = seeded(seed);
    let late = random.clone();
    wire.delay_watches(move || Duration::from_millis(late.below(4_000)));
    let client = Client::builder(wire.client())
        .consistency(consistency)
        .build();
    let mut present: BTreeMap<Key, String> = BTreeMap::new();
    let mut stale = 0;
    for step in 0..steps {
        let name = format!("c{}", random.below(20));
        let key = Key::new("default", &name);
        let live: Option<ConfigMap> = client.live().get(&key).await.expect("the server answers");
        match live {
            Some(live) if random.below(4) == 0 => {
                client
                    .delete(&live, Delete::background())
                    .await
                    .expect("it is deleted");
                present.remove(&key);
            }
            Some(live) => {
                let wanted = ConfigMap {
                    data: config(&name, &step.to_string()).data,
                    ..live
                };
                client.update(&wanted).await.expect("it is updated");
                present.insert(key.clone(), step.to_string());
            }
            None => {
                client
                    .create(&config(&name, &step.to_string()))
                    .await
                    .expect("it is created");
                present.insert(key.clone(), step.to_string());
            }
        }
        let read = client
            .get::<ConfigMap>(&key)
            .await
            .expect("the cache catches up");
        if read.as_deref().map(value) != present.get(&key).cloned() {
            stale += 1;
        }
        if step % 10 == 0 {
            let query = kubewright_runtime::Query::all().namespace("default");
            let all = client
                .list::<ConfigMap>(query)
                .await
                .expect("the cache catches up");
            let named = |c: &Arc<ConfigMap>| {
                let name = c.metadata.name.clone().unwrap_or_default();
                (Key::new("default", &name), value(c))
            };
            let seen: BTreeMap<Key, String> = all.iter().map(named).collect();
            stale += u64::from(seen != present);
        }
    }
    stale
}

#[limited::test(start_paused = true)]
async fn no_read_shows_the_past_in_ten_thousand_steps() {
    // A watch that ends and is opened again is late twice; five seconds, the default, would then be too few.
    let wait = Duration::from_secs(60);
    let stale = stale_reads(Consistency::ReadYourWrites { wait }, 10_000, 7).await;
    assert_eq!(stale, 0);
}

#[limited::test(start_paused = true)]
async fn reads_show_the_past_without_the_guard() {
    let stale = stale_reads(Consistency::Eventual, 1_000, 7).await;
    assert!(
        stale > 100,
        "only {stale} stale reads: the test would not notice a broken guard"
    );
}

#[limited::test(start_paused = true)]
async fn cache_that_never_catches_up_is_an_error_that_says_so() {
    let server = server().await;
    let wire = Wire::new(server.service());
    wire.delay_watches(|| Duration::ZERO);
    let client = Client::new(wire.client());
    let key = Key::new("default", "a");
    assert!(
        client
            .get::<ConfigMap>(&key)
            .await
            .expect("it is read")
            .is_none()
    );
    wire.plan(|call| match call.verb {
        Verb::Watch | Verb::List => Fault::LoseRequest,
        _ => Fault::None,
    });
    wire.break_watches(Break::Reset);
    client
        .create(&config("a", "1"))
        .await
        .expect("it is created");
    let error = client
        .get::<ConfigMap>(&key)
        .await
        .expect_err("the cache stands still");
    let text = error.to_string();
    assert_eq!(
        text,
        "the cache of configmaps is behind this manager's own write of default/a after 5s"
    );
}

/// Keeps a Secret with the same name and value for each ConfigMap of the namespace `default`.
struct Copy;

impl Reconciler<ConfigMap> for Copy {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Error> {
        let bytes = k8s_openapi::ByteString(value(&config).into_bytes());
        let data = BTreeMap::from([("value".to_owned(), bytes)]);
        let copied = cx
            .client()
            .create_or_update::<Secret>(cx.key(), |secret| secret.data = Some(data));
        copied.await?;
        Ok(Outcome::done())
    }

    async fn gone(&self, key: &Key, cx: &Context) -> Result<Outcome, Error> {
        if let Some(secret) = cx.client().get::<Secret>(key).await? {
            use kubewright_runtime::IgnoreNotFound;
            cx.client()
                .delete(&*secret, Delete::background())
                .await
                .ignore_not_found()?;
        }
        Ok(Outcome::done())
    }
}

async fn secrets(client: &Client) -> BTreeMap<String, String> {
    let query = kubewright_runtime::Query::all().namespace("default");
    let all = client
        .live()
        .list::<Secret>(query)
        .await
        .expect("the server answers");
    let named = |secret: Secret| {
        let bytes = secret.data.and_then(|mut data| data.remove("value"));
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned());
        (
            secret.metadata.name.unwrap_or_default(),
            text.unwrap_or_default(),
        )
    };
    all.into_iter().map(named).collect()
}

/// Random changes over a transport that refuses, loses and breaks; then the faults end, and the copies must be right.
async fn converges(seed: u64) {
    let server = server().await;
    let wire = Wire::new(server.service());
    let random = seeded(seed);
    let dice = random.clone();
    wire.plan(move |call| match dice.below(12) {
        0 if call.verb.is_write() => Fault::Refuse {
            code: 409,
            reason: "Conflict",
        },
        1 => Fault::Refuse {
            code: 429,
            reason: "TooManyRequests",
        },
        2 => Fault::Refuse {
            code: 500,
            reason: "InternalError",
        },
        3 => Fault::LoseAnswer,
        4 => Fault::LoseRequest,
        5 => Fault::Delay(Duration::from_millis(dice.below(3_000))),
        _ => Fault::None,
    });
    let late = random.clone();
    wire.delay_watches(move || Duration::from_millis(late.below(500)));
    let panics = random.clone();
    let careless = from_fn(move |config: Arc<ConfigMap>, cx: Context| {
        let unlucky = panics.below(10) == 0;
        async move {
            assert!(!unlucky, "a reconcile may panic");
            Copy.reconcile(config, &cx).await
        }
    });
    let controller = Controller::of::<ConfigMap>("copy")
        .scope(Scope::all().namespace("default"))
        // A creation whose answer was lost is seen here, also when the ConfigMap is gone by then.
        .watches(Watch::of::<Secret>().map(|secret, _| {
            let name = secret.metadata.name.as_deref().unwrap_or_default();
            let ours = secret.metadata.namespace.as_deref() == Some("default");
            ours.then(|| Key::new("default", name))
                .into_iter()
                .collect()
        }))
        .workers(3)
        .reconciler(WithGone(careless));
    let stop = CancellationToken::new();
    let manager = Manager::new(wire.client())
        .environment(random.clone())
        .controller(controller);
    let task = tokio::spawn(manager.run_until(stop.clone()));

    let user = Client::new(kube::Client::new(server.service(), "default"));
    let mut wanted = BTreeMap::new();
    for step in 0..60 {
        let name = format!("c{}", random.below(6));
        let key = Key::new("default", &name);
        let live: Option<ConfigMap> = user.live().get(&key).await.expect("the server answers");
        match live {
            Some(live) if random.below(4) == 0 => {
                user.delete(&live, Delete::background())
                    .await
                    .expect("it is deleted");
                wanted.remove(&name);
            }
            live => {
                let made = config(&name, &step.to_string());
                let written = match live {
                    Some(live) => {
                        user.update(&ConfigMap {
                            data: made.data,
                            ..live
                        })
                        .await
                    }
                    None => user.create(&made).await,
                };
                written.expect("it is written");
                wanted.insert(name, step.to_string());
            }
        }
        tokio::time::sleep(Duration::from_millis(random.below(800))).await;
        match random.below(15) {
            0 => wire.break_watches(Break::Reset),
            1 => wire.break_watches(Break::Truncate),
            2 => {
                let now = server.revision();
                server.compact(now).expect("it has been reached");
                wire.break_watches(Break::Close);
            }
            _ => {}
        }
    }
    wire.heal();
    wire.break_watches(Break::Close);
    // The longest backoff of a key is 1000 s; the clock is virtual.
    for _ in 0..4_000 {
        if secrets(&user).await == wanted {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(secrets(&user).await, wanted, "seed {seed}");
    stop.cancel();
    limit(task)
        .await
        .expect("no panic")
        .expect("the manager ends well");
}

struct WithGone<R>(R);

impl<R: Reconciler<ConfigMap>> Reconciler<ConfigMap> for WithGone<R> {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Error> {
        self.0.reconcile(config, cx).await
    }

    async fn gone(&self, key: &Key, cx: &Context) -> Result<Outcome, Error> {
        Copy.gone(key, cx).await
    }
}

#[limited::test(start_paused = true)]
async fn manager_converges_whatever_the_line_does() {
    for seed in 0..60 {
        converges(seed).await;
    }
}

#[limited::test(start_paused = true)]
async fn forbidden_watch_delays_its_own_controller_alone_and_is_named() {
    let server = server().await;
    let wire = Wire::new(server.service());
    wire.plan(|call| {
        if call.path.contains("serviceaccounts") {
            Fault::Refuse {
                code: 403,
                reason: "Forbidden",
            }
        } else {
            Fault::None
        }
    });
    let ran: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = |controller: &'static str| {
        let ran = ran.clone();
        from_fn(move |_: Arc<ConfigMap>, _: Context| {
            ran.lock().push(controller.to_owned());
            async { Ok(Outcome::done()) }
        })
    };
    let scope = || Scope::all().namespace("default");
    let manager = Manager::new(wire.client())
        .controller(
            Controller::of::<ConfigMap>("a")
                .scope(scope())
                .reconciler(note("a")),
        )
        .controller(
            Controller::of::<ConfigMap>("b")
                .scope(scope())
                .watches(Watch::of::<ServiceAccount>())
                .sync_timeout(Duration::from_secs(60))
                .reconciler(note("b")),
        )
        .controller(
            Controller::of::<ConfigMap>("c")
                .scope(scope())
                .reconciler(note("c")),
        );
    let client = manager.client();
    let began = tokio::time::Instant::now();
    let task = tokio::spawn(manager.run_until(CancellationToken::new()));
    client
        .create(&config("x", "1"))
        .await
        .expect("it is created");
    while ran.lock().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "the others keep pace"
    );
    let error = limit(task)
        .await
        .expect("no panic")
        .expect_err("it does not hang in silence");
    let text = error.to_string();
    assert!(text.contains("controller b failed"), "{text}");
    assert!(
        text.contains("no first state of serviceaccounts within 60s"),
        "{text}"
    );
    assert!(!ran.lock().contains(&"b".to_owned()));
}

#[limited::test(start_paused = true)]
async fn cached_read_that_is_forbidden_names_the_verbs_that_it_needs() {
    let server = server().await;
    let wire = Wire::new(server.service());
    wire.plan(|_| Fault::Refuse {
        code: 403,
        reason: "Forbidden",
    });
    let client = Client::new(wire.client());
    let key = Key::new("default", "x");
    let error = limit(client.get::<ConfigMap>(&key)).await;
    let report = Error::from(error.expect_err("it is refused")).report();
    let expected = "the cache of configmaps has no state yet: the server refuses; a read from the cache needs the verbs get, \
                    list and watch: not allowed: ";
    assert!(report.starts_with(expected), "{report}");
}
