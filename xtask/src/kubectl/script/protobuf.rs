//! What kubectl sends in other formats than JSON: built-in objects it makes itself, and server-side apply.

use super::super::step::{Group, World, kubectl, kubectl_with};

const APPLIED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: applied}
data: {colour: blue}
";

const APPLIED_RED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: applied}
data: {colour: red}
";

pub(crate) fn group() -> Group {
    Group {
        name: "protobuf",
        world: World::Server,
        steps: vec![
            kubectl("create configmap made --from-literal=colour=blue")
                .prints_exactly("configmap/made created"),
            kubectl("get cm made -o jsonpath={.data.colour}").prints_exactly("blue"),
            kubectl("create deployment made --image=nginx:1.25 --replicas=3")
                .prints_exactly("deployment.apps/made created"),
            kubectl("get deployment made -o jsonpath='{.spec.replicas} {.spec.template.spec.containers[0].image}'")
                .prints_exactly("3 nginx:1.25"),
            kubectl("create namespace made").prints_exactly("namespace/made created"),
            kubectl("create secret generic made --from-literal=word=sesame")
                .prints_exactly("secret/made created"),
            kubectl("get secret made -o jsonpath={.data.word}").prints_exactly("c2VzYW1l"),
            kubectl("create serviceaccount made").prints_exactly("serviceaccount/made created"),
            kubectl("create role made --verb=get --resource=pods")
                .prints_exactly("role.rbac.authorization.k8s.io/made created"),
            kubectl("run made --image=busybox:1").prints_exactly("pod/made created"),
            kubectl("expose deployment made --port=80").prints_exactly("service/made exposed"),
            kubectl_with("apply --server-side -f -", APPLIED)
                .prints_exactly("configmap/applied serverside-applied"),
            kubectl_with("apply --server-side -f -", APPLIED)
                .prints_exactly("configmap/applied serverside-applied"),
            kubectl("get cm applied --show-managed-fields -o jsonpath='{.metadata.managedFields[*].manager} {.metadata.managedFields[*].operation}'")
                .since(21)
                .prints_exactly("kubectl Apply"),
            kubectl_with("apply --server-side --field-manager=other -f -", APPLIED_RED)
                .fails("conflict with \"kubectl\": .data.colour"),
            kubectl_with("apply --server-side --field-manager=other --force-conflicts -f -", APPLIED_RED)
                .prints_exactly("configmap/applied serverside-applied"),
            kubectl("get cm applied -o jsonpath={.data.colour}").prints_exactly("red"),
        ],
    }
}
