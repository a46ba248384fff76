//! One of each common kind: made from one manifest, shown with its own columns, described, deleted together.

use super::super::step::{Group, World, kubectl, kubectl_with};

const ALL: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: many}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: many}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: many}
type: Opaque
stringData: {word: sesame}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: many}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: single, namespace: many}
spec:
  containers: [{name: main, image: 'busybox:1', command: [sleep, '60']}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: many}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: 'busybox:1'}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: many}
spec:
  schedule: '0 3 * * *'
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: 'busybox:1'}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: many}
rules: [{apiGroups: [''], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: many}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: robot, namespace: many}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: leader, namespace: many}
spec: {holderIdentity: robot-1, leaseDurationSeconds: 15}
";

const LATE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: late, namespace: many}
";

pub(crate) fn group() -> Group {
    Group {
        name: "kinds",
        world: World::Server,
        steps: vec![
            kubectl_with("create -f -", ALL)
                .prints("namespace/many created")
                .prints("serviceaccount/robot created")
                .prints("secret/password created")
                .prints("service/front created")
                .prints("pod/single created")
                .prints("job.batch/once created")
                .prints("cronjob.batch/nightly created")
                .prints("role.rbac.authorization.k8s.io/reader created")
                .prints("rolebinding.rbac.authorization.k8s.io/readers created")
                .prints("lease.coordination.k8s.io/leader created"),
            kubectl("get secret password -n many")
                .matches("^NAME +TYPE +DATA +AGE$")
                .matches("^password +Opaque +1 "),
            kubectl("get secret password -n many -o jsonpath={.data.word}").prints_exactly("c2VzYW1l"),
            kubectl("get service front -n many -o wide")
                .matches(r"^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE +SELECTOR$")
                .matches(r"^front +ClusterIP +10\.\d+\.\d+\.\d+ +<none> +80/TCP +\d+s +app=web$"),
            kubectl("get pod single -n many")
                .matches("^NAME +READY +STATUS +RESTARTS +AGE$")
                .matches("^single +0/1 +Pending +0 "),
            kubectl("get jobs,cronjobs -n many")
                .matches("^job.batch/once +")
                .matches(r"^cronjob.batch/nightly +0 3 \* \* \* +"),
            kubectl("get role,rolebinding,lease,serviceaccount -n many -o name")
                .matches("^role.rbac.authorization.k8s.io/reader$")
                .matches("^rolebinding.rbac.authorization.k8s.io/readers$")
                .matches("^lease.coordination.k8s.io/leader$")
                .matches("^serviceaccount/robot$"),
            kubectl("describe service front -n many")
                .matches("^Name: +front$")
                .matches("^Port: +http +80/TCP$"),
            kubectl("describe pod single -n many")
                .matches("^Status: +Pending$")
                .matches("^QoS Class: +BestEffort$"),
            kubectl("describe role reader -n many").matches(r"^  pods +\[\] +\[\] +\[get list\]$"),
            kubectl("get all -n many")
                .prints("pod/single")
                .prints("service/front")
                .prints("job.batch/once"),
            kubectl("delete pod,service,job,cronjob,lease --all -n many --wait=false")
                .prints("pod \"single\" ")
                .prints("cronjob.batch \"nightly\" deleted"),
            kubectl("get service,cronjob,lease -n many").complains("No resources found in many namespace."),
            kubectl("delete namespace many --wait=false").prints("namespace \"many\" deleted"),
            kubectl("get namespace many").matches("^many +Terminating "),
            kubectl_with(
                "create -f -",
                LATE,
            )
            .fails("configmaps \"late\" is forbidden: unable to create new content in namespace many because it is being terminated"),
        ],
    }
}
