//! `ServiceAccount`: a pod runs as an account that exists, and finds that account's token in its files.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::PluginRefusal;
use super::attributes::{AdmissionRequest, Operation};
use crate::kinds::value::{ensure, is_empty, items, items_mut, map, set, strings, text};
use crate::object;

const DEFAULT: &str = "default";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
/// An hour, and seven seconds by which such tokens are known.
const TOKEN_SECONDS: u32 = 3607;

/// Whether it is about a new pod.
pub(super) fn concerns(request: &AdmissionRequest<'_>) -> bool {
    request.operation == Operation::Create && request.is_whole("", "Pod")
}

/// Whether it is about containers that are added to a pod that runs.
pub(super) fn concerns_ephemeral(request: &AdmissionRequest<'_>) -> bool {
    request.operation == Operation::Update
        && request.subresource == "ephemeralcontainers"
        && request.is("", "Pod")
}

/// Whether a pod stands for one that a node runs by itself; such pods are left as they are.
pub(super) fn is_mirror(pod: &Value) -> bool {
    !pod["metadata"]["annotations"][MIRROR].is_null()
}

/// The account that a pod runs as, which is written into the pod if it is missing.
pub(super) fn name(pod: &mut Value) -> String {
    let spec = ensure(pod, "spec");
    if text(&spec["serviceAccountName"]).is_empty() {
        set(spec, "serviceAccountName", DEFAULT);
        set(spec, "serviceAccount", DEFAULT);
    }
    text(&spec["serviceAccountName"]).to_owned()
}

/// Gives a pod what comes with its account. `suffix` makes the volume's name unlike others.
pub(super) fn equip(account: &Value, pod: &mut Value, suffix: &str) {
    let own = pod["spec"]["automountServiceAccountToken"].as_bool();
    let usual = account["automountServiceAccountToken"].as_bool();
    if own.or(usual).unwrap_or(true) {
        mount_token(pod, suffix);
    }
    let spec = ensure(pod, "spec");
    if is_empty(&spec["imagePullSecrets"]) && !is_empty(&account["imagePullSecrets"]) {
        let names = items(&account["imagePullSecrets"]).iter();
        let names: Vec<Value> = names
            .map(|secret| json!({"name": secret["name"]}))
            .collect();
        set(spec, "imagePullSecrets", names);
    }
}

fn mount_token(pod: &mut Value, suffix: &str) {
    let spec = ensure(pod, "spec");
    let present = items(&spec["volumes"])
        .iter()
        .map(|volume| text(&volume["name"]))
        .find(|name| name.starts_with(VOLUME_PREFIX))
        .map(str::to_owned);
    let has_volume = present.is_some();
    let volume = present.unwrap_or_else(|| format!("{VOLUME_PREFIX}{suffix}"));
    let mount = json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH});
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in items_mut(spec.get_mut(list)) {
            let taken = |mount: &Value| mount["mountPath"] == MOUNT_PATH;
            if items(&container["volumeMounts"]).iter().any(taken) {
                continue;
            }
            push(container, "volumeMounts", mount.clone());
            mounted = true;
        }
    }
    if mounted && !has_volume {
        push(
            spec,
            "volumes",
            json!({"name": volume, "projected": token_source()}),
        );
    }
}

fn push(value: &mut Value, field: &str, item: Value) {
    let list = map(value).entry(field).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

fn token_source() -> Value {
    json!({
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            ]}},
        ],
    })
}

/// What a pod that a node runs by itself may not have.
pub(super) fn validate_mirror(pod: &Value) -> Result<(), PluginRefusal> {
    let spec = &pod["spec"];
    if !text(&spec["serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts".into());
    }
    let volumes = items(&spec["volumes"]);
    if volumes.iter().any(|volume| !volume["secret"].is_null())
        || !secrets(spec, &FROM_THE_START).is_empty()
    {
        return Err("a mirror pod may not reference secrets".into());
    }
    let projects_token = |volume: &Value| {
        let sources = items(&volume["projected"]["sources"]);
        sources
            .iter()
            .any(|source| !source["serviceAccountToken"].is_null())
    };
    if volumes.iter().any(projects_token) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".into());
    }
    Ok(())
}

/// Containers that a pod has from the start: the field, and how a refusal calls them.
const FROM_THE_START: [(&str, &str); 2] = [
    ("initContainers", "init container"),
    ("containers", "container"),
];
/// Containers that are added later.
const EPHEMERAL: [(&str, &str); 1] = [("ephemeralContainers", "ephemeral container")];

/// The secrets that containers read, with what says so.
fn secrets<'v>(spec: &'v Value, lists: &[(&str, &str)]) -> Vec<(String, &'v str)> {
    let mut found = Vec::new();
    for (list, shown) in lists {
        for container in items(&spec[*list]) {
            let holder = format!("{shown} {}", text(&container["name"]));
            for variable in items(&container["env"]) {
                let secret = &variable["valueFrom"]["secretKeyRef"];
                if !secret.is_null() {
                    let name = text(&variable["name"]);
                    found.push((
                        format!("{holder} with envVar {name}"),
                        text(&secret["name"]),
                    ));
                }
            }
            for source in items(&container["envFrom"]) {
                if !source["secretRef"].is_null() {
                    let name = text(&source["secretRef"]["name"]);
                    found.push((format!("{holder} with envFrom"), name));
                }
            }
        }
    }
    found
}

