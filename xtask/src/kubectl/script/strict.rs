//! What a cluster must not do: run pods whose Secrets are missing, give a volume to two claims, forget whole kinds.

use super::super::step::{Group, Step, World, kubectl, kubectl_with, meanwhile};

pub(crate) fn group() -> Group {
    let steps = [sources(), volumes(), controllers(), jobs()]
        .concat()
        .into_iter();
    Group {
        name: "strict",
        world: World::Cluster,
        // The oldest that waits for any field.
        steps: steps.map(|step| step.since(23)).collect(),
    }
}

const WITHOUT_SECRET: &str = "apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - {name: a, image: x, envFrom: [{secretRef: {name: nope}}]}
";

const EPHEMERAL: &str = "apiVersion: v1
kind: Pod
metadata: {name: e}
spec:
  containers: [{name: c, image: x}]
  volumes:
  - name: v
    ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
";

fn sources() -> Vec<Step> {
    vec![
        kubectl_with("apply -f -", WITHOUT_SECRET),
        kubectl(
            "wait --for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError pod/a --timeout=20s",
        ),
        kubectl("get pod a").matches("^a +0/1 +CreateContainerConfigError"),
        kubectl("describe pod a").prints("secret \"nope\" not found"),
        kubectl("create secret generic nope --from-literal=k=v"),
        kubectl("wait --for=condition=ready pod/a --timeout=30s"),
        kubectl_with("apply -f -", EPHEMERAL),
        kubectl("wait --for=condition=ready pod/e --timeout=30s"),
        kubectl("get pvc e-v").matches("^e-v +Bound"),
    ]
}

const VOLUME: &str = "apiVersion: v1
kind: PersistentVolume
metadata: {name: v}
spec:
  storageClassName: ''
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /v}
";

const FIRST: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: first}
spec: {storageClassName: '', volumeName: v, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

const SECOND: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: second}
spec: {storageClassName: '', volumeName: v, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

const SELECTING: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: choosy}
spec:
  storageClassName: ''
  selector: {matchLabels: {tier: gold}}
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
";

/// It comes after `choosy`, and takes the volume that `choosy` may not have.
const MODEST: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: modest}
spec: {storageClassName: '', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

fn volumes() -> Vec<Step> {
    vec![
        kubectl_with("apply -f -", VOLUME),
        kubectl_with("apply -f -", FIRST),
        kubectl("wait --for=jsonpath={.status.phase}=Bound pvc/first --timeout=20s"),
        kubectl_with("apply -f -", SECOND),
        kubectl("wait --for=jsonpath={.status.phase}=Pending pvc/second --timeout=20s"),
        kubectl("get pv v -o jsonpath={.spec.claimRef.name}").prints_exactly("first"),
        kubectl("get pvc first").matches("^first +Bound +v +1Gi"),
        kubectl("describe pvc second")
            .prints("FailedBinding")
            .prints("volume \"v\" already bound to a different claim."),
        kubectl("delete pvc second"),
        kubectl("delete pvc first --timeout=20s"),
        kubectl("wait --for=jsonpath={.status.phase}=Released pv/v --timeout=20s"),
        kubectl("patch pv v --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/claimRef\"}]'"),
        kubectl("wait --for=jsonpath={.status.phase}=Available pv/v --timeout=20s"),
        kubectl_with("apply -f -", SELECTING),
        // Claims are pending from their creation on. That the binder has looked at this one is what its event says.
        meanwhile(
            "get events --watch --field-selector involvedObject.name=choosy",
            "FailedBinding",
            "get pvc choosy",
        )
        .prints("no persistent volumes available for this claim and no storage class is set"),
        kubectl("get pv v -o jsonpath={.status.phase}").prints_exactly("Available"),
        kubectl_with("apply -f -", MODEST),
        kubectl("wait --for=jsonpath={.status.phase}=Bound pvc/modest --timeout=20s"),
        kubectl("get pv v -o jsonpath={.spec.claimRef.name}").prints_exactly("modest"),
        kubectl("get pvc choosy -o jsonpath='{.status.phase} {.spec.volumeName}'")
            .prints_exactly("Pending"),
    ]
}

const CONTROLLER: &str = "apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 1
  selector: {app: old}
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: c, image: x}]}
";

fn controllers() -> Vec<Step> {
    vec![
        kubectl_with("apply -f -", CONTROLLER),
        kubectl("wait --for=jsonpath={.status.readyReplicas}=1 rc/old --timeout=20s"),
        kubectl("get rc old").matches("^old +1 +1 +1 +"),
    ]
}

const FAILING: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: again}
spec:
  backoffLimit: 10
  template:
    metadata: {annotations: {sim.kubewright.dev/crash-loop: 'true'}}
    spec: {restartPolicy: Never, containers: [{name: c, image: x}]}
";

/// A Job waits for ten seconds after its first failure and for twenty after its second. That the waits end at ten
/// minutes is a test in virtual time.
fn jobs() -> Vec<Step> {
    vec![
        kubectl_with("apply -f -", FAILING),
        kubectl("wait --for=jsonpath={.status.failed}=1 job/again --timeout=20s"),
        kubectl("wait --for=jsonpath={.status.failed}=2 job/again --timeout=5s").fails("timed out"),
        kubectl("wait --for=jsonpath={.status.failed}=2 job/again --timeout=15s"),
        kubectl("wait --for=jsonpath={.status.failed}=3 job/again --timeout=12s")
            .fails("timed out"),
        kubectl("wait --for=jsonpath={.status.failed}=3 job/again --timeout=20s"),
        kubectl("get pods -l job-name=again --no-headers")
            .matches("again-.*\n.*again-.*\n.*again-"),
        kubectl("delete job again --timeout=20s"),
    ]
}
