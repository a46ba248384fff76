//! What kubectl learns about the server: versions, kinds, documentation.

use super::super::step::{Group, Step, World, kubectl};

pub(crate) fn group() -> Group {
    Group {
        name: "discovery",
        world: World::Server,
        steps: [about(), resources(), explain()].concat(),
    }
}

fn about() -> Vec<Step> {
    vec![
        kubectl("version -o json").matches(r#""gitVersion": "v1\.\d+\.\d+\+kubewright"#),
        kubectl("get --raw /readyz").prints_exactly("ok"),
        kubectl("get --raw /livez?verbose").prints("livez check passed"),
        kubectl("cluster-info").prints("https://127.0.0.1:"),
        kubectl("api-versions")
            .matches("^v1$")
            .matches("^apps/v1$")
            .matches("^apiextensions.k8s.io/v1$"),
        kubectl("get namespaces")
            .matches("^NAME +STATUS +AGE$")
            .matches("^default +Active +")
            .matches("^kube-system +Active +"),
        kubectl("get nosuchthing").fails("the server doesn't have a resource type \"nosuchthing\""),
    ]
}

fn resources() -> Vec<Step> {
    vec![
        kubectl("api-resources")
            .matches(r"^configmaps +cm +v1 +true +ConfigMap$")
            .matches(r"^deployments +deploy +apps/v1 +true +Deployment$")
            .matches(r"^customresourcedefinitions +crd,crds +apiextensions.k8s.io/v1 +false +"),
        kubectl("api-resources --namespaced=false -o name")
            .matches("^nodes$")
            .matches("^clusterroles.rbac.authorization.k8s.io$")
            .lacks("configmaps"),
        kubectl("api-resources --api-group=batch --verbs=list,watch -o name")
            .prints_exactly("cronjobs.batch\njobs.batch"),
    ]
}

fn explain() -> Vec<Step> {
    vec![
        kubectl("explain deployment.spec.replicas")
            .needs_openapi()
            .matches("^KIND: +Deployment$")
            .matches("^VERSION: +(apps/)?v1$")
            .prints("<integer>"),
        kubectl("explain pod.spec.containers --recursive")
            .needs_openapi()
            .matches(r"^ +livenessProbe\s+<")
            .matches(r"^ +imagePullPolicy\s+<string>"),
        kubectl("explain configmap.nonsense")
            .needs_openapi()
            .fails("field \"nonsense\" does not exist"),
    ]
}
