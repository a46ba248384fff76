//! README's first operator: it is the code of this file, and it writes nothing when nothing changes.

// readme: begin
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright::prelude::*;

struct Copier;

impl Reconciler<ConfigMap> for Copier {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: &Context) -> Result<Outcome> {
        let data = config.data.clone().unwrap_or_default().into_iter();
        let data = data.map(|(name, text)| (name, ByteString(text.into_bytes())));
        let fill = |secret: &mut Secret| secret.data = Some(data.collect());
        cx.client().apply_owned(&config, cx.key(), fill).await?;
        Ok(Outcome::done())
    }
}

fn copier() -> Controller {
    let copier = Controller::of::<ConfigMap>("copier");
    copier.owns::<Secret>().reconciler(Copier)
}
// readme: end

use kubewright::runtime::CancellationToken;
use kubewright_server::Server;
use kubewright_testing::{Wire, limit, until};

fn writes(wire: &Wire) -> usize {
    let calls = wire.calls();
    calls
        .iter()
        .filter(|(call, _)| call.verb.is_write())
        .count()
}

#[test]
fn readme_has_the_code_of_this_test() {
    let here = include_str!("readme.rs");
    let code = here.split("// readme: begin\n").nth(1);
    let code = code.and_then(|rest| rest.split("// readme: end\n").next());
    let code = code.expect("this file has both marks").trim();
    let readme = include_str!("../../../README.md");
    assert!(readme.contains(code), "README.md lacks:\n{code}");
}

fn config(name: &str) -> ConfigMap {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    config.metadata.namespace = Some("default".to_owned());
    config.data = Some([("x".to_owned(), "1".to_owned())].into());
    config
}

#[tokio::test]
async fn first_operator_leaves_secrets_of_others_alone() {
    let server = limit(Server::builder().start()).await.expect("a server");
    let (wire, user) = (Wire::new(server.service()), Wire::new(server.service()));
    let user = Client::new(user.client());
    let theirs = limit(user.create(&config("theirs"))).await;
    let theirs = theirs.expect("created");
    let mut foreign = Secret::default();
    foreign.metadata.name = Some("a".to_owned());
    foreign.metadata.namespace = Some("default".to_owned());
    foreign.data = Some([("x".to_owned(), ByteString(b"theirs".to_vec()))].into());
    set_controller_reference(&theirs, &mut foreign).expect("it can be owned");
    let foreign = limit(user.create(&foreign)).await.expect("created");
    let config = limit(user.create(&config("a"))).await.expect("created");
    let key = Key::of(&config);

    let controller = copier();
    let handle = controller.handle();
    let stop = CancellationToken::new();
    let manager = Manager::new(wire.client()).controller(controller);
    let running = tokio::spawn(manager.run_until(stop.clone()));
    let runs = || {
        let ended = handle.history().list().into_iter();
        ended.filter(|run| run.key == key).collect::<Vec<_>>()
    };
    let tried = until("it has tried twice", async || {
        let runs = runs();
        (runs.len() > 1).then_some(runs)
    })
    .await;
    assert!(
        tried.iter().all(|run| run.ended.contains("already owned")),
        "{tried:?}"
    );
    let after = limit(user.live().get::<Secret>(&key)).await;
    assert_eq!(after.expect("an answer"), Some(foreign));
    stop.cancel();
    limit(running)
        .await
        .expect("no panic")
        .expect("it ends well");
}

#[tokio::test]
async fn first_operator_writes_each_secret_once() {
    let server = limit(Server::builder().start()).await.expect("a server");
    let (wire, user) = (Wire::new(server.service()), Wire::new(server.service()));
    let user = Client::new(user.client());
    let controller = copier();
    let handle = controller.handle();
    let stop = CancellationToken::new();
    let manager = Manager::new(wire.client())
        .name("copier")
        .controller(controller);
    let running = tokio::spawn(manager.run_until(stop.clone()));

    let config = limit(user.create(&config("a"))).await.expect("created");
    let key = Key::of(&config);
    let holds = async |value: &str| {
        until("the Secret has the data", async || {
            let secret = limit(user.live().get::<Secret>(&key)).await;
            let data = secret.expect("an answer")?.data?;
            (data.get("x")?.0 == value.as_bytes()).then_some(())
        })
        .await;
    };
    holds("1").await;
    let changed = |config: &mut ConfigMap| {
        config.data = Some([("x".to_owned(), "2".to_owned())].into());
    };
    limit(user.modify(&config, changed)).await.expect("changed");
    holds("2").await;

    // Two writes so far, the second of them seen by the cache; from now on none, however often it runs.
    let runs = || handle.history().list().len();
    for _ in 0..5 {
        let before = runs();
        handle.reconcile(key.clone());
        until("it has run", async || (runs() > before).then_some(())).await;
    }
    let ended = handle.history().list();
    assert!(ended.iter().all(|run| run.ended == "done"), "{ended:?}");
    assert_eq!(writes(&wire), 2, "{:?}", wire.calls());
    stop.cancel();
    limit(running)
        .await
        .expect("no panic")
        .expect("it ends well");
}
