//! The commands that reach into pods and nodes: exec, attach, cp, port-forward, logs, debug, top and their neighbours.

use super::super::step::{Group, Step, World, kubectl, kubectl_with, meanwhile};

/// The oldest kubectl that has all of these commands in the form that is used here.
const OLDEST: u32 = 27;

pub(crate) fn group() -> Group {
    let steps = [
        streams(),
        ports(),
        logs(),
        debugging(),
        usage(),
        nodes(),
        rollouts(),
        other_rollouts(),
        exposing(),
        certificates(),
        access(),
    ];
    let steps = steps.concat().into_iter();
    Group {
        name: "commands",
        world: World::Cluster,
        steps: steps.map(|step| step.since(OLDEST)).collect(),
    }
}

/// A pod whose container is a shell that reads what is typed.
const SHELL: &str = "apiVersion: v1
kind: Pod
metadata: {name: shell}
spec: {restartPolicy: Never, containers: [{name: main, image: busybox, stdin: true, command: [sh]}]}
";

fn streams() -> Vec<Step> {
    vec![
        kubectl("run web --image=nginx --port=80").prints_exactly("pod/web created"),
        kubectl("wait --for=condition=ready pod/web --timeout=20s"),
        kubectl("exec web -- echo hello").prints_exactly("hello"),
        kubectl("exec web -- sh -c 'exit 3'")
            .code(3)
            .complains("command terminated with exit code 3"),
        kubectl_with("exec -i web -- cat", "typed").prints_exactly("typed"),
        kubectl("cp Cargo.toml web:/tmp/Cargo.toml"),
        kubectl("exec web -- cat /tmp/Cargo.toml").prints("[workspace]"),
        kubectl("cp web:/tmp/Cargo.toml /dev/stdout").prints("[workspace]"),
        kubectl("exec -it web -- echo terminal")
            .prints_exactly("terminal")
            .complains("Unable to use a TTY"),
        kubectl("exec nobody -- true").fails("pods \"nobody\" not found"),
        kubectl(
            "run ticker --image=busybox --restart=Never -- sh -c 'sleep 12; echo tick; sleep 2; echo tock; sleep 600'",
        ),
        kubectl("wait --for=condition=ready pod/ticker --timeout=20s"),
        meanwhile("attach ticker", "tock", "get pod ticker")
            .prints_once("tick")
            .prints_once("tock"),
        kubectl_with("apply -f -", SHELL),
        kubectl("wait --for=condition=ready pod/shell --timeout=20s"),
        kubectl_with("attach -i shell", "echo from the shell\n").prints_once("from the shell"),
        // It ends when nothing is typed any more.
        kubectl("wait --for=jsonpath={.status.phase}=Succeeded pod/shell --timeout=20s"),
        kubectl("run once --image=busybox --restart=Never -i --rm -- sh -c 'sleep 1; echo said'")
            .prints_once("said")
            .prints("pod \"once\" deleted"),
        kubectl("run typed --image=busybox --restart=Never -it --rm -- sh -c 'sleep 1; echo said; exit 3'")
            .code(3)
            .prints_once("said")
            .complains("pod default/typed terminated (Error)"),
        kubectl("get pods -o name").lacks("pod/once").lacks("pod/typed"),
    ]
}

fn ports() -> Vec<Step> {
    vec![
        meanwhile(
            "port-forward pod/web 28471:80",
            "Forwarding from 127.0.0.1:28471 -> 80",
            "--server=http://127.0.0.1:28471 get --raw /",
        )
        .prints("Handling connection for 28471"),
        meanwhile(
            "proxy --port=28472",
            "Starting to serve on 127.0.0.1:28472",
            "--server=http://127.0.0.1:28472 get --raw /version",
        )
        .prints("Starting to serve"),
        kubectl("get --raw /api/v1/namespaces/default/pods/web:80/proxy/").prints("web"),
        kubectl("expose pod web --name=site --port=8080 --target-port=80")
            .prints_exactly("service/site exposed"),
        meanwhile(
            "port-forward service/site 28473:8080",
            "Forwarding from 127.0.0.1:28473 -> 80",
            "--server=http://127.0.0.1:28473 get --raw /",
        )
        .prints("Handling connection for 28473"),
    ]
}

