//! A cluster that is alive: what controllers and nodes make of what kubectl asks for.

use super::super::step::{Group, Step, World, kubectl};

pub(crate) fn group() -> Group {
    Group {
        name: "alive",
        world: World::Cluster,
        steps: [
            rollouts(),
            services(),
            jobs(),
            nodes(),
            namespaces(),
            endings(),
        ]
        .concat(),
    }
}

fn rollouts() -> Vec<Step> {
    vec![
        kubectl("get nodes").matches("^node-1 +Ready +"),
        kubectl("create deployment web --image=nginx:1 --replicas=3")
            .prints_exactly("deployment.apps/web created"),
        kubectl("rollout status deployment/web --timeout=20s").prints("successfully rolled out"),
        kubectl("set image deployment/web nginx=nginx:2"),
        kubectl("rollout status deployment/web --timeout=20s").prints("successfully rolled out"),
        kubectl("rollout history deployment/web")
            .matches("^1 +")
            .matches("^2 +"),
        kubectl("get pods -l app=web -o jsonpath={.items[*].spec.containers[0].image}")
            .prints_exactly("nginx:2 nginx:2 nginx:2"),
        kubectl("rollout undo deployment/web"),
        kubectl("rollout status deployment/web --timeout=20s").prints("successfully rolled out"),
        kubectl("rollout history deployment/web")
            .matches("^2 +")
            .matches("^3 +"),
        kubectl("scale deployment/web --replicas=5"),
        kubectl("rollout status deployment/web --timeout=20s").prints("successfully rolled out"),
        kubectl("wait --for=condition=available deployment/web --timeout=20s"),
        kubectl("get deployment web").matches("^web +5/5 +5 +5 +"),
        kubectl("describe deployment web").prints("Scaled up replica set"),
        kubectl("logs deployment/web").prints("container nginx started"),
    ]
}

fn services() -> Vec<Step> {
    vec![
        kubectl("expose deployment web --port=80"),
        kubectl("wait --for=jsonpath={.endpoints[4].conditions.ready}=true endpointslice -l kubernetes.io/service-name=web --timeout=20s")
            .since(31),
        kubectl("autoscale deployment web --min=2 --max=6"),
    ]
}

fn jobs() -> Vec<Step> {
    vec![
        kubectl("create job one --image=busybox -- true"),
        kubectl("wait --for=condition=complete job/one --timeout=20s"),
        kubectl("get job one -o jsonpath={.status.succeeded}").prints_exactly("1"),
        // Older ones ask for batch/v1beta1, which no server has had for years.
        kubectl("create cronjob often --image=busybox --schedule='*/5 * * * *' -- true").since(21),
        kubectl("create job by-hand --from=cronjob/often").since(21),
        kubectl("wait --for=condition=complete job/by-hand --timeout=20s").since(21),
    ]
}

fn nodes() -> Vec<Step> {
    vec![
        kubectl("cordon node-1").prints("node/node-1 cordoned"),
        // The last line ends with `drained`, or `evicted` in old ones.
        kubectl("drain node-1 --ignore-daemonsets --force --timeout=30s").prints("evicted"),
        kubectl("wait --for=condition=available deployment/web --timeout=20s"),
        kubectl("get pods -l app=web -o jsonpath={.items[*].spec.nodeName}").lacks("node-1"),
        kubectl("uncordon node-1").prints("node/node-1 uncordoned"),
    ]
}

fn namespaces() -> Vec<Step> {
    vec![
        kubectl("create namespace team"),
        kubectl("-n team create deployment inside --image=nginx"),
        kubectl("-n team rollout status deployment/inside --timeout=20s"),
        kubectl("delete namespace team --timeout=30s").prints("namespace \"team\" deleted"),
        kubectl("get namespace team").fails("namespaces \"team\" not found"),
    ]
}

fn endings() -> Vec<Step> {
    vec![
        kubectl("delete deployment web --cascade=foreground --timeout=30s"),
        kubectl("get replicasets -l app=web -o name").prints_exactly(""),
        kubectl("get pods -l app=web -o name").prints_exactly(""),
    ]
}
