//! A kind with subresources, defaults and lists that are merged by key.

use super::super::step::{Group, Step, World, kubectl, kubectl_with};

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: nginx
        image: nginx:1.25
        ports: [{containerPort: 80}]
";

const TWO_CONTAINERS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: log
        image: fluent:1
      - name: nginx
        image: nginx:1.26
        ports: [{containerPort: 80}]
";

const OTHER_SELECTOR: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: nginx, image: 'nginx:1.25'}]}
";

const WRONG_TYPE: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: wrong}
spec:
  replicas: many
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: nginx, image: 'nginx:1.25'}]}
";

pub(crate) fn group() -> Group {
    Group {
        name: "deployments",
        world: World::Server,
        steps: [apply(), show(), change(), refuse(), scale(), remove()].concat(),
    }
}

fn apply() -> Vec<Step> {
    vec![
        kubectl_with("apply -f -", WEB).prints_exactly("deployment.apps/web created"),
        kubectl_with("apply -f -", WEB).prints_exactly("deployment.apps/web unchanged"),
        kubectl("get deployment web -o jsonpath='{.spec.strategy.type} {.spec.revisionHistoryLimit} {.metadata.generation}'")
            .prints_exactly("RollingUpdate 10 1"),
        kubectl("get deployment web -o jsonpath={.spec.template.spec.containers[0].imagePullPolicy}")
            .prints_exactly("IfNotPresent"),
    ]
}

fn show() -> Vec<Step> {
    vec![
        kubectl("get deployments")
            .matches("^NAME +READY +UP-TO-DATE +AVAILABLE +AGE$")
            .matches(r"^web +0/2 +0 +0 +\d+s$"),
        kubectl("get deploy -o wide")
            .matches("CONTAINERS +IMAGES +SELECTOR$")
            .matches("nginx +nginx:1.25 +app=web$"),
        kubectl("describe deployment web")
            .matches("^Name: +web$")
            .matches("^Selector: +app=web$")
            .matches(r"^Replicas: +2 desired \|")
            .matches("^StrategyType: +RollingUpdate$")
            .matches("^    Image: +nginx:1.25$")
            .matches("^    Port: +80/TCP$"),
    ]
}

fn change() -> Vec<Step> {
    vec![
        kubectl("set image deployment/web nginx=nginx:1.27")
            .prints_exactly("deployment.apps/web image updated"),
        // Containers are merged by name: the image changes, the port stays.
        kubectl("patch deploy web -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"nginx\",\"image\":\"nginx:1.28\"}]}}}}'")
            .prints_exactly("deployment.apps/web patched"),
        kubectl("get deploy web -o jsonpath='{.spec.template.spec.containers[*].image} {.spec.template.spec.containers[0].ports[0].containerPort} {.metadata.generation}'")
            .prints_exactly("nginx:1.28 80 3"),
        kubectl_with("apply -f -", TWO_CONTAINERS).prints_exactly("deployment.apps/web configured"),
        kubectl("get deploy web -o jsonpath={.spec.template.spec.containers[*].name}")
            .prints_exactly("log nginx"),
        kubectl("patch deploy web --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/template/spec/containers/0\"}]'")
            .prints_exactly("deployment.apps/web patched"),
        // A merge patch replaces lists whole.
        kubectl("patch deploy web --type=merge -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"caddy\",\"image\":\"caddy:2\"}]}}}}'")
            .prints_exactly("deployment.apps/web patched"),
        kubectl("get deploy web -o jsonpath={.spec.template.spec.containers[*].name}")
            .prints_exactly("caddy"),
    ]
}

fn refuse() -> Vec<Step> {
    vec![
        kubectl_with("create -f - --validate=false", WRONG_TYPE)
            .code(1)
            .complains("Deployment in version \"v1\" cannot be handled as a Deployment"),
        kubectl_with("replace -f -", OTHER_SELECTOR).code(1).complains("spec.selector: Invalid value:").complains("field is immutable"),
        kubectl("patch deploy web -p '{\"spec\":{\"replicas\":-1}}'")
            .fails("The Deployment \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        kubectl("patch deploy web -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":null}}}}'")
            .fails("spec.template.spec.containers: Required value"),
    ]
}

fn scale() -> Vec<Step> {
    vec![
        kubectl("scale deployment web --replicas=5").prints_exactly("deployment.apps/web scaled"),
        kubectl("scale deployment web --current-replicas=4 --replicas=6")
            .fails("Expected replicas to be 4, was 5"),
        kubectl("get deploy web -o jsonpath={.spec.replicas}").prints_exactly("5"),
        kubectl("get --raw /apis/apps/v1/namespaces/default/deployments/web/scale")
            .prints("\"kind\":\"Scale\"")
            .prints("\"replicas\":5")
            .prints("\"selector\":\"app=web\""),
        kubectl("patch deploy web --subresource=status --type=merge -p '{\"status\":{\"replicas\":5,\"readyReplicas\":4,\"availableReplicas\":4,\"updatedReplicas\":5}}'")
            .since(24)
            .prints_exactly("deployment.apps/web patched"),
        kubectl("get deploy web").since(24).matches(r"^web +4/5 +5 +4 "),
    ]
}

fn remove() -> Vec<Step> {
    vec![
        kubectl_with("delete -f -", WEB).prints("deployment.apps \"web\" deleted"),
        kubectl_with("delete -f -", WEB)
            .fails("Error from server (NotFound): error when deleting \"STDIN\": deployments.apps \"web\" not found"),
        kubectl_with("delete -f - --ignore-not-found", WEB).prints_exactly(""),
    ]
}
