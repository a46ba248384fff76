//! What users do about autoscalers, cron jobs, budgets and claims, and nodes that are low on memory.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, EvictParams, ListParams};
use kube::{Api, ResourceExt};
use kubewright_cluster::Measured;
use kubewright_cluster::node::Pressure;
use serde_json::{Value, json};

use crate::operations::Operator;

impl Operator<'_> {
    /// Does something about what has limits.
    pub(crate) async fn act_on_policies(&mut self, name: &str) {
        match self.random.below(11) {
            0 | 1 => self.autoscale(name).await,
            2 => self.load(),
            3 | 4 => self.schedule(name).await,
            5 => self.budget(name).await,
            6 | 7 => self.evict().await,
            8 | 9 => self.enlarge_a_claim().await,
            _ => self.press_a_node().await,
        }
    }

    /// An autoscaler of a Deployment is created, gets other bounds, or goes.
    async fn autoscale(&mut self, name: &str) {
        let kind = "horizontalpodautoscalers";
        let least = 1 + self.random.below(2);
        let bounds = json!({"minReplicas": least, "maxReplicas": least + self.random.below(4)});
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        let backlog = json!({"metric": {"name": "backlog"}, "target": {"type": "AverageValue", "averageValue": "10"}});
        let mut spec = bounds.clone();
        spec["scaleTargetRef"] = target;
        spec["metrics"] = json!([{"type": "External", "external": backlog}]);
        if self.post(kind, name, spec).await {
            return;
        }
        if self.random.below(3) == 0 {
            self.remove(kind, name).await;
        } else {
            self.patch(kind, name, json!({"spec": bounds})).await;
        }
    }

    /// There is more or less to do than before.
    fn load(&mut self) {
        let backlog = self.random.below(60).to_string();
        let queue = Measured::external("default");
        let set = self.cluster.metrics().set(queue, "backlog", &backlog);
        set.expect("a quantity");
    }

    /// A cron job is created, changes its mind, or goes. Its jobs last longer than it takes until the next one is due.
    async fn schedule(&mut self, name: &str) {
        let kind = "cronjobs";
        let policies = ["Allow", "Forbid", "Forbid", "Replace"];
        let policy = *self.random.pick(&policies[..]).expect("there are some");
        let annotations = json!({"sim.kubewright.dev/exit-after": "250s"});
        let pod = json!({"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "app:0"}]}});
        let spec = json!({"schedule": "*/3 * * * *", "concurrencyPolicy": policy, "successfulJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {"template": pod}}});
        if self.post(kind, name, spec).await {
            return;
        }
        match self.random.below(4) {
            0 => self.remove(kind, name).await,
            1 => {
                let patch = json!({"spec": {"concurrencyPolicy": policy}});
                self.patch(kind, name, patch).await;
            }
            _ => {
                let suspend = self.random.below(3) == 0;
                self.patch(kind, name, json!({"spec": {"suspend": suspend}}))
                    .await;
            }
        }
    }

    /// A budget for the pods of a Deployment is created, or goes.
    async fn budget(&mut self, name: &str) {
        let kind = "poddisruptionbudgets";
        let selector = json!({"matchLabels": {"app": format!("deployments-{name}")}});
        let mut spec = match self.random.below(3) {
            0 => json!({"minAvailable": 1 + self.random.below(2)}),
            1 => json!({"maxUnavailable": 1}),
            _ => json!({"maxUnavailable": "50%"}),
        };
        spec["selector"] = selector;
        if !self.post(kind, name, spec).await && self.random.below(3) == 0 {
            self.remove(kind, name).await;
        }
    }

    /// Somebody asks for the eviction of some pods, as `kubectl drain` does.
    async fn evict(&mut self) {
        let pods = Api::<Pod>::default_namespaced(self.cluster.client());
        let listed = pods.list(&ListParams::default()).await;
        let mut all = listed.expect("an answer").items;
        for _ in 0..3 {
            let Some(pod) = self.random.pick(&all).cloned() else {
                return;
            };
            all.retain(|other| other.uid() != pod.uid());
            self.witness.excuse(&pod.uid().unwrap_or_default());
            let evicted = pods.evict(&pod.name_any(), &EvictParams::default()).await;
            // It may have gone since, and budgets may not allow it.
            if let Err(error) = evicted {
                let refused =
                    matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 429));
                assert!(refused, "{}: {error}", pod.name_any());
            }
        }
    }

    /// A claim asks for more.
    async fn enlarge_a_claim(&mut self) {
        let claims = Api::<PersistentVolumeClaim>::default_namespaced(self.cluster.client());
        let listed = claims.list(&ListParams::default()).await;
        let mut all = listed.expect("an answer").items;
        let phase = |claim: &PersistentVolumeClaim| claim.status.clone().and_then(|it| it.phase);
        all.retain(|claim| phase(claim).as_deref() == Some("Bound"));
        let Some(claim) = self.random.pick(&all) else {
            return;
        };
        let shown: Value = serde_json::to_value(claim).expect("json");
        let size = shown["spec"]["resources"]["requests"]["storage"].as_str();
        let size = size.and_then(|size| size.strip_suffix("Gi")?.parse::<u64>().ok());
        let more = format!("{}Gi", size.unwrap_or_default() + 1 + self.random.below(2));
        let patch = json!({"spec": {"resources": {"requests": {"storage": more}}}});
        let name = claim.name_any();
        self.patch("persistentvolumeclaims", &name, patch).await;
    }

    /// A node gets low on memory, or the one that is has enough again.
    async fn press_a_node(&mut self) {
        if self.pressed.is_some() {
            return self.relieve_the_node().await;
        }
        let node = format!("node-{}", 1 + self.random.below(3));
        self.witness.press(&node);
        let pressed = self.cluster.nodes().pressure(&node, [Pressure::Memory]);
        pressed.await.expect("it is known");
        self.pressed = Some(node);
    }

    /// The node that is low on memory has enough again.
    pub(crate) async fn relieve_the_node(&mut self) {
        let Some(node) = self.pressed.take() else {
            return;
        };
        let relieved = self.cluster.nodes().pressure(&node, []);
        relieved.await.expect("it is known");
        self.witness.relieve(&node);
    }

    /// Deletes an object; it may have gone since.
    async fn remove(&self, kind: &str, name: &str) {
        let _ = self
            .api(kind)
            .delete(name, &DeleteParams::background())
            .await;
    }
}
