//! The operator's own role, and what it uses of it.

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::prelude::*;
use kubewright::testing::World;

use crate::operator::{Mistake, assert_has, create, key, panic_of, until_text};

#[tokio::test(start_paused = true)]
async fn operator_works_with_the_role_that_is_generated_for_it() {
    let world = World::builder().without_controllers().start().await;
    create(&world, "a", Mistake::None).await;
    until_text(&world, "a", "hello").await;
    let compared = world.role_use();
    assert_eq!(compared.missing, [], "{compared}");
    let unused: Vec<String> = compared.unused.iter().map(ToString::to_string).collect();
    assert!(
        unused.contains(&"delete configmaps".to_owned()),
        "{unused:?}"
    );
    for used in [
        "list configmaps",
        "watch notes.notes.example.com",
        "patch configmaps",
        "create configmaps",
    ] {
        assert!(!unused.contains(&used.to_owned()), "{unused:?}");
    }
    let text = panic_of(async { world.assert_exact_role() }).await;
    assert_has(
        &text,
        &["the role is not exact:\n", "unused: delete configmaps\n"],
    );
}

#[tokio::test(start_paused = true)]
async fn administrator_is_refused_nothing_and_the_missing_rule_is_known() {
    let world = World::builder()
        .as_admin()
        .without_controllers()
        .start()
        .await;
    create(&world, "a", Mistake::Read).await;
    until_text(&world, "a", "hello").await;
    let missing = world.role_use().missing;
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["get secrets default/a"]);
}

const ROLE: &str = "\
apiVersion: v1
kind: ServiceAccount
metadata: {name: notes, namespace: notes}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: notes}
rules:
- {apiGroups: [notes.example.com], resources: [notes], verbs: [list, watch]}
- {apiGroups: [notes.example.com], resources: [notes/finalizers], verbs: [update]}
- {apiGroups: [''], resources: [configmaps], verbs: [list, watch, create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: notes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: notes}
subjects: [{kind: ServiceAccount, name: notes, namespace: notes}]
";

#[tokio::test(start_paused = true)]
async fn role_that_is_written_by_hand_can_be_exact() {
    let world = World::builder()
        .role(ROLE)
        .without_controllers()
        .start()
        .await;
    create(&world, "a", Mistake::None).await;
    until_text(&world, "a", "hello").await;
    world.assert_exact_role();
    let less = ROLE.replace("list, watch, create, patch", "list, watch, patch");
    let world = World::builder()
        .role(&less)
        .without_controllers()
        .start()
        .await;
    create(&world, "a", Mistake::None).await;
    let is_there = |map: Option<&ConfigMap>| map.is_some();
    let text = panic_of(world.until(&key("a"), is_there)).await;
    assert_has(&text, &["the operator may not "]);
}

#[tokio::test(start_paused = true)]
async fn writes_are_those_of_the_operator_alone() {
    let world = World::builder().without_controllers().start().await;
    create(&world, "a", Mistake::None).await;
    until_text(&world, "a", "hello").await;
    let writes = world.writes();
    let writes: Vec<String> = writes.iter().map(ToString::to_string).collect();
    assert_eq!(writes, ["patch configmaps default/a: 201"]);
    let mark = world.mark();
    world
        .assert_no_writes(std::time::Duration::from_secs(600))
        .await;
    assert!(world.writes_since(mark).is_empty());
    let map = world.client.live().get::<ConfigMap>(&key("a")).await;
    let map = map.expect("the server answers").expect("it is there");
    world
        .client
        .delete(&map, Delete::background())
        .await
        .expect("it is deleted");
    until_text(&world, "a", "hello").await;
    assert_eq!(
        world.writes_since(mark).len(),
        1,
        "it was put back, and the test's own write is not counted"
    );
}
