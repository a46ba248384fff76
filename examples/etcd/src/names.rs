//! What the objects of a cluster are called, and where its members are.

use kube::ResourceExt;
use kube::core::{Expression, Selector};
use kubewright::Query;

use crate::api::{EtcdCluster, Tls};

/// The label with the name of the cluster, on everything that belongs to it.
pub(crate) const CLUSTER: &str = "etcd.kubewright.dev/cluster";
/// The label that says what a pod is for: `member`, `backup` or `restore`.
pub(crate) const COMPONENT: &str = "etcd.kubewright.dev/component";
/// The annotation with the id of the member, in hexadecimal. The first member's objects are made before it has one.
pub(crate) const MEMBER: &str = "etcd.kubewright.dev/member-id";
/// The annotation with the version of etcd that a pod runs.
pub(crate) const VERSION: &str = "etcd.kubewright.dev/version";
/// The annotation with what else a pod was made with.
pub(crate) const TEMPLATE: &str = "etcd.kubewright.dev/template";
/// The annotation with the members that a pod was given to start with.
pub(crate) const PEERS: &str = "etcd.kubewright.dev/peers";
/// The annotation on the claim of the first member that says which snapshot is in it.
pub(crate) const RESTORED: &str = "etcd.kubewright.dev/restored-from";

/// Names of the objects of one cluster.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// The name of the cluster, which is that of the Service of its members.
    pub(crate) cluster: String,
    /// Its namespace.
    pub(crate) namespace: String,
    scheme: &'static str,
}

impl Names {
    /// The names of a cluster's objects.
    pub(crate) fn of(cluster: &EtcdCluster) -> Self {
        let scheme = match cluster.spec.tls {
            Tls::Enabled => "https",
            Tls::Disabled => "http",
        };
        Self {
            cluster: cluster.name_any(),
            namespace: cluster.namespace().unwrap_or_default(),
            scheme,
        }
    }

    /// The objects of this cluster with a component.
    pub(crate) fn query(&self, component: &str) -> Query {
        let cluster = Expression::Equal(CLUSTER.to_owned(), self.cluster.clone());
        let component = Expression::Equal(COMPONENT.to_owned(), component.to_owned());
        let labels = Selector::from_iter([cluster, component]);
        Query::all()
            .namespace(self.namespace.as_str())
            .labels(labels)
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// The Service for clients, which leads to members that are ready.
    pub(crate) fn client_service(&self) -> String {
        format!("{}-client", self.cluster)
    }

    /// The name by which a member is found, whatever its address is.
    pub(crate) fn host(&self, member: &str) -> String {
        format!("{member}.{}.{}.svc", self.cluster, self.namespace)
    }

    /// Where other members reach a member.
    pub(crate) fn peer_url(&self, member: &str) -> String {
        format!("{}://{}:2380", self.scheme, self.host(member))
    }

    /// Where clients reach a member.
    pub(crate) fn client_url(&self, member: &str) -> String {
        format!("{}://{}:2379", self.scheme, self.host(member))
    }

    /// Where clients reach the cluster.
    pub(crate) fn endpoint(&self) -> String {
        let service = self.client_service();
        format!("{}://{service}.{}.svc:2379", self.scheme, self.namespace)
    }

    /// The claim with the data of a member.
    pub(crate) fn claim(&self, member: &str) -> String {
        format!("data-{member}")
    }

    /// The claim with the snapshots.
    pub(crate) fn backup_claim(&self) -> String {
        format!("{}-backup", self.cluster)
    }

    /// The pod that puts a snapshot into the claim of the first member.
    pub(crate) fn restore_pod(&self) -> String {
        format!("{}-restore", self.cluster)
    }

    /// The Secret with the authority that signs all certificates of the cluster.
    pub(crate) fn authority(&self) -> String {
        format!("{}-ca", self.cluster)
    }

    /// The Secret with the certificate for clients; the operator is one of them.
    pub(crate) fn client_certificate(&self) -> String {
        format!("{}-client-tls", self.cluster)
    }

    /// The Secret with the certificate of a member.
    pub(crate) fn certificate(&self, member: &str) -> String {
        format!("{member}-tls")
    }
}
