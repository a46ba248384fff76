//! What pods wait for: environment, volumes, images and pull secrets.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::Life;
use crate::node::kubelet::downward::Place;
use crate::node::kubelet::volumes;

fn object<K: serde::de::DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).expect("an object"))
}

/// `Kubelet.makeEnvironmentVariables` and `kubeGenericRuntimeManager.startContainer`.
#[test]
fn container_waits_for_what_its_environment_refers_to() {
    let secret_key = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let map_key = json!({"configMapKeyRef": {"name": "m", "key": "k"}});
    let from = |kind: &str, name: &str| json!({"envFrom": [{kind: {"name": name}}]});
    let env = |source: &Value| json!({"env": [{"name": "A", "valueFrom": source}]});
    let optional = json!({"envFrom": [{"secretRef": {"name": "s", "optional": true}}],
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": true}}}]});
    for (more, message) in [
        (from("secretRef", "s"), "secret \"s\" not found"),
        (from("configMapRef", "m"), "configmap \"m\" not found"),
        (env(&secret_key), "secret \"s\" not found"),
        (env(&map_key), "configmap \"m\" not found"),
        (optional, ""),
    ] {
        let mut container = json!({"name": "app", "image": "app:1"});
        for (key, value) in more.as_object().expect("fields") {
            container[key] = value.clone();
        }
        let mut life = Life::new(json!({}), json!({"containers": [container]}));
        life.until(0);
        if message.is_empty() {
            assert_eq!(life.summary(), "Running Ready [ready]", "{more}");
            continue;
        }
        assert_eq!(
            life.summary(),
            "Pending NotReady [CreateContainerConfigError]",
            "{more}"
        );
        let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
        let waiting = status.state.and_then(|s| s.waiting).expect("it waits");
        assert_eq!(waiting.message.as_deref(), Some(message));
        assert_eq!(
            (life.notes.as_slice(), life.texts.as_slice()),
            (
                &["Failed".to_owned()][..],
                &[format!("Error: {message}")][..]
            )
        );
        // The object comes without the key, then with it; a kubelet looks every ten seconds.
        life.sources
            .secrets
            .insert("s".to_owned(), object(json!({})));
        life.sources
            .config_maps
            .insert("m".to_owned(), object(json!({})));
        life.until(9_999);
        assert_eq!(
            life.summary(),
            "Pending NotReady [CreateContainerConfigError]"
        );
        life.until(10_000);
        let keyed = more["env"].is_array();
        if keyed {
            assert_eq!(
                life.summary(),
                "Pending NotReady [CreateContainerConfigError]"
            );
            let said = life.texts.last().expect("an event").clone();
            assert!(said.starts_with("Error: couldn't find key k in "), "{said}");
            life.sources
                .secrets
                .insert("s".to_owned(), object(json!({"data": {"k": "dg=="}})));
            life.sources
                .config_maps
                .insert("m".to_owned(), object(json!({"data": {"k": "v"}})));
            life.until(20_000);
        }
        assert_eq!(life.summary(), "Running Ready [ready]", "{more}");
    }
}

/// `GenerateMountVolumeFunc`, `secretVolumeMounter.SetUpAt` and `createVolumeSpec`.
#[test]
fn pod_waits_for_its_volumes_and_has_no_address_until_then() {
    let secret = json!({"name": "v", "secret": {"secretName": "s"}});
    let items =
        json!({"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}});
    let map = json!({"name": "v", "configMap": {"name": "m"}});
    let projected = json!({"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}, {"secret": {"name": "s", "optional": true}}]}});
    let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
    let mount = "MountVolume.SetUp failed for volume \"v\" : ";
    let process = "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: \
        error processing PVC default/c: ";
    for (volume, message) in [
        (secret, format!("{mount}secret \"s\" not found")),
        (items, format!("{mount}secret \"s\" not found")),
        (map, format!("{mount}configmap \"m\" not found")),
        (projected, format!("{mount}configmap \"m\" not found")),
        (
            claim,
            format!(
                "{process}failed to fetch PVC from API server: persistentvolumeclaims \"c\" not found"
            ),
        ),
    ] {
        let mut life = Life::new(json!({}), json!({"volumes": [volume]}));
        life.until(0);
        assert_eq!(life.summary(), "Pending NotReady [ContainerCreating]");
        assert_eq!(
            (life.notes.as_slice(), life.texts.as_slice()),
            (&["FailedMount".to_owned()][..], &[message][..])
        );
        assert_eq!(life.status().pod_ip, None);
        let sandbox = life
            .status()
            .conditions
            .iter()
            .flatten()
            .find(|c| c.type_ == "PodReadyToStartContainers");
        assert_eq!(sandbox.expect("there").status, "False");
        // Tried again after 0.5, 1, 2, 4 s.
        life.until(7_499);
        assert_eq!(life.notes.len(), 4, "{:?}", life.notes);
        life.sources
            .secrets
            .insert("s".to_owned(), object(json!({"data": {"k": "dg=="}})));
        life.sources
            .config_maps
            .insert("m".to_owned(), object(json!({})));
        life.sources.claims.insert("c".to_owned(), object(json!({"metadata": {"uid": "1"}, "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}})));
        life.sources.volumes.insert(
            "pv".to_owned(),
            object(json!({"spec": {"claimRef": {"uid": "1"}}})),
        );
        life.until(7_500);
        assert_eq!(life.summary(), "Running Ready [ready]");
        assert!(life.status().pod_ip.is_some());
    }
    let claimed = |claim: Value, volume: Option<Value>| {
        let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
        let mut life = Life::new(json!({}), json!({"volumes": volumes}));
        life.sources.claims.insert("c".to_owned(), object(claim));
        if let Some(volume) = volume {
            life.sources.volumes.insert("pv".to_owned(), object(volume));
        }
        life.until(0);
        life.texts.first().cloned().unwrap_or_default()
    };
    let bound = json!({"metadata": {"uid": "1"}, "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}});
    assert_eq!(
        claimed(json!({"status": {"phase": "Pending"}}), None),
        format!("{process}PVC is not bound")
    );
    assert_eq!(
        claimed(bound.clone(), None),
        format!(
            "{process}failed to fetch PV pv from API server: persistentvolumes \"pv\" not found"
        )
    );
    let stolen = json!({"spec": {"claimRef": {"uid": "2"}}});
    assert_eq!(
        claimed(bound, Some(stolen)),
        format!(
            "{process}found PV object pv but its pv.Spec.ClaimRef.UID 2 does not point to claim.UID 1"
        )
    );
}

/// `imageManager.EnsureImageExists` and `pullImage`.
#[test]
fn image_that_is_missing_is_pulled_again_with_back_off() {
    let mut life = Life::new(json!({}), json!({}));
    life.engine.simulation.miss_image("app:*");
    life.until(0);
    assert_eq!(life.summary(), "Pending NotReady [ErrImagePull]");
    assert_eq!(life.notes, ["Pulling", "Failed", "Failed"]);
    life.until(1_000);
    assert_eq!(life.summary(), "Pending NotReady [ImagePullBackOff]");
    assert_eq!(life.notes[3..], ["BackOff", "Failed"]);
    let status = life.status().container_statuses.as_ref().expect("one")[0].clone();
    let waiting = status.state.and_then(|s| s.waiting).expect("it waits");
    let message = waiting.message.expect("a message");
    assert!(
        message.starts_with("Back-off pulling image \"app:1\": ErrImagePull: rpc error"),
        "{message}"
    );
    // Pulled again 10, 20, 40 s after each failure.
    for (at, tries) in [
        (9_999, 1),
        (10_000, 2),
        (29_999, 2),
        (30_000, 3),
        (70_000, 4),
    ] {
        life.until(at);
        let pulls = life.notes.iter().filter(|note| *note == "Pulling").count();
        assert_eq!(pulls, tries, "after {at}");
    }
    life.engine.simulation.provide_image("app:*");
    life.until(150_000);
    assert_eq!(life.summary(), "Running Ready [ready]");

    let never =
        json!({"containers": [{"name": "app", "image": "app:1", "imagePullPolicy": "Never"}]});
    let mut life = Life::new(json!({"pull": "fail"}), never);
    life.until(0);
    assert_eq!(life.summary(), "Pending NotReady [ErrImageNeverPull]");
    assert_eq!(
        life.texts[0],
        "Container image \"app:1\" is not present with pull policy of Never"
    );

    let upper = json!({"containers": [{"name": "app", "image": "App:1"}]});
    let mut life = Life::new(json!({}), upper);
    life.until(0);
    assert_eq!(life.summary(), "Pending NotReady [InvalidImageName]");
}

/// `Kubelet.getPullSecretsForPod`.
#[test]
fn private_image_needs_a_pull_secret_of_its_registry() {
    let spec = json!({"imagePullSecrets": [{"name": "reg"}],
        "containers": [{"name": "app", "image": "registry.example.com/app:1"}]});
    let mut life = Life::new(json!({}), spec);
    life.engine
        .simulation
        .protect_image("registry.example.com/*");
    life.until(0);
    assert_eq!(life.notes[0], "FailedToRetrieveImagePullSecret");
    assert_eq!(
        life.texts[0],
        "Unable to retrieve some image pull secrets (reg); attempting to pull the image may not succeed."
    );
    assert_eq!(life.summary(), "Pending NotReady [ErrImagePull]");
    // {"auths": {"registry.example.com": {"username": "u"}}}
    let config = "eyJhdXRocyI6IHsicmVnaXN0cnkuZXhhbXBsZS5jb20iOiB7InVzZXJuYW1lIjogInUifX19";
    life.sources.secrets.insert(
        "reg".to_owned(),
        object(json!({"data": {".dockerconfigjson": config}})),
    );
    life.until(10_000);
    assert_eq!(life.summary(), "Running Ready [ready]");
}

/// `kubelet_pods.go: makeMounts`, `container/helpers.go: ExpandContainerVolumeMounts`.
#[test]
fn part_of_a_volume_is_named_by_the_environment() {
    let spec = |env: Value| {
        json!({"volumes": [{"name": "v", "configMap": {"name": "m"}}], "containers": [{"name": "app", "image": "app:1",
            "env": env, "volumeMounts": [{"name": "v", "mountPath": "/etc/app.conf", "subPathExpr": "$(WHO).conf"}]}]})
    };
    let map =
        object::<ConfigMap>(json!({"data": {"web.conf": "for the web", "db.conf": "for the db"}}));
    let mut life = Life::new(json!({}), spec(json!([])));
    life.sources.config_maps.insert("m".to_owned(), map.clone());
    life.until(0);
    let blocked = "Pending NotReady [CreateContainerConfigError]";
    assert_eq!(life.summary(), blocked);
    let text = "Error: missing value for WHO".to_owned();
    assert!(life.texts.contains(&text), "{:?}", life.texts);
    let mut life = Life::new(json!({}), spec(json!([{"name": "WHO", "value": "web"}])));
    life.sources.config_maps.insert("m".to_owned(), map);
    life.until(0);
    assert_eq!(life.summary(), "Running Ready [ready]");
    let container = &life.pod.spec.as_ref().expect("a spec").containers[0];
    let env = [("WHO".to_owned(), "web".to_owned())];
    let files = volumes::files(&life.pod, container, &env, &Place::default(), &life.sources);
    let files: Vec<_> = files
        .iter()
        .map(|file| (file.path.as_str(), &file.content[..]))
        .collect();
    assert_eq!(files, [("/etc/app.conf", &b"for the web"[..])]);
}

/// `clustertrustbundle_manager.go: GetTrustAnchorsByName, GetTrustAnchorsBySigner`.
#[test]
fn pod_waits_for_the_trust_bundles_that_it_needs() {
    let projected = |source: Value| {
        let mut source = source;
        source["path"] = json!("ca.crt");
        json!({"volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": source}]}}]})
    };
    let prefix = "MountVolume.SetUp failed for volume \"v\" : ";
    let by_name =
        "while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io \"b\" not found";
    let by_signer = "combination of signerName and labelSelector matched zero ClusterTrustBundles";
    let signed =
        json!({"signerName": "ex.io/s", "labelSelector": {"matchLabels": {"live": "true"}}});
    let bundle = |labels: Value| {
        let pem = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";
        object(
            json!({"metadata": {"name": "b", "labels": labels}, "spec": {"signerName": "ex.io/s", "trustBundle": pem}}),
        )
    };
    for (source, why) in [(json!({"name": "b"}), by_name), (signed, by_signer)] {
        let mut life = Life::new(json!({}), projected(source.clone()));
        life.until(0);
        assert_eq!(life.summary(), "Pending NotReady [ContainerCreating]");
        assert_eq!(life.texts, [format!("{prefix}{why}")]);
        let old = bundle(json!({}));
        life.sources.trust_bundles.insert("b".to_owned(), old);
        life.until(500);
        let named = source["name"] == "b";
        assert_eq!(life.summary().starts_with("Running"), named, "{source}");
        let live = bundle(json!({"live": "true"}));
        life.sources.trust_bundles.insert("b".to_owned(), live);
        life.until(10_000);
        assert_eq!(life.summary(), "Running Ready [ready]");
        let optional = {
            let mut optional = source.clone();
            optional["optional"] = json!(true);
            optional
        };
        let mut life = Life::new(json!({}), projected(optional));
        life.until(0);
        assert_eq!(life.summary(), "Running Ready [ready]", "{source}");
    }
}
