//! What users and machines do, at random. Users have a transport without faults.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use kubewright_cluster::Cluster;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::random::Random;
use crate::witness::Witness;

/// Names of each kind; a few, so that they are used again.
const NAMES: [&str; 2] = ["one", "two"];
const KINDS: [&str; 4] = ["deployments", "statefulsets", "daemonsets", "jobs"];

pub(crate) struct Operator<'a> {
    cluster: &'a Cluster,
    witness: &'a Witness,
    pub(crate) random: Random,
    /// The node that is silent.
    silent: Option<String>,
}

impl<'a> Operator<'a> {
    pub(crate) fn new(cluster: &'a Cluster, witness: &'a Witness, random: Random) -> Self {
        Self {
            cluster,
            witness,
            random,
            silent: None,
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
        match self.random.below(10) {
            0..5 => self.create_or_change(kind, name).await,
            5 => self.undo(name).await,
            6 => self.delete(kind, name).await,
            7 | 8 => self.delete_pod().await,
            _ => self.disturb_a_node().await,
        }
    }

    /// All nodes speak again, and nothing is paused.
    pub(crate) async fn calm(&mut self) {
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
        match kind {
            "deployments" => {
                let (surge, unavailable) = match self.random.below(3) {
                    0 => (json!(1), json!(0)),
                    1 => (json!(0), json!(1)),
                    _ => (json!("50%"), json!("25%")),
                };
                let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
                self.post::<Deployment>(name, json!({"replicas": count, "selector": selector, "template": template, "strategy": strategy})).await
            }
            "statefulsets" => {
                self.post::<StatefulSet>(name, json!({"replicas": count, "selector": selector, "template": template, "serviceName": name})).await
            }
            "daemonsets" => {
                self.post::<DaemonSet>(name, json!({"selector": selector, "template": template})).await
            }
            _ => {
                let mut template = template;
                template["spec"]["restartPolicy"] = json!("Never");
                template["metadata"]["annotations"] = json!({"sim.kubewright.dev/exit-after": "45s"});
                let spec = json!({"completions": count + 1, "parallelism": count, "template": template});
                self.post::<Job>(name, spec).await
            }
        }
    }

    async fn post<K>(&self, name: &str, spec: Value) -> bool
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: serde::Serialize + DeserializeOwned + Clone + std::fmt::Debug,
    {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        let object: K = serde_json::from_value(object).expect("the test's object is one");
        let api = Api::<K>::default_namespaced(self.cluster.client());
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 409 => false,
            Err(error) => panic!("{name}: {error}"),
        }
    }

    async fn patch(&self, kind: &str, name: &str, patch: Value) {
        let (client, params) = (self.cluster.client(), PatchParams::default());
        let patch = Patch::Strategic(patch);
        let patched = match kind {
            "deployments" => Api::<Deployment>::default_namespaced(client)
                .patch(name, &params, &patch)
                .await
                .map(drop),
            "statefulsets" => Api::<StatefulSet>::default_namespaced(client)
                .patch(name, &params, &patch)
                .await
                .map(drop),
            "daemonsets" => Api::<DaemonSet>::default_namespaced(client)
                .patch(name, &params, &patch)
                .await
                .map(drop),
            _ => Api::<Job>::default_namespaced(client)
                .patch(name, &params, &patch)
                .await
                .map(drop),
        };
        // What is gone, and what may not be changed any more, is left alone.
        if let Err(error) = patched {
            assert!(
                matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 422)),
                "{kind} {name}: {error}"
            );
        }
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
        let client = self.cluster.client();
        let deleted = match kind {
            "deployments" => Api::<Deployment>::default_namespaced(client)
                .delete(name, &params)
                .await
                .map(drop),
            "statefulsets" => Api::<StatefulSet>::default_namespaced(client)
                .delete(name, &params)
                .await
                .map(drop),
            "daemonsets" => Api::<DaemonSet>::default_namespaced(client)
                .delete(name, &params)
                .await
                .map(drop),
            _ => Api::<Job>::default_namespaced(client)
                .delete(name, &params)
                .await
                .map(drop),
        };
        if let Err(error) = deleted {
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
