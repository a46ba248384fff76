//! An operator of some namespaces: its roles are in these, and it asks for nothing outside of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{NAMESPACE, Place, monitoring, roles, support};

/// The namespaces that there are; the operator works in all but the last.
const NAMESPACES: [&str; 3] = ["team-a", "team-b", "team-c"];

/// Deploys the operator for two namespaces, and writes a book in three.
pub(crate) async fn operator_works_with_roles_in_its_namespaces_alone() {
    let place = Place::new().await;
    monitoring::define_monitors(&place).await;
    for name in NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        place.create("/api/v1/namespaces", &namespace).await;
    }
    let project = place.project();
    let watched = NAMESPACES[..2].join(",");
    let words = ["edit", "--namespaced", "--watch-namespace", &watched];
    let words = [&words[..], &["--project", &project]].concat();
    support::kubewright(place.folder.path(), &words).works();
    place
        .kubewright("deploy --image example.com/library:1")
        .await;
    let kubeconfig = place.service_account(NAMESPACE).await;
    let replica = place.start(&kubeconfig).await;
    place.lead_to(&replica);
    replica.is_ready().await;
    // The last one comes first: whoever looked at it would have done so when the others were read.
    for name in NAMESPACES.into_iter().rev() {
        let book = json!({
            "apiVersion": "shelf.my.domain/v1", "kind": "Book", "metadata": {"name": "one"},
            "spec": {"title": "Emma"},
        });
        let path = format!("/apis/shelf.my.domain/v1/namespaces/{name}/books");
        place.create(&path, &book).await;
    }
    let watched: BTreeSet<String> = NAMESPACES[..2].iter().map(ToString::to_string).collect();
    let both = async || read_in(&place).await.is_superset(&watched);
    place.until("books of both namespaces are read", both).await;
    assert_eq!(read_in(&place).await, watched);
    assert_eq!(roles::refused(&place, NAMESPACE).await, BTreeSet::new());
    let bindings = place
        .get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")
        .await;
    let bindings = bindings["items"].as_array().expect("a list").iter();
    let of_manager = bindings.filter(|it| it["roleRef"]["name"] == "library-manager-role");
    assert_eq!(of_manager.count(), 0, "its role is in its namespaces");
}

/// The namespaces in which the operator has read a book.
async fn read_in(place: &Place) -> BTreeSet<String> {
    let events = place.get("/api/v1/events").await;
    let events = events["items"].as_array().expect("a list").iter();
    let read = events.filter(|event| event["reason"] == "Read");
    let namespace = |event: &Value| event["metadata"]["namespace"].as_str().map(str::to_owned);
    read.filter_map(namespace).collect()
}
