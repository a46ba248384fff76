//! What users and machines do, at random. Users have a transport without faults.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, ResourceExt};
use kubewright_cluster::Cluster;
use serde_json::{Value, json};

use crate::random::Random;
use crate::witness::Witness;

/// Names of each kind; a few, so that they are used again.
pub(crate) const NAMES: [&str; 2] = ["one", "two"];
const KINDS: [&str; 5] = [
    "deployments",
    "statefulsets",
    "daemonsets",
    "jobs",
    "replicationcontrollers",
];

pub(crate) struct Operator<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) witness: &'a Witness,
    pub(crate) random: Random,
    /// The node that is silent.
    silent: Option<String>,
    /// The node that is low on memory.
    pub(crate) pressed: Option<String>,
}

impl<'a> Operator<'a> {
    pub(crate) fn new(cluster: &'a Cluster, witness: &'a Witness, random: Random) -> Self {
        Self {
            cluster,
            witness,
            random,
            silent: None,
            pressed: None,
        }
    }

    /// Does something.
    pub(crate) async fn act(&mut self) {
        let kind = *self.random.pick(&KINDS[..]).expect("there are some");
        let name = *self.random.pick(&NAMES[..]).expect("there are some");
        // Deployments have the strictest rules: half of all is about them.
        let kind = if self.random.below(2) == 0 {
            "deployments"
        } else {
            kind
        };
        match self.random.below(24) {
            0..6 => self.create_or_change(kind, name).await,
            6 => self.undo(name).await,
            7 => self.delete(kind, name).await,
            8 => self.delete_pod().await,
            9 => self.toggle("services", name).await,
            10 => self.toggle("pods", name).await,
            11 => self.ask_for_a_certificate(name).await,
            12 => self.disturb_a_node().await,
            _ => self.act_on_policies(name).await,
        }
    }

    /// All nodes speak again and are low on nothing, nothing is paused, and no cron job begins anything.
    pub(crate) async fn calm(&mut self) {
        self.relieve_the_node().await;
        if let Some(node) = self.silent.take() {
            self.cluster
                .nodes()
                .start(&node)
                .await
                .expect("it is known");
        }
        for name in NAMES {
            self.patch("deployments", name, json!({"spec": {"paused": false}}))
                .await;
            self.patch("jobs", name, json!({"spec": {"suspend": false}}))
                .await;
            self.patch("cronjobs", name, json!({"spec": {"suspend": true}}))
                .await;
        }
    }

