//! Deleting: at once, in the background, in the foreground, and held up by finalizers.
//!
//! Nothing collects garbage here: an object that is deleted in the foreground waits for its finalizer to be removed.

use super::super::step::{Group, Step, World, kubectl, kubectl_with, meanwhile};

const THREE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {set: three}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, labels: {set: three}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: three, labels: {set: three}}
";

const HELD: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.com/hold]}
";

const OWNER: &str = "
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: owner}
spec:
  selector: {matchLabels: {app: owner}}
  template:
    metadata: {labels: {app: owner}}
    spec: {containers: [{name: main, image: 'busybox:1'}]}
";

pub(crate) fn group() -> Group {
    Group {
        name: "deletion",
        world: World::Server,
        steps: [many(), finalizers(), policies()].concat(),
    }
}

fn many() -> Vec<Step> {
    vec![
        kubectl_with("create -f -", THREE).prints("configmap/three created"),
        kubectl("delete cm one --dry-run=server")
            .needs_openapi()
            // From 1.34 on the namespace stands between the two.
            .prints("configmap \"one\" deleted")
            .prints("(server dry run)"),
        kubectl("delete cm one --now").prints("configmap \"one\" deleted"),
        kubectl("delete cm -l set=three")
            .prints("configmap \"two\" deleted")
            .prints("configmap \"three\" deleted")
            .lacks("one"),
        kubectl("delete cm -l set=three").prints("No resources found"),
        kubectl("delete cm one")
            .fails("Error from server (NotFound): configmaps \"one\" not found"),
        kubectl("delete namespace default --wait=false")
            .fails("namespaces \"default\" is forbidden: this namespace may not be deleted"),
    ]
}

fn finalizers() -> Vec<Step> {
    vec![
        kubectl_with("create -f -", HELD).prints_exactly("configmap/held created"),
        kubectl("delete cm held --wait=false").prints("configmap \"held\" deleted"),
        kubectl("get cm held -o jsonpath='{.metadata.deletionGracePeriodSeconds} {.metadata.finalizers}'")
            .prints_exactly(r#"0 ["example.com/hold"]"#),
        kubectl("patch cm held --type=merge -p '{\"metadata\":{\"finalizers\":[\"example.com/hold\",\"example.com/new\"]}}'")
            .fails("metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/new\"}"),
        meanwhile(
            "delete cm held",
            "deleted",
            "patch cm held --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'",
        )
        .prints("configmap \"held\" deleted"),
        kubectl("get cm held").fails("configmaps \"held\" not found"),
    ]
}

fn policies() -> Vec<Step> {
    vec![
        kubectl_with("create -f -", OWNER).prints_exactly("replicaset.apps/owner created"),
        kubectl("delete rs owner --cascade=foreground --wait=false")
            .prints("replicaset.apps \"owner\" deleted"),
        kubectl("get rs owner -o jsonpath={.metadata.finalizers}")
            .prints_exactly(r#"["foregroundDeletion"]"#),
        kubectl("patch rs owner --type=merge -p '{\"metadata\":{\"finalizers\":null}}'")
            .prints("replicaset.apps/owner patched"),
        kubectl("get rs owner").fails("replicasets.apps \"owner\" not found"),
        kubectl_with("create -f -", OWNER).prints_exactly("replicaset.apps/owner created"),
        kubectl("delete rs owner --cascade=orphan --wait=false")
            .prints("replicaset.apps \"owner\" deleted"),
        kubectl("get rs owner -o jsonpath={.metadata.finalizers}").prints_exactly(r#"["orphan"]"#),
        kubectl("patch rs owner --type=merge -p '{\"metadata\":{\"finalizers\":null}}'")
            .prints("replicaset.apps/owner patched"),
        kubectl_with("create -f -", OWNER).prints_exactly("replicaset.apps/owner created"),
        kubectl("delete rs owner --cascade=background").prints("replicaset.apps \"owner\" deleted"),
        kubectl("get rs owner").fails("replicasets.apps \"owner\" not found"),
    ]
}
