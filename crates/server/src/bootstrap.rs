//! What every cluster has from the start: its namespaces, the Service of the server itself, and the default roles
//! where roles decide.

use serde_json::{Value, json};

use crate::access::Authorization;
use crate::core::Core;
use crate::fields::Writer;
use crate::status::ApiError;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl Core {
    /// Makes sure that what every cluster has is there, and finishes what an earlier run left unfinished.
    pub(crate) async fn bootstrap(&self) -> Result<(), ApiError> {
        if self.access.mode() == Authorization::Rbac {
            self.ensure_policy().await?;
        }
        for name in NAMESPACES {
            let namespace =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            self.ensure("namespaces", None, namespace).await?;
        }
        self.ensure("services", Some("default"), kubernetes_service())
            .await?;
        self.ensure_flow_control().await?;
        self.reconcile_all().await;
        Ok(())
    }

    async fn ensure(
        &self,
        plural: &str,
        namespace: Option<&str>,
        value: Value,
    ) -> Result<(), ApiError> {
        let served = self.registry.now().builtin("", "v1", plural);
        let name = value["metadata"]["name"].as_str().unwrap_or("");
        if served
            .collection
            .get(&served.key(namespace, name))
            .is_none()
        {
            let writer = Writer::server("");
            self.create(&served, namespace, value, &writer, &mut Vec::new())
                .await?;
        }
        Ok(())
    }
}

fn kubernetes_service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": crate::SERVICE_ADDRESS, "ipFamilyPolicy": "SingleStack",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }],
        },
    })
}