const TWO: &str = "apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  containers:
  - {name: left, image: busybox, command: [sh, -c, 'echo from the left; sleep 600']}
  - {name: right, image: busybox, command: [sh, -c, 'echo from the right; sleep 600']}
";

fn logs() -> Vec<Step> {
    vec![
        kubectl("run crash --image=busybox -- sh -c 'echo first; exit 1'"),
        kubectl(
            "wait --for=jsonpath={.status.containerStatuses[0].restartCount}=1 pod/crash --timeout=20s",
        ),
        kubectl("logs -p crash").prints("first"),
        kubectl(
            "run said --image=busybox --restart=Never -- sh -c 'echo now; sleep 2; echo later'",
        ),
        kubectl(
            "wait --for=jsonpath={.status.containerStatuses[0].name}=said pod/said --timeout=20s",
        ),
        kubectl("logs -f --all-containers --pod-running-timeout=20s said")
            .prints_once("now")
            .prints_once("later"),
        kubectl_with("apply -f -", TWO),
        kubectl("wait --for=condition=ready pod/two --timeout=20s"),
        kubectl("logs two --all-containers --prefix")
            .prints_once("[pod/two/left] from the left")
            .prints_once("[pod/two/right] from the right"),
        kubectl("logs two -c right").prints_exactly("from the right"),
        kubectl("logs -p two -c left")
            .fails("previous terminated container \"left\" in pod \"two\" not found"),
    ]
}

fn debugging() -> Vec<Step> {
    vec![
        kubectl("debug web --image=busybox --container=helper -- sleep 60"),
        kubectl(
            "wait --for=jsonpath={.status.ephemeralContainerStatuses[0].name}=helper pod/web --timeout=20s",
        ),
        kubectl("describe pod web").prints("helper:"),
        kubectl("exec web -c helper -- echo inside").prints_exactly("inside"),
        kubectl("debug web --image=busybox --copy-to=copy -- sleep 600"),
        kubectl("wait --for=condition=ready pod/copy --timeout=20s"),
        kubectl("get pod copy -o jsonpath={.spec.containers[*].image}")
            .prints_exactly("nginx busybox"),
        kubectl("debug node/node-2 -i --image=busybox -- sh -c 'sleep 1; echo on the node'")
            .prints("Creating debugging pod node-debugger-node-2-")
            .prints_once("on the node"),
        // Its network is that of the node.
        kubectl("get pods --field-selector=spec.nodeName=node-2,spec.hostNetwork=true -o wide")
            .matches(r"^node-debugger-node-2-\w+ +0/1 +Completed .* node-2 "),
        kubectl("events --for=pod/web")
            .matches("Normal +Scheduled +Pod/web +Successfully assigned default/web to node-")
            .matches("Normal +Started +Pod/web +Container started"),
    ]
}

fn usage() -> Vec<Step> {
    vec![
        kubectl(
            "run busy --image=nginx --annotations=sim.kubewright.dev/cpu=200m --annotations=sim.kubewright.dev/memory=64Mi",
        ),
        kubectl("wait --for=condition=ready pod/busy --timeout=20s"),
        kubectl("top pod busy").matches("^busy +200m +64Mi"),
        kubectl("top pods --containers").matches("^busy +busy +200m +64Mi"),
        kubectl("top nodes")
            .matches(r"^NAME +CPU\(cores\) +CPU\(?%\)? +MEMORY\(bytes\) +MEMORY\(?%\)?")
            .matches(r"^node-1 +\d+m +\d+% +\d+Mi +\d+%"),
    ]
}

