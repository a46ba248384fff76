//! Volumes are where containers want them, have what the API server has, and follow it.
#![cfg(target_os = "linux")]

mod world;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kubewright_process::Isolation;
use serde_json::{Value, json};
use world::{World, both, container, processes};

/// A script that begins by setting variables to where volumes are, with namespaces or without.
fn at(isolation: &Isolation, volumes: &[(&str, &str)], script: &str) -> String {
    let mut text = String::new();
    for (name, path) in volumes {
        let value = match isolation {
            Isolation::None(_) => format!("$VOLUME_{}", name.to_uppercase()),
            _ => (*path).to_owned(),
        };
        text += &format!("{name}={value}; ");
    }
    text + script
}

async fn objects(world: &World) {
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "settings"}, "data": {"color": "red", "shape": "round"},
    }))
    .expect("a ConfigMap");
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "keys"}, "stringData": {"password": "sesame"},
    }))
    .expect("a Secret");
    let client = world.cluster.client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &map)
        .await
        .expect("made");
    let secrets: Api<Secret> = Api::default_namespaced(client);
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .expect("made");
}

fn volumes() -> Value {
    json!([
        {"name": "conf", "configMap": {"name": "settings", "items": [{"key": "color", "path": "deep/color", "mode": 0o440}]}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}},
        {"name": "pod", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "fast", "emptyDir": {"medium": "Memory"}},
        {"name": "maybe", "configMap": {"name": "missing", "optional": true}},
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_api_are_in_the_container_with_their_modes() {
    for namespaces in both() {
        let (runtime, world) = World::with_runtime(processes().namespaces(namespaces)).await;
        objects(&world).await;
        let places = [
            ("conf", "/etc/conf"),
            ("keys", "/etc/keys"),
            ("pod", "/etc/pod"),
            ("scratch", "/var/scratch"),
            ("fast", "/var/fast"),
            ("maybe", "/etc/maybe"),
        ];
        let script = "cat $conf/deep/color; echo; cat $keys/password; echo; cat $pod/labels; echo; \
                      stat -L -c %a $conf/deep/color $keys/password; ls $maybe | wc -l; \
                      echo kept > $scratch/f && cat $scratch/f; stat -f -c %T $fast";
        let mounts: Vec<Value> = places
            .iter()
            .map(|(name, path)| json!({"name": name, "mountPath": path}))
            .collect();
        let spec = json!({"volumes": volumes()});
        let pod = json!({
            "metadata": {"name": "reads", "labels": {"app": "web"}},
            "spec": world::with(json!({
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main", "image": "sh", "volumeMounts": mounts,
                    "args": ["-c", at(runtime.isolation(), &places, script)],
                }],
            }), &spec),
        });
        world.create(pod).await;
        let pod = world.until_phase("reads", "Succeeded").await;
        let log = world.log("reads").await;
        let expected = "red\nsesame\napp=\"web\"\n440\n400\n0\nkept\ntmpfs\n";
        assert_eq!(log, expected, "{:?}", pod.status);
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_config_map_reaches_the_program_at_once_and_whole() {
    for namespaces in both() {
        let (runtime, world) = World::with_runtime(processes().namespaces(namespaces)).await;
        objects(&world).await;
        let places = [("conf", "/etc/conf")];
        let script = "while true; do cat $conf/color; echo; sleep 0.05; done";
        let more = json!({
            "container": {"volumeMounts": [{"name": "conf", "mountPath": "/etc/conf"}]},
            "spec": {"volumes": [{"name": "conf", "configMap": {"name": "settings"}}]},
        });
        world
            .script("follows", &at(runtime.isolation(), &places, script), more)
            .await;
        world.until_log("follows", "red").await;
        let maps: Api<ConfigMap> = Api::default_namespaced(world.cluster.client());
        let patch = Patch::Merge(json!({"data": {"color": "blue"}}));
        maps.patch("settings", &PatchParams::default(), &patch)
            .await
            .expect("patched");
        let log = world.until_log("follows", "blue").await;
        assert!(
            log.lines().all(|line| ["red", "blue"].contains(&line)),
            "{log}"
        );
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_account_has_a_token_of_the_pod() {
    for namespaces in both() {
        let (runtime, world) = World::with_runtime(processes().namespaces(namespaces)).await;
        let place = match runtime.isolation() {
            Isolation::None(_) => "$SERVICE_ACCOUNT_DIR",
            _ => "/var/run/secrets/kubernetes.io/serviceaccount",
        };
        let script = format!(
            "cat {place}/namespace; echo; cut -d. -f2 {place}/token; head -1 {place}/ca.crt"
        );
        world.script("account", &script, json!({})).await;
        world.until_phase("account", "Succeeded").await;
        let log = world.log("account").await;
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(
            (lines[0], lines[2]),
            ("default", "-----BEGIN CERTIFICATE-----"),
            "{log}"
        );
        assert!(lines[1].len() > 100, "{log}");
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_mounted_is_an_event_and_the_container_waits() {
    for namespaces in both() {
        let world = World::start(namespaces).await;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("later");
        let more = json!({
            "container": {"volumeMounts": [{"name": "host", "mountPath": "/host"}]},
            "spec": {"volumes": [{"name": "host", "hostPath": {"path": path, "type": "Directory"}}]},
        });
        world.script("waits", "true", more).await;
        let event = world.until_event("waits", "FailedMount").await;
        let path = path.display();
        let expected = format!(
            "MountVolume.SetUp failed for volume \"host\" : hostPath type check failed: {path} is not a directory"
        );
        assert_eq!(event, expected);
        let creating = |pod: &k8s_openapi::api::core::v1::Pod| {
            let waiting = container(pod).state.and_then(|state| state.waiting);
            waiting.is_some_and(|w| w.reason.as_deref() == Some("ContainerCreating"))
        };
        world.until("waits", "waiting", creating).await;
        std::fs::create_dir(path.to_string()).expect("made");
        world.until_phase("waits", "Succeeded").await;
        let more = json!({
            "container": {"volumeMounts": [{"name": "far", "mountPath": "/far"}]},
            "spec": {"volumes": [{"name": "far", "nfs": {"server": "a", "path": "/b"}}]},
        });
        world.script("far", "true", more).await;
        let event = world.until_event("far", "FailedMount").await;
        assert!(event.contains("nfs volumes cannot be mounted"), "{event}");
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_and_read_only_mounts_are_kept() {
    let (runtime, world) = World::with_runtime(processes()).await;
    if matches!(runtime.isolation(), Isolation::None(_)) {
        println!("there are no mount namespaces here");
        return world.cluster.stop().await;
    }
    objects(&world).await;
    let mounts = json!([
        {"name": "conf", "mountPath": "/etc/conf/color.txt", "subPath": "color"},
        {"name": "scratch", "mountPath": "/var/here", "subPathExpr": "of/$(WHO)"},
        {"name": "scratch", "mountPath": "/var/all", "readOnly": true},
    ]);
    let script = "cat /etc/conf/color.txt; echo; echo x > /var/here/f; ls /var/all/of; \
                  (echo no > /var/all/f) 2>/dev/null || echo refused; (echo no > /etc/conf/color.txt) 2>/dev/null || echo refused";
    let more = json!({
        "container": {"volumeMounts": mounts, "env": [{"name": "WHO", "value": "me"}]},
        "spec": {"volumes": [
            {"name": "conf", "configMap": {"name": "settings"}},
            {"name": "scratch", "emptyDir": {}},
        ]},
    });
    world.script("parts", script, more).await;
    world.until_phase("parts", "Succeeded").await;
    assert_eq!(world.log("parts").await, "red\nme\nrefused\nrefused\n");
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_directories_outlive_containers_and_go_with_their_pod() {
    for namespaces in both() {
        let directory = tempfile::tempdir().expect("a directory");
        let how = processes()
            .namespaces(namespaces)
            .data_dir(directory.path());
        let (runtime, world) = World::with_runtime(how).await;
        let places = [("scratch", "/var/scratch")];
        let script =
            "test -e $scratch/second && { echo again; sleep 1000; }; touch $scratch/second; exit 1";
        let more = json!({
            "container": {"volumeMounts": [{"name": "scratch", "mountPath": "/var/scratch"}]},
            "spec": {"volumes": [{"name": "scratch", "emptyDir": {}}], "restartPolicy": "OnFailure"},
        });
        world
            .script("keeps", &at(runtime.isolation(), &places, script), more)
            .await;
        world.until_log("keeps", "again").await;
        world.delete("keeps", 0).await;
        let pods = directory.path().join("pods");
        world::until_empty(&pods).await;
        world.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_knows_its_names_and_says_its_last_words() {
    let (runtime, world) = World::with_runtime(processes()).await;
    let log = match runtime.isolation() {
        Isolation::None(_) => "$TERMINATION_MESSAGE_PATH",
        _ => "/dev/termination-log",
    };
    let names = match runtime.isolation() {
        Isolation::None(_) => "echo skipped",
        _ => "cat /etc/hostname; hostname; grep -c alias.example /etc/hosts",
    };
    let script = format!("{names}; echo farewell > {log}; exit 4");
    let aliases = json!([{"ip": "10.9.8.7", "hostnames": ["alias.example"]}]);
    world
        .script("named", &script, json!({"spec": {"hostAliases": aliases}}))
        .await;
    let pod = world.until_phase("named", "Failed").await;
    let ended = container(&pod).state.and_then(|state| state.terminated);
    assert_eq!(
        ended.and_then(|ended| ended.message).as_deref(),
        Some("farewell\n")
    );
    if !matches!(runtime.isolation(), Isolation::None(_)) {
        assert_eq!(world.log("named").await, "named\nnamed\n1\n");
    }
    let more = json!({"container": {"terminationMessagePolicy": "FallbackToLogsOnError"}});
    world
        .script("falls", "echo the last line; exit 1", more)
        .await;
    let pod = world.until_phase("falls", "Failed").await;
    let ended = container(&pod).state.and_then(|state| state.terminated);
    assert_eq!(
        ended.and_then(|ended| ended.message).as_deref(),
        Some("the last line\n")
    );
    world.cluster.stop().await;
}
