//! Why a volume of a pod cannot be made, in the words of the kubelet.

use kubewright_schema::quantity::QuantityError;

use super::environment::ConfigError;

/// Why a volume of a pod cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VolumeError {
    /// A ConfigMap or Secret is missing.
    #[error(transparent)]
    NoObject(#[from] ConfigError),
    #[error("references non-existent secret key: {0}")]
    NoSecretKey(String),
    #[error("configmap references non-existent config key: {0}")]
    NoConfigMapKey(String),
    #[error(
        "while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io {0:?} not found"
    )]
    NoTrustBundle(String),
    #[error("ClusterTrustBundle projection requires either name or signerName to be set")]
    NoSigner,
    #[error("combination of signerName and labelSelector matched zero ClusterTrustBundles")]
    NoneOfSigner,
    /// More than one source of a projected volume failed.
    #[error("[{}]", joined(.0))]
    Sources(Vec<VolumeError>),
    #[error(transparent)]
    SizeLimit(#[from] QuantityError),
    #[error(transparent)]
    Claim(#[from] UnusableClaim),
}

/// A claim whose volume cannot be mounted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error processing PVC {namespace}/{name}: {problem}")]
pub(crate) struct UnusableClaim {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) problem: ClaimProblem,
}

/// What is wrong with a claim, or with the volume that it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClaimProblem {
    #[error("failed to fetch PVC from API server: persistentvolumeclaims {0:?} not found")]
    NotFound(String),
    #[error("PVC is being deleted")]
    Deleted,
    #[error("PVC is not bound")]
    NotBound,
    #[error("PVC has empty pvc.Spec.VolumeName")]
    NoVolumeName,
    #[error("failed to fetch PV {0} from API server: persistentvolumes {0:?} not found")]
    NoVolume(String),
    #[error(
        "found PV object {0} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
    )]
    NoClaimRef(String),
    #[error(
        "found PV object {volume} but its pv.Spec.ClaimRef.UID {found} does not point to claim.UID {expected}"
    )]
    OtherClaim {
        volume: String,
        found: String,
        expected: String,
    },
}

fn joined(errors: &[VolumeError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