fn is_enforced(account: &Value) -> bool {
    let enforced = text(&account["metadata"]["annotations"][ENFORCE]);
    matches!(enforced, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// The names in a list of references.
fn listed(list: &Value) -> BTreeSet<String> {
    let names = items(list).iter();
    names
        .map(|secret| text(&secret["name"]).to_owned())
        .collect()
}

fn check_containers(
    mountable: &BTreeSet<String>,
    account: &str,
    spec: &Value,
    lists: &[(&str, &str)],
) -> Result<(), PluginRefusal> {
    for (holder, secret) in secrets(spec, lists) {
        if !mountable.contains(secret) {
            return Err(PluginRefusal(format!(
                "{holder} referencing secret.secretName=\"{secret}\" is not allowed because service account {account} does not reference that secret"
            )));
        }
    }
    Ok(())
}

/// Refuses secrets that an account does not list in containers that are added to a pod
/// (admission.go: `limitEphemeralContainerSecretReferences`).
pub(super) fn validate_ephemeral(account: &Value, pod: &Value) -> Result<(), PluginRefusal> {
    if !is_enforced(account) {
        return Ok(());
    }
    let name = object::name(account);
    check_containers(&listed(&account["secrets"]), name, &pod["spec"], &EPHEMERAL)
}

/// Refuses secrets that an account does not list, when the account says that this matters.
pub(super) fn validate_secrets(account: &Value, pod: &Value) -> Result<(), PluginRefusal> {
    if !is_enforced(account) {
        return Ok(());
    }
    let (spec, name) = (&pod["spec"], object::name(account));
    let mountable = listed(&account["secrets"]);
    for volume in items(&spec["volumes"]) {
        for secret in strings_of(&volume["secret"]["secretName"]) {
            if !mountable.contains(secret) {
                return Err(PluginRefusal(format!(
                    "volume with secret.secretName=\"{secret}\" is not allowed because service account {name} does not reference that secret"
                )));
            }
        }
    }
    check_containers(&mountable, name, spec, &FROM_THE_START)?;
    let pulls = listed(&account["imagePullSecrets"]);
    for (i, secret) in items(&spec["imagePullSecrets"]).iter().enumerate() {
        let secret = text(&secret["name"]);
        if !pulls.contains(secret) {
            return Err(PluginRefusal(format!(
                "imagePullSecrets[{i}].name=\"{secret}\" is not allowed because service account {name} does not reference that imagePullSecret"
            )));
        }
    }
    Ok(())
}

fn strings_of(value: &Value) -> impl Iterator<Item = &str> {
    strings(value).chain(value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    #[test]
    fn pods_run_as_the_default_account() {
        let mut given = pod(json!({"serviceAccountName": "a"}));
        assert_eq!(name(&mut given), "a");
        let mut absent = pod(json!({}));
        assert_eq!(name(&mut absent), "default");
        assert_eq!(absent["spec"]["serviceAccount"], "default");
    }

    #[test]
    fn containers_find_the_token_in_their_files() {
        let own = json!([{"name": "x", "mountPath": MOUNT_PATH}]);
        let mut equipped =
            pod(json!({"containers": [{"name": "a"}, {"name": "b", "volumeMounts": own}]}));
        equip(&json!({}), &mut equipped, "bcdfg");
        let spec = &equipped["spec"];
        assert_eq!(
            spec["containers"][0]["volumeMounts"],
            json!([{"name": "kube-api-access-bcdfg", "readOnly": true, "mountPath": MOUNT_PATH}])
        );
        assert_eq!(spec["containers"][1]["volumeMounts"], own);
        assert_eq!(spec["volumes"][0]["projected"], token_source());
        let before = equipped.clone();
        equip(&json!({}), &mut equipped, "other");
        assert_eq!(equipped, before);
    }

    #[test]
    fn tokens_can_be_declined_by_account_and_by_pod() {
        let no = json!({"automountServiceAccountToken": false});
        for (account, spec, mounts) in [
            (json!({}), json!({}), true),
            (no.clone(), json!({}), false),
            (json!({}), no.clone(), false),
            (
                no.clone(),
                json!({"automountServiceAccountToken": true}),
                true,
            ),
        ] {
            let mut spec = spec;
            spec["containers"] = json!([{"name": "a"}]);
            let mut pod = pod(spec);
            equip(&account, &mut pod, "x");
            assert_eq!(!items(&pod["spec"]["volumes"]).is_empty(), mounts);
        }
    }

    #[test]
    fn accounts_can_insist_on_the_secrets_they_list() {
        let account = json!({
            "metadata": {"name": "sa", "annotations": {ENFORCE: "true"}}, "secrets": [{"name": "ok"}],
        });
        let volume =
            |name: &str| pod(json!({"volumes": [{"name": "v", "secret": {"secretName": name}}]}));
        assert_eq!(validate_secrets(&account, &volume("ok")), Ok(()));
        assert_eq!(
            validate_secrets(&account, &volume("no")),
            Err("volume with secret.secretName=\"no\" is not allowed because service account sa does not reference that secret".into())
        );
        assert_eq!(validate_secrets(&json!({}), &volume("no")), Ok(()));
    }
}