    async fn create_or_change(&mut self, kind: &str, name: &str) {
        if self.create(kind, name).await {
            return;
        }
        let (size, image) = (
            self.random.below(5),
            format!("app:{}", self.random.below(3)),
        );
        let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}});
        let patch = match (kind, self.random.below(3)) {
            ("jobs", _) => json!({"spec": {"suspend": size < 2}}),
            ("daemonsets", _) | (_, 0) => image,
            ("deployments", 1) => json!({"spec": {"paused": size == 0}}),
            _ => json!({"spec": {"replicas": size}}),
        };
        self.patch(kind, name, patch).await;
    }

    /// Creates an object. Says whether there was none.
    async fn create(&mut self, kind: &str, name: &str) -> bool {
        let labels = json!({"app": format!("{kind}-{name}")});
        let template = json!({"metadata": {"labels": labels}, "spec": {
            "containers": [{"name": "main", "image": "app:0"}]}});
        let selector = json!({"matchLabels": labels});
        let count = 1 + self.random.below(4);
        let spec = match kind {
            "deployments" => {
                let (surge, unavailable) = match self.random.below(3) {
                    0 => (json!(1), json!(0)),
                    1 => (json!(0), json!(1)),
                    _ => (json!("50%"), json!("25%")),
                };
                let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
                json!({"replicas": count, "selector": selector, "template": template, "strategy": strategy})
            }
            "statefulsets" => {
                let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
                let claims = json!([{"metadata": {"name": "data"}, "spec": claim}]);
                let when = if count.is_multiple_of(2) {
                    "Retain"
                } else {
                    "Delete"
                };
                let retention = json!({"whenDeleted": when, "whenScaled": when});
                json!({"replicas": count, "selector": selector, "template": template, "serviceName": name,
                    "volumeClaimTemplates": claims, "persistentVolumeClaimRetentionPolicy": retention})
            }
            "daemonsets" => json!({"selector": selector, "template": template}),
            "replicationcontrollers" => {
                json!({"replicas": count, "selector": labels, "template": template})
            }
            "services" => json!({"type": "LoadBalancer", "ports": [{"port": 80}]}),
            "pods" => {
                let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
                let mut spec = template["spec"].clone();
                spec["volumes"] = json!([{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]);
                spec
            }
            "certificatesigningrequests" => {
                let pem = include_bytes!("../../src/controllers/certificates/request.pem");
                json!({"request": k8s_openapi::ByteString(pem.to_vec()), "usages": ["client auth"],
                    "signerName": "kubernetes.io/kube-apiserver-client"})
            }
            _ => {
                let mut template = template;
                template["spec"]["restartPolicy"] = json!("Never");
                template["metadata"]["annotations"] =
                    json!({"sim.kubewright.dev/exit-after": "45s"});
                json!({"completions": count + 1, "parallelism": count, "template": template})
            }
        };
        self.post(kind, name, spec).await
    }

    /// Creates an object with a spec. Says whether there was none.
    pub(crate) async fn post(&self, kind: &str, name: &str, spec: Value) -> bool {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        let object = serde_json::from_value(object).expect("the test's object is one");
        match self.api(kind).create(&PostParams::default(), &object).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 409 => false,
            Err(error) => panic!("{kind} {name}: {error}"),
        }
    }

    /// The API of a kind by its plural.
    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let resource = match kind {
            "deployments" => ApiResource::erase::<Deployment>(&()),
            "statefulsets" => ApiResource::erase::<StatefulSet>(&()),
            "daemonsets" => ApiResource::erase::<DaemonSet>(&()),
            "replicationcontrollers" => ApiResource::erase::<ReplicationController>(&()),
            "services" => ApiResource::erase::<Service>(&()),
            "pods" => ApiResource::erase::<Pod>(&()),
            "horizontalpodautoscalers" => ApiResource::erase::<HorizontalPodAutoscaler>(&()),
            "cronjobs" => ApiResource::erase::<CronJob>(&()),
            "poddisruptionbudgets" => ApiResource::erase::<PodDisruptionBudget>(&()),
            "persistentvolumeclaims" => ApiResource::erase::<PersistentVolumeClaim>(&()),
            "certificatesigningrequests" => {
                let resource = ApiResource::erase::<CertificateSigningRequest>(&());
                return Api::all_with(self.cluster.client(), &resource);
            }
            _ => ApiResource::erase::<Job>(&()),
        };
        Api::default_namespaced_with(self.cluster.client(), &resource)
    }

    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: Value) {
        let (api, params) = (self.api(kind), PatchParams::default());
        // What is gone, and what may not be changed any more, is left alone.
        if let Err(error) = api.patch(name, &params, &Patch::Strategic(patch)).await {
            assert!(
                matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 422)),
                "{kind} {name}: {error}"
            );
        }
    }

    /// Creates it, or deletes it when it is there.
    async fn toggle(&mut self, kind: &str, name: &str) {
        if self.create(kind, name).await {
            return;
        }
        if kind == "pods" {
            self.witness.disturb();
        }
        // It may have gone since.
        let _ = self.api(kind).delete(name, &DeleteParams::default()).await;
    }

    /// Asks for a certificate; somebody approves, or denies it, or has not yet looked at it.
    async fn ask_for_a_certificate(&mut self, name: &str) {
        let kind = "certificatesigningrequests";
        if self.create(kind, name).await {
            return;
        }
        let answer = *self
            .random
            .pick(&["Approved", "Denied"])
            .expect("there are some");
        let requests = Api::<CertificateSigningRequest>::all(self.cluster.client());
        let request = requests.get_opt(name).await.expect("an answer");
        let answered = |request: &CertificateSigningRequest| {
            let status = request.status.as_ref();
            status.is_some_and(|status| {
                status
                    .conditions
                    .as_ref()
                    .is_some_and(|all| !all.is_empty())
            })
        };
        if request.as_ref().is_none_or(answered) {
            let _ = requests.delete(name, &DeleteParams::default()).await;
            return;
        }
        let condition = json!({"type": answer, "status": "True", "reason": "Storm", "message": "", "lastUpdateTime": null});
        let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        // It may have been cleaned up since.
        let _ = requests
            .patch_approval(name, &PatchParams::default(), &patch)
            .await;
    }

    /// Puts the template of an earlier set back, as `kubectl rollout undo` does.
    async fn undo(&mut self, name: &str) {
        let sets = Api::<ReplicaSet>::default_namespaced(self.cluster.client());
        let params = ListParams::default().labels(&format!("app=deployments-{name}"));
        let sets = sets.list(&params).await.expect("an answer").items;
        let image = self.random.pick(&sets).and_then(|set| {
            let template = set.spec.template.as_ref()?.spec.as_ref()?;
            template.containers.first()?.image.clone()
        });
        if let Some(image) = image {
            let containers = json!([{"name": "main", "image": image}]);
            self.patch(
                "deployments",
                name,
                json!({"spec": {"template": {"spec": {"containers": containers}}}}),
            )
            .await;
        }
    }

    async fn delete(&mut self, kind: &str, name: &str) {
        let params = match self.random.below(3) {
            0 => DeleteParams::background(),
            1 => DeleteParams::foreground(),
            _ => DeleteParams::orphan(),
        };
        if let Err(error) = self.api(kind).delete(name, &params).await {
            assert!(
                matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 409)),
                "{kind} {name}: {error}"
            );
        }
    }

    async fn delete_pod(&mut self) {
        let pods = Api::<Pod>::default_namespaced(self.cluster.client());
        let all = pods
            .list(&ListParams::default())
            .await
            .expect("an answer")
            .items;
        let Some(pod) = self.random.pick(&all) else {
            return;
        };
        self.witness
            .excuse(pod.metadata.uid.as_deref().unwrap_or_default());
        // It may have gone since.
        let _ = pods.delete(&pod.name_any(), &DeleteParams::default()).await;
    }

    /// A node falls silent, or the silent one comes back.
    async fn disturb_a_node(&mut self) {
        self.witness.disturb();
        match self.silent.take() {
            Some(node) => self
                .cluster
                .nodes()
                .start(&node)
                .await
                .expect("it is known"),
            None => {
                let node = format!("node-{}", 1 + self.random.below(3));
                self.cluster.nodes().stop(&node).await.expect("it is known");
                self.silent = Some(node);
            }
        }
    }
}
