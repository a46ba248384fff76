//! What the operator may do is what it did: with its roles each of its requests is allowed, and without any one rule not all are.
//!
//! The rules are removed from the roles on the server, and the server is asked. What was done is in its audit log.

use std::collections::BTreeSet;

use base64::Engine as _;
use serde_json::{Value, json};

use super::monitoring;
use super::{NAMESPACE, Place};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The name of the account everywhere.
const ACCOUNT: &str = "library-controller-manager";
/// Where the bundle is installed.
const BUNDLED: &str = "bundled";

/// Removes each rule of an account's roles in turn. Some request that the account has made must be refused then.
pub(crate) async fn each_rule_is_needed(place: &Place, namespace: &str) {
    let roles = bound_roles(place, namespace).await;
    let mut count = 0;
    assert_eq!(refused(place, namespace).await, BTreeSet::new());
    for path in roles {
        let role = place.get(&path).await;
        let rules = role["rules"].as_array().expect("rules").clone();
        for (number, rule) in rules.iter().enumerate() {
            let mut less = rules.clone();
            less.remove(number);
            place.patch(&path, &json!({ "rules": less })).await;
            let is_missed = async || !refused(place, namespace).await.is_empty();
            let what = format!("{path} is used up to its rule {rule}");
            place.until(&what, is_missed).await;
            count += 1;
        }
        place.patch(&path, &json!({ "rules": rules })).await;
    }
    let is_whole = async || refused(place, namespace).await.is_empty();
    place.until("the roles are whole again", is_whole).await;
    println!("{count} rules of {namespace}/{ACCOUNT}, each is needed");
}

/// The roles that are bound to the account, by path.
async fn bound_roles(place: &Place, namespace: &str) -> Vec<String> {
    let mut found = Vec::new();
    for kind in ["clusterrolebindings", "rolebindings"] {
        let bindings = place.get(&format!("{RBAC}/{kind}")).await;
        let bindings = bindings["items"].as_array().expect("a list").clone();
        let is_for = |binding: &&Value| {
            let mut subjects = binding["subjects"].as_array().into_iter().flatten();
            subjects.any(|it| it["name"] == ACCOUNT && it["namespace"] == namespace)
        };
        for binding in bindings.iter().filter(is_for) {
            let name = binding["roleRef"]["name"].as_str().expect("a name");
            let of = binding["metadata"]["namespace"].as_str();
            found.push(match (binding["roleRef"]["kind"].as_str(), of) {
                (Some("Role"), Some(of)) => format!("{RBAC}/namespaces/{of}/roles/{name}"),
                _ => format!("{RBAC}/clusterroles/{name}"),
            });
        }
    }
    assert!(!found.is_empty(), "nothing is bound to {namespace}");
    found
}

/// Which of the requests that an account has made would be refused now.
pub(crate) async fn refused(place: &Place, namespace: &str) -> BTreeSet<String> {
    let user = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    let mut found = BTreeSet::new();
    for attributes in requests(place, &user) {
        let asked = serde_json::from_str(&attributes).expect("JSON");
        if !is_allowed(place, &user, asked).await {
            found.insert(attributes);
        }
    }
    found
}

/// Asks the server whether somebody may do something.
async fn is_allowed(place: &Place, user: &str, attributes: Value) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
        "spec": {"user": user, "resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    place.create(path, &review).await["status"]["allowed"] == true
}

/// What those may do with books who have one of the roles for people: verb, subresource, and whether it is allowed.
const PEOPLE: [(&str, &str, &str, bool); 9] = [
    ("viewer", "list", "", true),
    ("viewer", "get", "status", true),
    ("viewer", "create", "", false),
    ("editor", "create", "", true),
    ("editor", "delete", "", true),
    ("editor", "deletecollection", "", false),
    ("editor", "update", "status", false),
    ("admin", "deletecollection", "", true),
    ("admin", "update", "status", false),
];

/// Binds each of the roles for people to somebody, and has the server say what they may do then.
pub(crate) async fn people_may_do_what_their_roles_say(place: &Place) {
    for who in ["admin", "editor", "viewer"] {
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": who},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": format!("library-book-{who}-role")},
            "subjects": [{"apiGroup": group, "kind": "User", "name": who}],
        });
        place
            .create(&format!("{RBAC}/clusterrolebindings"), &binding)
            .await;
    }
    for (who, verb, subresource, allowed) in PEOPLE {
        let asked = json!({
            "verb": verb, "group": "shelf.my.domain", "resource": "books",
            "subresource": subresource, "namespace": "default",
        });
        let answered = async || is_allowed(place, who, asked.clone()).await == allowed;
        let what = format!("{who} may {verb} books {subresource}: {allowed}");
        place.until(&what, answered).await;
    }
}

