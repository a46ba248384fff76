//! The reconciler: looks, asks the plan, writes the status, does one step.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kubewright::prelude::*;

use crate::api::{EtcdCluster, Tls};
use crate::etcd::{Etcd, EtcdError};
use crate::names::Names;
use crate::observe::{Seen, member_id, observe};
use crate::plan::{Removal, Step, Wanted, plan};
use crate::start::{Started, bootstrap, start_member};
use crate::{backup, certificates, objects, status};

/// How often members are asked how they are.
const HEALTH_INTERVAL: Duration = Duration::from_secs(5);
/// How soon the next step follows.
const NEXT_STEP: Duration = Duration::from_secs(1);
/// What is waited for is looked at again after so much less than it has been waited for.
const PATIENCE: u32 = 10;

/// How members are reached. A manager has it as state.
#[derive(Clone)]
pub struct Members(
    /// What answers for all members.
    pub Arc<dyn Etcd>,
);

/// The controller of EtcdClusters.
#[kubewright::controller]
pub fn controller() -> Controller {
    Controller::of::<EtcdCluster>("etcdcluster")
        .owns::<Pod>()
        .owns::<PersistentVolumeClaim>()
        .owns::<Service>()
        .owns::<Secret>()
        .owns::<Job>()
        .owns::<PodDisruptionBudget>()
        .reconciler(EtcdClusters)
}

/// Keeps EtcdClusters.
#[derive(Debug)]
pub struct EtcdClusters;

impl Reconciler<EtcdCluster> for EtcdClusters {
    async fn reconcile(&self, cluster: Arc<EtcdCluster>, cx: &Context) -> Result<Outcome> {
        if cluster.metadata.deletion_timestamp.is_some() {
            // Everything has the cluster as its owner and goes with it.
            return Ok(Outcome::done());
        }
        let wanted = wanted(&cluster)?;
        keep_services(&cluster, cx).await?;
        if cluster.spec.tls == Tls::Enabled {
            let status = cluster.status.iter();
            let members = status.flat_map(|status| &status.members);
            let members: Vec<String> = members.map(|member| member.name.clone()).collect();
            certificates::ensure(&cluster, &members, cx).await?;
        }
        let etcd = &cx.state::<Members>()?.0;
        let seen = observe(&cluster, &**etcd, cx).await?;
        let step = plan(&wanted, &seen.observed, cx.now());
        let cluster = write_status(&cluster, &seen, &step, cx).await?;
        let shell = Shell {
            cluster: &cluster,
            wanted: &wanted,
            seen: &seen,
            etcd: &**etcd,
            cx,
        };
        shell.carry_out(&step).await
    }
}

/// What the spec asks for.
fn wanted(cluster: &EtcdCluster) -> Result<Wanted> {
    let spec = &cluster.spec;
    Ok(Wanted {
        name: cluster.name_any(),
        size: usize::try_from(spec.size).map_err(Error::terminal)?.max(1),
        version: spec.version.parse().map_err(Error::terminal)?,
        template: objects::template(cluster),
        member_timeout: Duration::from_secs(spec.member_timeout_seconds.unsigned_abs()),
    })
}

async fn keep_services(cluster: &EtcdCluster, cx: &Context) -> Result {
    let names = Names::of(cluster);
    let key = cx.key().sibling(&names.cluster);
    let fill = |service: &mut Service| objects::peer_service(&names, service);
    cx.client().apply_owned(cluster, &key, fill).await?;
    let fill = |budget: &mut PodDisruptionBudget| objects::disruption_budget(&names, budget);
    cx.client().apply_owned(cluster, &key, fill).await?;
    let key = cx.key().sibling(&names.client_service());
    let fill = |service: &mut Service| objects::client_service(&names, service);
    cx.client().apply_owned(cluster, &key, fill).await?;
    Ok(())
}

/// Writes what was seen before anything is done: that a cluster exists has to be known from the first moment on.
async fn write_status(
    cluster: &EtcdCluster,
    seen: &Seen,
    step: &Step,
    cx: &Context,
) -> Result<EtcdCluster> {
    let now = cx.now();
    let change = |object: &mut EtcdCluster| {
        let before = object.clone();
        status::update(
            object.status.get_or_insert_default(),
            &before,
            seen,
            step,
            now,
        );
    };
    let written = cx.client().modify_status(cluster, change).await?;
    Ok(written.into_object())
}

/// Everything that a step needs.
#[derive(Clone, Copy)]
pub(crate) struct Shell<'a> {
    pub(crate) cluster: &'a EtcdCluster,
    pub(crate) wanted: &'a Wanted,
    pub(crate) seen: &'a Seen,
    pub(crate) etcd: &'a dyn Etcd,
    pub(crate) cx: &'a Context,
}