/// A pod of nobody's on a node that takes no new ones from the scheduler.
const BOUND: &str = "apiVersion: v1
kind: Pod
metadata: {name: bound}
spec: {nodeName: node-3, terminationGracePeriodSeconds: 1, containers: [{name: main, image: nginx}]}
";

fn nodes() -> Vec<Step> {
    vec![
        kubectl("taint nodes node-2 team=a:NoSchedule").prints("node/node-2 tainted"),
        kubectl("get node node-2 -o jsonpath={.spec.taints[0].key}").prints_exactly("team"),
        kubectl("taint nodes node-2 team-").prints("node/node-2 untainted"),
        kubectl("cordon node-3").prints_exactly("node/node-3 cordoned"),
        kubectl("get node node-3").matches("^node-3 +Ready,SchedulingDisabled"),
        kubectl_with("apply -f -", BOUND),
        kubectl("wait --for=condition=ready pod/bound --timeout=20s"),
        kubectl("drain node-3 --ignore-daemonsets --delete-emptydir-data --timeout=60s")
            .fails("cannot delete")
            .complains("default/bound"),
        kubectl("drain node-3 --ignore-daemonsets --force --delete-emptydir-data --timeout=60s")
            .prints("evicting pod default/bound")
            .prints("pod/bound evicted")
            .prints("node/node-3 drained"),
        kubectl("get pod bound").fails("pods \"bound\" not found"),
        kubectl("uncordon node-3").prints_exactly("node/node-3 uncordoned"),
    ]
}

fn rollouts() -> Vec<Step> {
    vec![
        kubectl("create deployment shop --image=nginx:1 --replicas=2"),
        kubectl("rollout status deployment/shop --timeout=20s").prints("successfully rolled out"),
        kubectl("rollout pause deployment/shop").prints("deployment.apps/shop paused"),
        kubectl("set image deployment/shop nginx=nginx:2"),
        kubectl("get deployment shop -o jsonpath={.status.updatedReplicas}").lacks("2"),
        kubectl("rollout resume deployment/shop").prints("deployment.apps/shop resumed"),
        kubectl("rollout status deployment/shop --timeout=20s").prints("successfully rolled out"),
        kubectl("rollout restart deployment/shop").prints("deployment.apps/shop restarted"),
        kubectl("rollout status deployment/shop --timeout=20s").prints("successfully rolled out"),
        kubectl("rollout history deployment/shop").matches("^3 +"),
        kubectl("rollout history deployment/shop --revision=2").prints("nginx:2"),
        kubectl("rollout undo deployment/shop --to-revision=1")
            .prints("deployment.apps/shop rolled back"),
        kubectl("rollout status deployment/shop --timeout=20s").prints("successfully rolled out"),
        kubectl("get deployment shop -o jsonpath={.spec.template.spec.containers[0].image}")
            .prints_exactly("nginx:1"),
    ]
}

const SET: &str = "apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: 'db:1'}]}}
";

const DAEMONS: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: 'agent:1'}]}}
";

/// The same verbs on the other kinds that have them.
fn other_rollouts() -> Vec<Step> {
    vec![
        kubectl_with("apply -f -", SET),
        kubectl("rollout status statefulset/db --timeout=20s")
            .prints("partitioned roll out complete: 2 new pods have been updated"),
        kubectl("set image statefulset/db main=db:2"),
        kubectl("rollout status statefulset/db --timeout=20s"),
        kubectl("rollout undo statefulset/db").prints_exactly("statefulset.apps/db rolled back"),
        kubectl("rollout status statefulset/db --timeout=20s"),
        kubectl("get pods -l app=db -o jsonpath={.items[*].spec.containers[0].image}")
            .prints_exactly("db:1 db:1"),
        kubectl_with("apply -f -", DAEMONS),
        kubectl("rollout status daemonset/agent --timeout=20s")
            .prints("daemon set \"agent\" successfully rolled out"),
        kubectl("rollout restart daemonset/agent").prints_exactly("daemonset.apps/agent restarted"),
        kubectl("rollout status daemonset/agent --timeout=25s")
            .prints("daemon set \"agent\" successfully rolled out"),
        kubectl("rollout history daemonset/agent")
            .matches("^1 +")
            .matches("^2 +"),
    ]
}

