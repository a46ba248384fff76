//! Keeps a Deployment for each Memcached, and says in the status how its pods are.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright::k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use kubewright::k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, PodSecurityContext, SeccompProfile,
    SecurityContext,
};
use kubewright::kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::conditions::{Condition, Status};

use crate::api::cache::v1alpha1::memcached::Memcached;

/// The container of the image.
const CONTAINER: &str = "memcached";
/// What runs in it, instead of what the image says.
const COMMAND: &[&str] = &["memcached", "--memory-limit=64", "-v"];
/// The user that runs it.
const USER: i64 = 1001;

/// Runs when a Memcached or its Deployment changes. What it may do follows from that.
#[kubewright::controller]
fn memcached() -> Controller {
    Controller::of::<Memcached>("memcached")
        // The status is not part of a generation: writing it does not lead to another run.
        .when(Predicate::generation_changed())
        .owns::<Deployment>()
        .reconciler(MemcachedReconciler)
}

/// Reconciles each Memcached.
#[derive(Debug)]
struct MemcachedReconciler;

impl Reconciler<Memcached> for MemcachedReconciler {
    async fn reconcile(&self, object: Arc<Memcached>, cx: &Context) -> Result<Outcome> {
        // Its Deployment goes with it: the garbage collector follows the owner reference.
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        // After a start the cache may be behind: a spec of the past would roll the pods back, and forth again.
        cx.client().live().ensure_current(&*object).await?;
        let fill = |deployment: &mut Deployment| fill(deployment, &object);
        let applied = cx.client().apply_owned(&object, cx.key(), fill).await;
        let deployment = match applied {
            Ok(deployment) => deployment,
            Err(error) if error.is_not_owned() => {
                let message = format!("a Deployment {} of somebody else is in the way", cx.key());
                report(&object, &DeploymentStatus::default(), Some(&message), cx).await?;
                return Err(Error::msg(message));
            }
            Err(error) => return Err(error.into()),
        };
        let status = deployment.status.clone().unwrap_or_default();
        let stuck = stuck(&status);
        report(&object, &status, stuck.as_deref(), cx).await?;
        Ok(Outcome::done())
    }
}

/// Fills in what a Memcached asks of its Deployment, and nothing else: other fields are the server's, or somebody else's.
fn fill(deployment: &mut Deployment, object: &Memcached) {
    let labels = BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), CONTAINER.to_owned()),
        ("app.kubernetes.io/instance".to_owned(), object.name_any()),
    ]);
    let spec = &mut deployment.spec;
    spec.replicas = Some(object.spec.replicas);
    spec.selector.match_labels = Some(labels.clone());
    spec.template.metadata.get_or_insert_default().labels = Some(labels);
    let pod = spec.template.spec.get_or_insert_default();
    pod.security_context = Some(PodSecurityContext {
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..SeccompProfile::default()
        }),
        ..PodSecurityContext::default()
    });
    pod.containers = vec![container(object)];
}

/// The container of a pod, with no more rights than a program needs.
fn container(object: &Memcached) -> Container {
    let port = |port| ContainerPort {
        name: Some("main".to_owned()),
        container_port: port,
        ..ContainerPort::default()
    };
    let variable = |(name, value): (&String, &String)| EnvVar {
        name: name.clone(),
        value: Some(value.clone()),
        ..EnvVar::default()
    };
    let config = &object.spec.config;
    Container {
        name: CONTAINER.to_owned(),
        image: Some(object.spec.image.clone()),
        command: Some(COMMAND.iter().map(|word| (*word).to_owned()).collect()),
        ports: object.spec.container_port.map(|number| vec![port(number)]),
        env: (!config.is_empty()).then(|| config.iter().map(variable).collect()),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            run_as_non_root: Some(USER != 0),
            run_as_user: Some(USER),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// Why the pods of a Deployment do not come up, once its own controller has given up.
fn stuck(status: &DeploymentStatus) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|it| it.type_.as_deref() == Some("Progressing"))?;
    let has_failed = condition.status.as_deref() == Some("False");
    condition.message.clone().filter(|_| has_failed)
}

/// Writes into the status how the pods are, and tells of it in an event when they become available or stop being so.
async fn report(
    object: &Memcached,
    pods: &DeploymentStatus,
    in_the_way: Option<&str>,
    cx: &Context,
) -> Result<()> {
    let before = object.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let generation = object.metadata.generation;
    status.observed_generation = generation;
    status.replicas = pods.replicas.unwrap_or_default();
    status.available_replicas = pods.available_replicas.unwrap_or_default();
    let wanted = object.spec.replicas;
    let there = status.available_replicas;
    let message = format!("{there} of {wanted} pods are available");
    let is_available = in_the_way.is_none()
        && there >= wanted
        && pods.updated_replicas.unwrap_or_default() >= wanted;
    let available = if is_available {
        Condition::new("Available", Status::True, "AllAvailable")
    } else {
        Condition::new("Available", Status::False, "NotAvailable")
    };
    let degraded = match in_the_way {
        Some(why) => Condition::new("Degraded", Status::True, "InTheWay").message(why),
        None => Condition::new("Degraded", Status::False, "AsExpected"),
    };
    for condition in [available.message(&message), degraded] {
        let condition = condition.generation(generation);
        conditions::set(&mut status.conditions, cx.now(), condition);
    }
    if status == before {
        return Ok(());
    }
    let was_available = conditions::is_true(&before.conditions, "Available");
    let change = |object: &mut Memcached| object.status = Some(status);
    cx.client().modify_status(object, change).await?;
    match (was_available, is_available) {
        (false, true) => cx.event(object, EventKind::Normal, "Available", &message),
        (true, false) => cx.event(object, EventKind::Warning, "NotAvailable", &message),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