impl Shell<'_> {
    async fn carry_out(&self, step: &Step) -> Result<Outcome> {
        match step {
            Step::Idle => {
                let next = backup::maintain(self).await?;
                return Ok(Outcome::requeue_after(next.min(HEALTH_INTERVAL)));
            }
            Step::Wait(_) => return Ok(Outcome::requeue_after(self.pause())),
            Step::Bootstrap(_) | Step::StartMember(..) | Step::RestartMember(_) => {
                if self.start(step).await? == Started::Later {
                    return Ok(Outcome::requeue_after(self.pause()));
                }
            }
            Step::DeletePod(name, _) => self.delete_pod(name).await?,
            Step::DeleteClaim(name) => self.delete_claim(name).await?,
            step => self.change_members(step).await?,
        }
        Ok(Outcome::requeue_after(NEXT_STEP))
    }

    /// Starts a member.
    async fn start(&self, step: &Step) -> Result<Started> {
        let id_of = |name: &str| member_id(&**self.seen.claims.get(name)?);
        match step {
            Step::Bootstrap(name) => bootstrap(self, name).await,
            Step::StartMember(id, name) => {
                // The claim of the first member has no id.
                let is_first = self.seen.claims.contains_key(name) && id_of(name).is_none();
                start_member(self, (!is_first).then_some(*id), name).await
            }
            Step::RestartMember(name) => start_member(self, id_of(name), name).await,
            _ => Ok(Started::Now),
        }
    }

    /// How long until a cluster that waits is looked at again: the longer it has not been as wanted, the longer.
    fn pause(&self) -> Duration {
        let status = self.cluster.status.as_ref();
        let progressing = status.and_then(|it| conditions::find(&it.conditions, "Progressing"));
        let since = progressing.map_or(self.cx.now(), |it| it.last_transition_time.0);
        let waited = Duration::try_from(self.cx.now().duration_since(since)).unwrap_or_default();
        (waited / PATIENCE).clamp(NEXT_STEP, HEALTH_INTERVAL)
    }

    /// Changes the membership. What etcd refuses is looked at again: it knows better at that moment.
    async fn change_members(&self, step: &Step) -> Result {
        if let Step::RemoveMember(id, Removal::DataLost) = step
            && self.data_is_back(*id).await?
        {
            return Ok(());
        }
        let names = Names::of(self.cluster);
        let Some(leader) = self.seen.leader() else {
            return Ok(());
        };
        let (changed, reason) = match step {
            Step::AddMember(name) => {
                let url = names.peer_url(name);
                let added = self.etcd.add_learner(leader, &url).await;
                (added.map(|_| ()), "MemberAdded")
            }
            Step::Promote(id) => (self.etcd.promote(leader, *id).await, "LearnerPromoted"),
            Step::RemoveMember(id, _) => (self.etcd.remove(leader, *id).await, "MemberRemoved"),
            Step::MoveLeader { to, .. } => {
                (self.etcd.move_leader(leader, *to).await, "LeaderMoved")
            }
            _ => return Ok(()),
        };
        match changed {
            Ok(()) => {
                let message = status::reason(step).map(|(_, message)| message);
                let message = message.unwrap_or_default();
                self.cx
                    .event(self.cluster, EventKind::Normal, reason, message);
                Ok(())
            }
            Err(EtcdError::Refused { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the server has the claim of a member that the cache does not have.
    async fn data_is_back(&self, id: u64) -> Result<bool> {
        let quorum = self.seen.observed.quorum.as_ref();
        let members = quorum.into_iter().flat_map(|quorum| &quorum.members);
        let Some(member) = members.into_iter().find(|member| member.id == id) else {
            return Ok(true);
        };
        let key = self
            .cx
            .key()
            .sibling(&Names::of(self.cluster).claim(&member.name));
        let claim = self
            .cx
            .client()
            .live()
            .get::<PersistentVolumeClaim>(&key)
            .await?;
        let usable = claim.is_some_and(|claim| {
            let phase = claim
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            claim.metadata.deletion_timestamp.is_none() && phase != Some("Lost")
        });
        Ok(usable)
    }

    async fn delete_pod(&self, name: &str) -> Result {
        let Some(pod) = self.seen.pods.get(name) else {
            return Ok(());
        };
        let deleted = self.cx.client().delete(&**pod, Delete::background()).await;
        deleted.ignore_not_found()?;
        let message = format!("deleted the pod {name}");
        self.cx
            .event(self.cluster, EventKind::Normal, "PodDeleted", message);
        Ok(())
    }

    /// Deletes the claim of a member that was removed, and its certificate.
    async fn delete_claim(&self, name: &str) -> Result {
        let client = self.cx.client();
        if let Some(claim) = self.seen.claims.get(name) {
            let deleted = client.delete(&**claim, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        let key = self
            .cx
            .key()
            .sibling(&Names::of(self.cluster).certificate(name));
        if let Some(secret) = client.get::<Secret>(&key).await?
            && is_controlled_by(self.cluster, &*secret)
        {
            let deleted = client.delete(&*secret, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        Ok(())
    }
}
