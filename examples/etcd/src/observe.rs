//! Looks at a cluster: pods and claims first, then every member that has an address.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kubewright::prelude::*;

use crate::api::{EtcdCluster, Tls};
use crate::certificates;
use crate::etcd::{Etcd, ListedMember, MemberStatus};
use crate::names::{MEMBER, Names, PEERS, TEMPLATE, VERSION};
use crate::plan::{
    ClaimPhase, ClaimView, Health, MemberView, Observed, PodPhase, PodView, Quorum, Voting,
    majority,
};
use crate::transport::Endpoint;
use crate::version::Version;

/// Everything that was seen of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What the plan is made from.
    pub(crate) observed: Observed,
    /// The pods by name.
    pub(crate) pods: BTreeMap<String, Arc<Pod>>,
    /// The claims by the name of their member.
    pub(crate) claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// Where members are, by name.
    pub(crate) endpoints: BTreeMap<String, Endpoint>,
    /// What members said of themselves, by id.
    pub(crate) statuses: BTreeMap<u64, MemberStatus>,
}

impl Seen {
    /// Where a member is.
    pub(crate) fn endpoint(&self, id: u64) -> Option<&Endpoint> {
        let quorum = self.observed.quorum.as_ref()?;
        let member = quorum.members.iter().find(|member| member.id == id)?;
        self.endpoints.get(&member.name)
    }

    /// Where the leader is.
    pub(crate) fn leader(&self) -> Option<&Endpoint> {
        self.endpoint(self.observed.quorum.as_ref()?.leader)
    }
}

/// Looks at a cluster.
///
/// # Errors
/// When the API server does not answer. Members that do not answer are part of what is seen.
pub(crate) async fn observe(cluster: &EtcdCluster, etcd: &dyn Etcd, cx: &Context) -> Result<Seen> {
    let names = Names::of(cluster);
    let mut seen = Seen::default();
    for pod in cx.client().list::<Pod>(names.query("member")).await? {
        if is_controlled_by(cluster, &*pod) {
            seen.pods.insert(pod.name_any(), pod);
        }
    }
    for claim in cx
        .client()
        .list::<PersistentVolumeClaim>(names.query("member"))
        .await?
    {
        let name = claim.name_any();
        if let Some(member) = name.strip_prefix("data-")
            && is_controlled_by(cluster, &*claim)
        {
            seen.claims.insert(member.to_owned(), claim);
        }
    }
    let status = cluster.status.as_ref();
    seen.observed.established = status.is_some_and(|status| status.cluster_id.is_some());
    let pods = seen.pods.iter();
    seen.observed.pods = pods
        .map(|(name, pod)| (name.clone(), pod_view(pod)))
        .collect();
    let claims = seen.claims.iter();
    seen.observed.claims = claims
        .map(|(name, claim)| (name.clone(), claim_view(claim)))
        .collect();
    seen.endpoints = endpoints(cluster, &names, &seen.pods, cx).await?;
    ask_members(cluster, etcd, &mut seen, cx.now()).await;
    Ok(seen)
}

/// Where the members with an address are.
async fn endpoints(
    cluster: &EtcdCluster,
    names: &Names,
    pods: &BTreeMap<String, Arc<Pod>>,
    cx: &Context,
) -> Result<BTreeMap<String, Endpoint>> {
    if pods.is_empty() {
        return Ok(BTreeMap::new());
    }
    let tls = match cluster.spec.tls {
        Tls::Enabled => Some(certificates::client_config(names, cx).await?),
        Tls::Disabled => None,
    };
    let endpoint = |(name, pod): (&String, &Arc<Pod>)| {
        let address = pod.status.as_ref()?.pod_ip.clone()?;
        let endpoint = Endpoint {
            member: name.clone(),
            namespace: names.namespace.clone(),
            address,
            host: names.host(name),
            tls: tls.clone(),
        };
        Some((name.clone(), endpoint))
    };
    Ok(pods.iter().filter_map(endpoint).collect())
}

