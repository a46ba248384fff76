//! Where a node looks up what pods refer to.

use std::sync::Arc;

use k8s_openapi::api::certificates::v1::ClusterTrustBundle;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
};
use kubewright_cache::{Key, Reader};

use crate::node::runtime::PullCredentials;

/// The objects that pods refer to.
pub(crate) trait Sources {
    fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Secret>>;
    fn config_map(&self, namespace: &str, name: &str) -> Option<Arc<ConfigMap>>;
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>>;
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>>;
    fn trust_bundle(&self, name: &str) -> Option<Arc<ClusterTrustBundle>>;
    fn trust_bundles(&self) -> Vec<Arc<ClusterTrustBundle>>;
    /// All Services of a namespace.
    fn services(&self, namespace: &str) -> Vec<Arc<Service>>;
}

/// The objects as informers have them.
#[derive(Debug, Clone)]
pub(crate) struct Cached {
    pub(crate) secrets: Reader<Secret>,
    pub(crate) config_maps: Reader<ConfigMap>,
    pub(crate) claims: Reader<PersistentVolumeClaim>,
    pub(crate) volumes: Reader<PersistentVolume>,
    pub(crate) trust_bundles: Reader<ClusterTrustBundle>,
    pub(crate) services: Reader<Service>,
}

impl Sources for Cached {
    fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Secret>> {
        self.secrets.get(&Key::new(namespace, name))
    }

    fn config_map(&self, namespace: &str, name: &str) -> Option<Arc<ConfigMap>> {
        self.config_maps.get(&Key::new(namespace, name))
    }

    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.get(&Key::new(namespace, name))
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.get(&Key::cluster(name))
    }

    fn trust_bundle(&self, name: &str) -> Option<Arc<ClusterTrustBundle>> {
        self.trust_bundles.get(&Key::cluster(name))
    }

    fn trust_bundles(&self) -> Vec<Arc<ClusterTrustBundle>> {
        self.trust_bundles.list().into_iter().collect()
    }

    fn services(&self, namespace: &str) -> Vec<Arc<Service>> {
        {
            let all = self.services.list().into_iter();
            all.filter(|s| s.metadata.namespace.as_deref() == Some(namespace))
                .collect()
        }
    }
}

/// What the pull secrets of a pod have, and the names of those that are not there.
///
/// Mirrors `Kubelet.getPullSecretsForPod`.
pub(crate) fn pull_secrets(pod: &Pod, sources: &dyn Sources) -> (PullCredentials, Vec<String>) {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    let references = pod
        .spec
        .iter()
        .flat_map(|spec| spec.image_pull_secrets.iter().flatten());
    let (mut credentials, mut missing) = (PullCredentials::default(), Vec::new());
    for reference in references.filter(|reference| !reference.name.is_empty()) {
        match sources.secret(namespace, &reference.name) {
            Some(secret) => credentials.0.extend(registries(&secret)),
            None => missing.push(reference.name.clone()),
        }
    }
    (credentials, missing)
}

/// The registries that a pull secret has users for.
fn registries(secret: &Secret) -> Vec<(String, String)> {
    let data = |key: &str| secret.data.as_ref()?.get(key).map(|bytes| &bytes.0[..]);
    let parse = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    let new = data(".dockerconfigjson").and_then(parse);
    let old = || data(".dockercfg").and_then(parse);
    let Some(config) = new.map(|config| config["auths"].clone()).or_else(old) else {
        return Vec::new();
    };
    let entries = config.as_object().into_iter().flatten();
    entries
        .map(|(host, entry)| {
            (
                host.clone(),
                entry["username"].as_str().unwrap_or("").to_owned(),
            )
        })
        .collect()
}
