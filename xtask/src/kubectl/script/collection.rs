//! Garbage collection of what a custom resource owns, on a cluster that has just started: the kind is as new as its owner.

use super::super::step::{Group, Step, World, kubectl, kubectl_with};

/// The first group of its world, so that its cluster is fresh.
pub(crate) fn group() -> Group {
    let steps = [owned(), gone()].concat().into_iter();
    Group {
        name: "collection",
        world: World::Cluster,
        // The oldest that waits for any field.
        steps: steps.map(|step| step.since(23)).collect(),
    }
}

const TREE: &str = "apiVersion: user.k8sasdb.org/v1
kind: Fruit
metadata: {name: tree}
spec: {weight: 900}
";

/// Two Deployments of the tree.
const BRANCHES: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: left
  labels: {of: tree}
  ownerReferences: [{apiVersion: user.k8sasdb.org/v1, kind: Fruit, name: tree, uid: PRINTED-BEFORE}]
spec:
  replicas: 2
  selector: {matchLabels: {side: left}}
  template:
    metadata: {labels: {side: left, of: tree}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: 'app:1'}]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: right
  labels: {of: tree}
  ownerReferences: [{apiVersion: user.k8sasdb.org/v1, kind: Fruit, name: tree, uid: PRINTED-BEFORE}]
spec:
  replicas: 2
  selector: {matchLabels: {side: right}}
  template:
    metadata: {labels: {side: right, of: tree}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: 'app:1'}]}
";

fn owned() -> Vec<Step> {
    vec![
        kubectl("apply -f examples/fruit/crd.yaml"),
        kubectl("wait --for=condition=established crd/fruits.user.k8sasdb.org --timeout=10s"),
        kubectl_with("create -f -", TREE),
        kubectl("get fruit tree -o jsonpath={.metadata.uid}").matches("^[0-9a-f-]{36}$"),
        kubectl_with("create -f -", BRANCHES)
            .prints("deployment.apps/left created")
            .prints("deployment.apps/right created"),
        kubectl("rollout status deployment/left --timeout=20s"),
        kubectl("rollout status deployment/right --timeout=20s"),
    ]
}

/// Each level is waited for before it is looked at: an owner that is only asked to go may take its time.
fn gone() -> Vec<Step> {
    vec![
        kubectl("delete fruit tree --timeout=20s"),
        kubectl("wait --for=delete deployments -l of=tree --timeout=20s"),
        kubectl("wait --for=delete replicasets -l of=tree --timeout=20s"),
        kubectl("wait --for=delete pods -l of=tree --timeout=25s"),
        kubectl("get deployments,replicasets,pods -l of=tree -o name").prints_exactly(""),
        kubectl("delete -f examples/fruit/crd.yaml"),
    ]
}