/// Asks all members how they are, and the leader whom it knows.
async fn ask_members(cluster: &EtcdCluster, etcd: &dyn Etcd, seen: &mut Seen, now: Timestamp) {
    let endpoints: Vec<&Endpoint> = seen.endpoints.values().collect();
    let answers = join_all(endpoints.iter().map(|it| etcd.status(it))).await;
    let answers = endpoints.into_iter().zip(answers);
    let answers: Vec<(&Endpoint, MemberStatus)> = answers
        .filter_map(|(endpoint, answer)| Some((endpoint, answer.ok()?)))
        .collect();
    // A leader that was replaced and does not know it has a lower term.
    let newest = answers
        .iter()
        .map(|(_, status)| status)
        .filter(|status| status.leader != 0)
        .max_by_key(|status| status.raft_term);
    let Some(leader) = newest.map(|status| (status.leader, status.header.cluster_id)) else {
        return;
    };
    let mut leads = answers.iter();
    let leads =
        leads.find(|(_, status)| (status.header.member_id, status.header.cluster_id) == leader);
    let Some((endpoint, _)) = leads else { return };
    let Ok(members) = etcd.members(endpoint).await else {
        return;
    };
    let answers = answers.iter().map(|(_, status)| status);
    let following = answers.filter(|it| (it.leader, it.header.cluster_id) == leader);
    seen.statuses = following
        .map(|status| (status.header.member_id, status.clone()))
        .collect();
    let since = unhealthy_since(cluster);
    let view = |member: &ListedMember| member_view(member, &seen.statuses, &since, now);
    let quorum = Quorum {
        leader: leader.0,
        members: members.iter().map(view).collect(),
    };
    let voters = quorum.voters().count();
    if quorum.healthy_voters() >= majority(voters) {
        seen.observed.quorum = Some(quorum);
    }
}

/// Since when members are away, as the status remembers it.
fn unhealthy_since(cluster: &EtcdCluster) -> BTreeMap<u64, Timestamp> {
    let members = cluster.status.iter().flat_map(|status| &status.members);
    let since = members.filter_map(|member| {
        let id = u64::from_str_radix(&member.id, 16).ok()?;
        Some((id, member.unhealthy_since.as_ref()?.0))
    });
    since.collect()
}

fn member_view(
    member: &ListedMember,
    statuses: &BTreeMap<u64, MemberStatus>,
    since: &BTreeMap<u64, Timestamp>,
    now: Timestamp,
) -> MemberView {
    let status = statuses.get(&member.id);
    let healthy = status.is_some_and(|status| status.errors.is_empty());
    MemberView {
        id: member.id,
        name: member.pod().to_owned(),
        voting: if member.is_learner {
            Voting::Learner
        } else {
            Voting::Voter
        },
        started: !member.name.is_empty(),
        health: if healthy {
            Health::Healthy
        } else {
            Health::Unhealthy(since.get(&member.id).copied().unwrap_or(now))
        },
    }
}

fn pod_view(pod: &Pod) -> PodView {
    let annotation = |name: &str| pod.annotations().get(name).map(String::as_str);
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let version = annotation(VERSION).and_then(|text| text.parse().ok());
    let peers = annotation(PEERS).unwrap_or_default();
    let peers = peers.split(',').filter(|peer| !peer.is_empty());
    PodView {
        member: member_id(pod),
        phase: match phase {
            _ if pod.metadata.deletion_timestamp.is_some() => PodPhase::Deleting,
            Some("Failed" | "Succeeded") => PodPhase::Ended,
            _ => PodPhase::Alive,
        },
        version: version.unwrap_or(Version {
            major: 3,
            minor: 0,
            patch: 0,
        }),
        template: annotation(TEMPLATE).unwrap_or_default().to_owned(),
        peers: peers.map(str::to_owned).collect(),
    }
}

fn claim_view(claim: &PersistentVolumeClaim) -> ClaimView {
    let phase = claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    ClaimView {
        member: member_id(claim),
        phase: match phase {
            _ if claim.metadata.deletion_timestamp.is_some() => ClaimPhase::Deleting,
            Some("Lost") => ClaimPhase::Lost,
            _ => ClaimPhase::Usable,
        },
    }
}

/// The member that an object was made for.
pub(crate) fn member_id(object: &impl ResourceExt) -> Option<u64> {
    let id = object.annotations().get(MEMBER)?;
    u64::from_str_radix(id, 16).ok()
}
