//! Who the operator is to the server: its service account and roles, as they are deployed.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use kubewright_cluster::Cluster;
use kubewright_manifests::layout::{self, Settings};
use kubewright_manifests::project::Project;
use kubewright_server::User;
use kubewright_testing::rbac::Grant;
use kubewright_testing::{Permission, Wire};

use crate::{Error, Result, registered};

/// What the names of the generated objects begin with.
const NAME: &str = "operator";
/// Roles that every deployment has, whatever its controllers do.
const COMMON: [&str; 3] = [
    "operator-leader-election-role",
    "operator-metrics-auth-role",
    "operator-certificates-role",
];

/// As whom the operator asks.
#[derive(Debug, Clone)]
pub(super) enum Identity {
    /// With the roles that are generated from what is registered.
    Generated,
    /// With these permissions and no others.
    Granted(Grant),
    /// As the administrator of the cluster.
    Admin,
}

impl Identity {
    /// Its permissions, if it is not the administrator.
    ///
    /// # Errors
    /// When manifests cannot be made of what is registered.
    pub(super) fn grant(&self) -> Result<Option<Grant>> {
        match self {
            Self::Admin => Ok(None),
            Self::Granted(grant) => Ok(Some(grant.clone())),
            Self::Generated => generated().map(Some),
        }
    }
}

/// The service account and the roles that `kubewright generate` writes, as a deployment in `operator-system` has them.
fn generated() -> Result<Grant> {
    let project = Project::new(NAME, "", env!("CARGO_PKG_VERSION"));
    let inventory = registered::inventory();
    let objects = layout::deployed(&project, &inventory, &Settings::default());
    let objects = objects.map_err(Error::from)?;
    Grant::of(&objects).map_err(Error::from)
}

/// What the operator's own code needs permissions for, without what every deployment has.
pub(super) fn declared(grant: &Grant) -> Vec<Permission> {
    grant.without_roles(&COMMON).permissions()
}

/// Makes the service account and its roles, and the namespaces that they are in.
///
/// # Errors
/// When the server refuses one.
pub(super) async fn install(cluster: &Cluster, grant: &Grant) -> Result {
    let namespaces = Api::<Namespace>::all(cluster.client());
    for name in grant.namespaces() {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name);
        match namespaces.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            other => drop(other?),
        }
    }
    Ok(grant.install(cluster.server()).await?)
}

/// The operator's transport to the server.
pub(super) fn connect(cluster: &Cluster, grant: Option<&Grant>) -> Wire {
    let user = grant.map_or_else(User::admin, Grant::user);
    Wire::new(cluster.server().service_as(user))
}