/// What a user has asked for, as the audit log has it, in the words of reviews.
fn requests(place: &Place, user: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(place.audit_log()).expect("an audit log");
    let events = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let own = events.filter(|event| event["user"]["username"] == user);
    let of_objects = own.filter(|event| event["objectRef"].is_object());
    let attributes = of_objects.map(|event| {
        let object = &event["objectRef"];
        json!({
            "verb": event["verb"], "group": object["apiGroup"], "resource": object["resource"],
            "subresource": object["subresource"], "namespace": object["namespace"], "name": object["name"],
        })
        .to_string()
    });
    let found: BTreeSet<String> = attributes.collect();
    assert!(!found.is_empty(), "{user} has asked for nothing");
    found
}

/// Runs the operator as the Lifecycle Manager would, from the bundle: with its account and its roles alone.
pub(crate) async fn bundle_has_what_it_needs(place: &Place) {
    place.kubewright("generate olm").await;
    let file = "dist/bundle/manifests/library.clusterserviceversion.yaml";
    let text = std::fs::read_to_string(place.folder.path().join("library").join(file));
    let version: Value = serde_saphyr::from_str(&text.expect("it is there")).expect("YAML");
    let install = &version["spec"]["install"]["spec"];
    install_bundle(place, install).await;
    let pod = &install["deployments"][0]["spec"]["template"]["spec"];
    let certificates = place.folder.path().join("certificates");
    write_certificates(place, &certificates).await;
    // What is mounted there by the Lifecycle Manager.
    let mounted = "/tmp/k8s-webhook-server/serving-certs";
    let here = certificates.display().to_string();
    let arguments = pod["containers"][0]["args"].as_array().expect("arguments");
    let arguments = arguments.iter().filter_map(Value::as_str);
    let arguments: Vec<String> = arguments.map(|it| it.replace(mounted, &here)).collect();
    assert!(
        arguments.iter().any(|it| it.contains(&here)),
        "{arguments:?}"
    );
    let kubeconfig = place.service_account(BUNDLED).await;
    let replica = place
        .start_with(Place::program(), &kubeconfig, &arguments)
        .await;
    replica.is_ready().await;
    let mut config = kube::Config::new(
        format!("https://{}", replica.metrics)
            .parse()
            .expect("an address"),
    );
    // Nobody makes a certificate for metrics there: the operator has made one for itself.
    config.accept_invalid_certs = true;
    let read = monitoring::read(place, config, "scraper", None).await;
    read.expect("metrics are read");
    each_rule_is_needed(place, BUNDLED).await;
}

/// Makes the account and its roles as a ClusterServiceVersion has them.
async fn install_bundle(place: &Place, install: &Value) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": BUNDLED}});
    place.create("/api/v1/namespaces", &namespace).await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    let accounts = format!("/api/v1/namespaces/{BUNDLED}/serviceaccounts");
    place.create(&accounts, &account).await;
    for (field, prefix, around) in [
        ("clusterPermissions", "Cluster", RBAC.to_owned()),
        ("permissions", "", format!("{RBAC}/namespaces/{BUNDLED}")),
    ] {
        let granted = install[field].as_array().expect("permissions");
        assert_eq!(granted.len(), 1, "{field}");
        assert_eq!(granted[0]["serviceAccountName"], ACCOUNT);
        let (kind, path) = (format!("{prefix}Role"), prefix.to_ascii_lowercase());
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": "bundled"}, "rules": granted[0]["rules"],
        });
        place.create(&format!("{around}/{path}roles"), &role).await;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
            "metadata": {"name": "bundled"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "bundled"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": BUNDLED}],
        });
        place
            .create(&format!("{around}/{path}rolebindings"), &binding)
            .await;
    }
}

/// Writes a certificate and its key where the Lifecycle Manager would mount them.
async fn write_certificates(place: &Place, folder: &std::path::Path) {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/library-server-cert");
    let secret = place.get(&path).await;
    std::fs::create_dir(folder).expect("it can be made");
    for name in ["tls.crt", "tls.key"] {
        let text = secret["data"][name].as_str().expect("the manager wrote it");
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        std::fs::write(folder.join(name), bytes.expect("base64")).expect("it can be written");
    }
}
