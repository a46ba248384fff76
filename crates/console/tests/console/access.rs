//! Who may do this.

use kubewright_console::Console;
use kubewright_server::{Authorization, Server, User};
use kubewright_testing::Wire;
use serde_json::json;

use crate::support::{self, create};

#[tokio::test(flavor = "multi_thread")]
async fn subjects_are_named_with_the_binding_that_lets_them() {
    let server = Server::builder()
        .authorization(Authorization::Rbac)
        .start()
        .await
        .expect("it starts");
    let admin = Wire::new(server.service()).client();
    let group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]);
    create(
        &admin,
        &format!("{group}/roles"),
        json!({"metadata": {"name": "reaper"}, "rules": rules}),
    )
    .await;
    create(
        &admin,
        &format!("{group}/rolebindings"),
        json!({"metadata": {"name": "reapers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reaper"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]}),
    )
    .await;
    let (_running, page) = support::open(Console::new(admin)).await;
    let who = async |ns: &str| {
        page.get(&format!("/api/access?verb=delete&kind=v1/pods&ns={ns}"))
            .await
            .1
    };
    let here = who("default").await;
    let ann = here["who"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"] == "ann");
    let ann = ann.unwrap_or_else(|| panic!("{here}"));
    assert_eq!(
        (&ann["binding"]["name"], &ann["role"]["name"]),
        (&json!("reapers"), &json!("reaper"))
    );
    let masters = here["who"].to_string();
    assert!(masters.contains("system:masters"), "{masters}");
    assert!(
        !who("kube-system").await["who"]
            .to_string()
            .contains("\"ann\"")
    );
    // Somebody who may not read roles learns that the answer is not whole.
    let ann = Wire::new(server.service_as(User::new("ann", ["system:authenticated"]))).client();
    let (_ann, page) = support::open(Console::new(ann)).await;
    let seen = page
        .get("/api/access?verb=delete&kind=v1/pods&ns=default")
        .await
        .1;
    assert_eq!(seen["notRead"].as_array().map(Vec::len), Some(4), "{seen}");
}
