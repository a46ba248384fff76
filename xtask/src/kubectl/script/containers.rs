//! What kubectl does with containers that run: exec, copies, logs, debugging, measurements, ports by proxy.

use super::super::step::{Group, Step, World, kubectl, kubectl_with};

/// A pod that serves, writes, and has a file.
const POD: &str = r#"{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"files"},"data":{"greeting":"hello"}},
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"box","labels":{"app":"box"},
 "annotations":{"sim.kubewright.dev/cpu":"200m","sim.kubewright.dev/memory":"64Mi"}},
 "spec":{"volumes":[{"name":"v","configMap":{"name":"files"}}],"containers":[{"name":"app","image":"nginx:1",
 "ports":[{"containerPort":80}],"env":[{"name":"WHO","value":"me"}],"volumeMounts":[{"name":"v","mountPath":"/files"}]}]}}]}"#;

pub(crate) fn group() -> Group {
    Group {
        name: "containers",
        world: World::Cluster,
        steps: [commands(), missing(), measured()].concat(),
    }
}

fn commands() -> Vec<Step> {
    vec![
        kubectl_with("apply -f -", POD),
        kubectl("wait --for=condition=ready pod/box --timeout=20s"),
        kubectl("exec box -- printenv WHO").prints_exactly("me"),
        kubectl("exec box -- cat /files/greeting").prints_exactly("hello"),
        kubectl("exec box -- sh -c 'exit 3'")
            .code(3)
            .complains("exit code 3"),
        kubectl_with("exec -i box -- sh", "echo typed\n").prints("typed"),
        kubectl("cp README.md box:/tmp/copied"),
        kubectl("exec box -- ls /tmp").prints("copied"),
        kubectl("logs box").prints("container app started"),
        kubectl("get --raw /api/v1/namespaces/default/pods/box:80/proxy/page").prints("GET /page"),
    ]
}

/// What is missing is said, as a kubelet says it.
fn missing() -> Vec<Step> {
    vec![
        kubectl(
            r#"run lacking --image=x --overrides='{"spec":{"containers":[{"name":"a","image":"x","envFrom":[{"secretRef":{"name":"nope"}}]}]}}'"#,
        ),
        kubectl("wait --for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError pod/lacking --timeout=20s")
            .since(31),
        kubectl("describe pod lacking").prints("secret \"nope\" not found").since(31),
        kubectl("delete pod lacking --timeout=30s"),
    ]
}

fn measured() -> Vec<Step> {
    vec![
        kubectl("top pods").matches("^box +200m +64Mi"),
        kubectl("top nodes").matches("^node-1 +"),
        kubectl("delete pod box --timeout=30s"),
    ]
}
