//! Who is asking, and what they may: identities, tokens, roles; and autoscaling, which needs two versions of a kind.

use super::super::step::{Group, Step, World, kubectl, kubectl_with};

const SHARED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {colour: blue}
";

const SHARED_GREEN: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {colour: green}
";

pub(crate) fn group() -> Group {
    Group {
        name: "access",
        world: World::Server,
        steps: [identity(), roles(), tokens(), autoscaling(), server_side()].concat(),
    }
}

fn identity() -> Vec<Step> {
    vec![
        kubectl("auth whoami -o jsonpath={.status.userInfo.username}")
            .since(28)
            .prints_exactly("kubernetes-admin"),
        kubectl("auth whoami")
            .since(28)
            .matches("^ATTRIBUTE +VALUE$")
            .matches(r"^Groups +\[system:masters system:authenticated\]$"),
        kubectl("auth whoami --as=bob --as-group=team -o jsonpath={.status.userInfo.groups[0]}")
            .since(28)
            .prints_exactly("team"),
    ]
}

fn roles() -> Vec<Step> {
    vec![
        kubectl("auth can-i '*' '*' --all-namespaces").prints_exactly("yes"),
        kubectl("auth can-i get pods --as=bob").code(1).prints("no"),
        kubectl("create role reader --verb=get --resource=pods")
            .prints_exactly("role.rbac.authorization.k8s.io/reader created"),
        kubectl("create rolebinding reader --role=reader --user=bob")
            .prints_exactly("rolebinding.rbac.authorization.k8s.io/reader created"),
        kubectl("auth can-i get pods --as=bob").prints_exactly("yes"),
        kubectl("auth can-i list pods --as=bob").code(1).prints("no"),
        kubectl("auth can-i --list --as=bob")
            .matches(r"^Resources +Non-Resource URLs +Resource Names +Verbs$")
            .matches(r"^pods +\[\] +\[\] +\[get\]$"),
        kubectl("get pods --as=bob").fails(
            "Error from server (Forbidden): pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \
             \"\" in the namespace \"default\"",
        ),
        kubectl("get pod nothing --as=bob").fails("pods \"nothing\" not found"),
    ]
}

fn tokens() -> Vec<Step> {
    vec![
        kubectl("create serviceaccount robot").prints_exactly("serviceaccount/robot created"),
        kubectl("create token robot")
            .since(24)
            .matches(r"^[\w-]+\.[\w-]+\.[\w-]+$"),
        kubectl(
            "create token robot --audience=vault --duration=20m -o jsonpath={.spec.audiences[0]}",
        )
        .since(24)
        .prints_exactly("vault"),
        kubectl("create token robot --duration=5m")
            .since(24)
            .fails("may not specify a duration less than 10 minutes"),
        kubectl("create token nobody")
            .since(24)
            .fails("serviceaccounts \"nobody\" not found"),
    ]
}

fn autoscaling() -> Vec<Step> {
    vec![
        kubectl("create deployment scaled --image=nginx:1.25 --replicas=2")
            .prints_exactly("deployment.apps/scaled created"),
        kubectl("autoscale deployment scaled --min=2 --max=5 --cpu-percent=60")
            .prints("horizontalpodautoscaler.autoscaling/scaled autoscaled"),
        kubectl("get hpa scaled -o jsonpath='{.spec.minReplicas} {.spec.maxReplicas} {.spec.scaleTargetRef.name}'")
            .prints_exactly("2 5 scaled"),
        kubectl("get horizontalpodautoscalers.v1.autoscaling scaled -o jsonpath={.spec.targetCPUUtilizationPercentage}")
            .prints_exactly("60"),
        kubectl("get horizontalpodautoscalers.v2.autoscaling scaled -o jsonpath={.spec.metrics[0].resource.target.averageUtilization}")
            .prints_exactly("60"),
        kubectl("delete hpa,deployment scaled").prints("\"scaled\" deleted"),
    ]
}

fn server_side() -> Vec<Step> {
    vec![
        kubectl_with("apply --server-side --field-manager=one -f -", SHARED)
            .prints_exactly("configmap/shared serverside-applied"),
        kubectl_with("diff --server-side --field-manager=one -f -", SHARED).prints_exactly(""),
        kubectl_with("diff --server-side --force-conflicts --field-manager=two -f -", SHARED_GREEN)
            .code(1)
            .prints("-  colour: blue")
            .prints("+  colour: green"),
        kubectl_with("apply --server-side --field-manager=two -f -", SHARED_GREEN)
            .fails("Apply failed with 1 conflict: conflict with \"one\": .data.colour"),
        kubectl_with("apply --server-side --field-manager=two --force-conflicts -f -", SHARED_GREEN)
            .prints_exactly("configmap/shared serverside-applied"),
        kubectl("get cm shared -o jsonpath='{.data.colour} {.metadata.managedFields[*].manager}' --show-managed-fields")
            .since(21)
            .prints_exactly("green two"),
        kubectl("delete cm shared").prints("configmap \"shared\" deleted"),
    ]
}
