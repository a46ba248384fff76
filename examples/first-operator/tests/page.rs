//! The project is what docs/first-operator.md shows, and its program runs.

use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kubewright::prelude::*;
use kubewright_server::Server;
use tokio::process::Command;

const PAGE: &str = include_str!("../../../docs/first-operator.md");
const PROGRAM: &str = env!("CARGO_BIN_EXE_first-operator");
/// How long the program may take for its work.
const LIMIT: Duration = Duration::from_secs(120);

/// The blocks of the page in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let blocks = PAGE.split(&fence).skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().expect("a block ends"));
    blocks.collect()
}

#[test]
fn blocks_of_the_page_one_after_the_other_are_the_program() {
    assert_eq!(blocks("rust").join("\n"), include_str!("../src/main.rs"));
    assert_eq!(blocks("yaml"), [include_str!("../shop.yaml")]);
}

#[test]
fn project_has_the_dependencies_of_the_page() {
    let [shown] = blocks("toml")[..] else {
        panic!("the page has one block of TOML");
    };
    // The toolkit is elsewhere, seen from here, and the tests of the page need more.
    let shown = shown.replace("../kubewright/crates/", "../../crates/");
    assert!(include_str!("../Cargo.toml").starts_with(&shown));
}

#[tokio::test]
async fn program_prints_its_definition_and_keeps_a_deployment_until_it_is_interrupted() {
    let server = Server::builder().start().await.expect("a server starts");
    let user = Client::new(kube::Client::new(server.service(), "default"));
    let printed = Command::new(PROGRAM).arg("crd").output().await;
    let printed = printed.expect("the program runs").stdout;
    let definition: CustomResourceDefinition =
        serde_json::from_slice(&printed).expect("a definition");
    let created = user.create(&definition).await;
    created.expect("the definition is taken");

    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("it listens");
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let written = endpoint.write_kubeconfig(&kubeconfig);
    written.expect("it is written");
    let mut program = Command::new(PROGRAM)
        .env("KUBECONFIG", &kubeconfig)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");

    let shop: DynamicObject =
        serde_saphyr::from_str(include_str!("../shop.yaml")).expect("an object");
    let kind = GroupVersionKind::gvk("example.com", "v1", "Website");
    let resource = ApiResource::from_gvk(&kind);
    let created = user.dynamic(&resource).create(&shop).await;
    created.expect("it is created");
    let kept = tokio::time::timeout(LIMIT, deployment(&user)).await;
    let kept = kept.expect("no Deployment within two minutes");
    assert_eq!(kept.spec.replicas, Some(2));

    let id = program.id().expect("it runs").to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status();
    assert!(interrupted.await.expect("it is interrupted").success());
    let ended = tokio::time::timeout(LIMIT, program.wait()).await;
    let ended = ended.expect("it ends in time").expect("it ends");
    assert!(ended.success());
}

/// Waits for the Deployment of the shop, change by change.
async fn deployment(user: &Client) -> Deployment {
    let key = Key::new("default", "shop");
    let informer = user.of::<Deployment>().informer();
    loop {
        let changed = informer.advanced();
        let found = user.get::<Deployment>(&key).await.expect("it is read");
        if let Some(found) = found {
            return (*found).clone();
        }
        changed.await;
    }
}