fn exposing() -> Vec<Step> {
    vec![
        kubectl("autoscale deployment shop --min=2 --max=4")
            .prints("horizontalpodautoscaler.autoscaling/shop autoscaled"),
        kubectl("get hpa shop -o jsonpath={.spec.maxReplicas}").prints_exactly("4"),
        kubectl("expose deployment shop --port=80 --type=LoadBalancer")
            .prints_exactly("service/shop exposed"),
        kubectl(
            "wait --for=jsonpath={.status.loadBalancer.ingress[0].ip}=203.0.113.1 service/shop --timeout=20s",
        ),
        kubectl("describe service shop").prints("Ensured load balancer"),
        kubectl("get service shop")
            .matches(r"^shop +LoadBalancer +\S+ +203\.0\.113\.1 +80:\d+/TCP"),
    ]
}

/// A request of `openssl req -new -subj /O=dev/CN=jane` with a P-256 key.
const REQUEST: &str = "apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: jane}
spec:
  signerName: kubernetes.io/kube-apiserver-client
  usages: [client auth]
  expirationSeconds: 3600
  request: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTU1Bb0dBMVVFQ2d3RFpHVjJNUTB3Q3dZRFZRUUREQVJxWVc1bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUUxNU1EUVBYcFlXOUJ0cmVTUVAzaWxKZ3hTYU9GREFJRm1kaTdPZkxKCklJRG1ZbTlocHZFekhUNHFqVm9kRUFuMlE4ZzVPd0dYU0plbGdic01BcVNlcXFBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJUUR2U3JNZlplSGxOaEFiNFpBOXoySEh1b2l1RXhRRWk4VFBEcHVWSDV0alN3SWdkWnJVa2VhaApMa2lCZmdMK1dNMGlhRi8yakoxQVRwOGFBRHpPb3ptY2xsND0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==
";

fn certificates() -> Vec<Step> {
    vec![
        kubectl_with("apply -f -", REQUEST),
        kubectl("get csr jane").matches("^jane +.*Pending"),
        kubectl("certificate approve jane")
            .prints("certificatesigningrequest.certificates.k8s.io/jane approved"),
        kubectl("wait --for=jsonpath={.status.conditions[0].type}=Approved csr/jane --timeout=20s"),
        kubectl("get csr jane").matches("^jane +.*Approved,Issued"),
        // The beginning of a certificate, PEM in base64.
        kubectl("get csr jane -o jsonpath={.status.certificate}")
            .matches("^LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS"),
        kubectl("delete csr jane"),
        kubectl_with("apply -f -", REQUEST),
        kubectl("certificate deny jane")
            .prints("certificatesigningrequest.certificates.k8s.io/jane denied"),
        kubectl("get csr jane").matches("^jane +.*Denied"),
        kubectl("get csr jane -o jsonpath={.status.certificate}").prints_exactly(""),
    ]
}

fn access() -> Vec<Step> {
    vec![
        kubectl("auth can-i --list")
            .matches(r"^Resources +Non-Resource URLs +Resource Names +Verbs$")
            .matches(r"^\*\.\* +\[\] +\[\] +\[\*\]$"),
        kubectl("auth can-i --list --as=system:kube-scheduler")
            .matches(r"^pods/binding +\[\] +\[\] +\[create\]$")
            .lacks("*.*"),
        kubectl("events")
            .matches("^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE$")
            .prints("Scheduled"),
        kubectl("events --types=Warning")
            .prints("BackOff")
            .lacks("Scheduled"),
    ]
}
