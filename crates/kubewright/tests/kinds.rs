//! A kind with everything that attributes can say, on a server: what is accepted, what is refused and with which words.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, PostParams};
use kube::{Client, CustomResource, ResourceExt};
use kubewright_server::Server;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is kept where, and for how long.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Backup",
    namespaced,
    status = "BackupStatus"
)]
#[kube(derive = "Default")]
#[serde(rename_all = "camelCase")]
#[k8s(at_most_one_of(keep_days, keep_copies))]
struct BackupSpec {
    /// Where it goes.
    target: Target,
    /// How often a day.
    #[k8s(exclusive_min = 0, max = 24, multiple_of = 2)]
    times: Option<u8>,
    keep_days: Option<u32>,
    keep_copies: Option<u32>,
    #[k8s(immutable)]
    owner: Option<String>,
    #[k8s(default = "daily")]
    #[serde(default)]
    label: String,
    #[serde(default)]
    tags: BTreeSet<String>,
    #[k8s(list = map(name))]
    #[serde(default)]
    volumes: Vec<Volume>,
    #[k8s(
        rule("self.all(key, key.startsWith('x-'))", message = "keys begin with x-"),
        max_properties = 2
    )]
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    extra: BTreeMap<String, Value>,
}

/// A place, of one sort or another.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Target {
    Bucket {
        #[k8s(min_length = 3)]
        name: String,
    },
    Directory(String),
}

impl Default for Target {
    fn default() -> Self {
        Self::Directory("/backup".to_owned())
    }
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
struct Volume {
    name: String,
    mode: Mode,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
enum Mode {
    /// Copies all of it every time.
    Full,
    /// Copies only what has changed.
    Incremental,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
struct BackupStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

/// A server that knows the kind, which lives as long as the client is used.
async fn backups() -> (Server, Api<Backup>) {
    let server = Server::builder().start().await.expect("a server starts");
    let client = Client::new(server.service(), "default");
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for definition in kubewright::registered::inventory().definitions {
        let created = definitions
            .create(&PostParams::default(), &definition)
            .await;
        created.expect("the definition is taken");
    }
    (server, Api::namespaced(client, "default"))
}

fn backup(name: &str, change: impl FnOnce(&mut BackupSpec)) -> Backup {
    let mut spec = BackupSpec::default();
    change(&mut spec);
    Backup::new(name, spec)
}

/// What the error has to contain, and the mistake that leads to it.
type Wrong = (&'static str, fn(&mut BackupSpec));

async fn refused(api: &Api<Backup>, backup: &Backup, expected: &str) {
    let error = api.create(&PostParams::default(), backup).await;
    let error = error.expect_err("a refusal").to_string();
    assert!(error.contains(expected), "{error}");
}

#[tokio::test]
async fn what_a_type_can_be_is_kept_as_it_is() {
    let (_server, api) = backups().await;
    let full = backup("full", |spec| {
        spec.target = Target::Bucket {
            name: "archive".to_owned(),
        };
        spec.times = Some(4);
        spec.keep_days = Some(4_000_000_000);
        spec.owner = Some("me".to_owned());
        spec.tags = ["a", "b"].map(str::to_owned).into();
        spec.volumes = vec![Volume {
            name: "data".to_owned(),
            mode: Mode::Incremental,
        }];
        spec.extra.insert(
            "x-any".to_owned(),
            serde_json::json!({"deep": [1, "two", null]}),
        );
    });
    let kept = api
        .create(&PostParams::default(), &full)
        .await
        .expect("it is created");
    assert_eq!(kept.spec.target, full.spec.target);
    assert_eq!(kept.spec.keep_days, full.spec.keep_days);
    assert_eq!(kept.spec.volumes, full.spec.volumes);
    assert_eq!(kept.spec.extra["x-any"]["deep"][1], "two");

    let plain = serde_json::json!({"apiVersion": "example.com/v1", "kind": "Backup",
        "metadata": {"name": "plain"}, "spec": {"target": {"directory": "/x"}}});
    let plain: Backup = serde_json::from_value(plain).expect("a backup");
    let mut written = serde_json::to_value(&plain).expect("JSON");
    written["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("label");
    assert!(
        written["spec"].get("owner").is_none(),
        "nobody owns a null: {written}"
    );
    let plain: Backup = serde_json::from_value(written).expect("a backup");
    let defaulted = api
        .create(&PostParams::default(), &plain)
        .await
        .expect("it is created");
    assert_eq!(defaulted.name_any(), "plain");
}

#[tokio::test]
async fn what_a_type_cannot_be_is_refused_with_a_reason() {
    let (_server, api) = backups().await;
    let cases: [Wrong; 6] = [
        ("should be at least 3 chars long", |spec| {
            spec.target = Target::Bucket {
                name: "ab".to_owned(),
            }
        }),
        ("should be greater than 0", |spec| spec.times = Some(0)),
        ("should be a multiple of 2", |spec| spec.times = Some(3)),
        (
            "at most one of the fields in [keepDays keepCopies] may be set",
            |spec| {
                (spec.keep_days, spec.keep_copies) = (Some(1), Some(1));
            },
        ),
        ("keys begin with x-", |spec| {
            spec.headers.insert("y".to_owned(), String::new());
        }),
        ("Duplicate value", |spec| {
            let volume = Volume {
                name: "data".to_owned(),
                mode: Mode::Full,
            };
            spec.volumes = vec![volume.clone(), volume];
        }),
    ];
    for (expected, change) in cases {
        refused(&api, &backup("wrong", change), expected).await;
    }
}

#[tokio::test]
async fn what_may_not_change_may_neither_change_nor_go_away() {
    let (_server, api) = backups().await;
    let mine = backup("mine", |spec| spec.owner = Some("me".to_owned()));
    let created = api
        .create(&PostParams::default(), &mine)
        .await
        .expect("it is created");
    for (owner, expected) in [
        (Some("you"), "field is immutable"),
        (None, "field owner is immutable once set"),
    ] {
        let mut changed = created.clone();
        changed.spec.owner = owner.map(str::to_owned);
        let refused = api.replace("mine", &PostParams::default(), &changed).await;
        let refused = refused.expect_err("a refusal").to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn conditions_are_judged_as_kubernetes_does() {
    let (_server, api) = backups().await;
    let created = api
        .create(&PostParams::default(), &backup("a", |_| ()))
        .await;
    created.expect("it is created");
    let condition = |status: &str| Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: "Done".to_owned(),
        message: String::new(),
        last_transition_time: Time(Default::default()),
        observed_generation: Some(1),
    };
    let write = async |conditions: Vec<Condition>| {
        let mut changed = api.get("a").await.expect("it is there");
        changed.status = Some(BackupStatus { conditions });
        api.replace_status("a", &PostParams::default(), &changed)
            .await
    };
    write(vec![condition("True")]).await.expect("it is taken");
    let wrong = write(vec![condition("Maybe")])
        .await
        .expect_err("a refusal")
        .to_string();
    assert!(
        wrong.contains("supported values: \"True\", \"False\", \"Unknown\""),
        "{wrong}"
    );
    let twice = write(vec![condition("True"), condition("False")])
        .await
        .expect_err("a refusal")
        .to_string();
    assert!(twice.contains("Duplicate value"), "{twice}");
}
