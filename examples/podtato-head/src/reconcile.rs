//! The reconciler: sees, asks the plan, reports, acts.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kubewright::prelude::*;

use crate::api::PodtatoHeadApp;
use crate::desired;
use crate::part::Part;
use crate::plan::{Figure, Plan, Progress, Seen, plan};
use crate::report;

/// Keeps the parts of each PodtatoHeadApp.
#[derive(Debug)]
pub struct PodtatoHeads;

/// The controller of PodtatoHeadApps. Everything that it waits for belongs to one, so that the next change of it leads to
/// another run.
#[kubewright::controller]
pub fn controller() -> Controller {
    Controller::of::<PodtatoHeadApp>("podtato-head")
        .owns::<Deployment>()
        .owns::<Service>()
        .reconciler(PodtatoHeads)
}

impl Reconciler<PodtatoHeadApp> for PodtatoHeads {
    async fn reconcile(&self, app: Arc<PodtatoHeadApp>, cx: &Context) -> Result<Outcome> {
        if app.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        let figure = see(&app, cx).await?;
        let status = app.status.clone().unwrap_or_default();
        let plan = plan(&app.spec, &status, &figure);
        // A rollback is decided once: it has to be on record before the first part shows it.
        report::write(&app, &plan, &figure, cx).await?;
        act(&app, &plan, &figure, cx).await?;
        Ok(Outcome::done())
    }
}

/// The parts as they are.
async fn see(app: &PodtatoHeadApp, cx: &Context) -> Result<Figure> {
    let mut figure = Figure::new();
    for part in Part::ALL {
        let key = cx.key().sibling(&desired::name(&app.name_any(), part));
        let found = cx.client().get::<Deployment>(&key).await?;
        if let Some(seen) = found.filter(|it| is_controlled_by(app, &**it)) {
            figure.insert(part, seen_of(&seen));
        }
    }
    Ok(figure)
}

fn seen_of(deployment: &Deployment) -> Seen {
    let template = deployment.spec.template.spec.as_ref();
    let container = template.and_then(|pod| pod.containers.first());
    let image = container.and_then(|container| container.image.clone());
    Seen {
        version: deployment.resource_version(),
        image: image.unwrap_or_default(),
        progress: progress(deployment),
    }
}

/// How far a Deployment is, by the rules of `kubectl rollout status`.
fn progress(deployment: &Deployment) -> Progress {
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation != deployment.metadata.generation {
        return Progress::Waiting;
    }
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let is_there = |count: Option<i32>| count.unwrap_or(0) == wanted;
    let all_new = is_there(status.updated_replicas) && is_there(status.replicas);
    if all_new && is_there(status.available_replicas) {
        return Progress::Ready;
    }
    match exceeded(&status) {
        Some(message) => Progress::Failed(message),
        None => Progress::Waiting,
    }
}

/// The message of a Deployment that was not ready by its deadline.
fn exceeded(status: &DeploymentStatus) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    let failed = conditions.find(|condition| {
        condition.type_.as_deref() == Some("Progressing")
            && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
    })?;
    Some(failed.message.clone().unwrap_or_default())
}

/// Makes everything what the plan says. Services come first: pods know the addresses of those that were there before them.
async fn act(app: &PodtatoHeadApp, plan: &Plan, figure: &Figure, cx: &Context) -> Result {
    let name = app.name_any();
    for part in Part::ALL {
        let key = cx.key().sibling(&desired::name(&name, part));
        let fill = |service: &mut Service| desired::service(&name, &app.spec, part, service);
        if part != Part::Entry || plan.expose || is_exposed(&key, cx).await? {
            own(app, cx.client().apply_owned(app, &key, fill).await, cx)?;
        }
    }
    // What a part gets depends on the app, and on what the part was seen to run. After a restart either may be the past, and the
    // cache may catch up meanwhile: a Deployment is changed only in the version that was seen, and its image only for the app as it
    // is. Otherwise a part that is upgraded already would go back.
    let client = cx.client();
    for (part, image) in &plan.images {
        let seen = figure.get(part);
        if seen.is_none_or(|seen| seen.image != *image) {
            client.live().ensure_current(app).await?;
        }
        let key = cx.key().sibling(&desired::name(&name, *part));
        let fill = |it: &mut Deployment| {
            it.metadata.resource_version = seen.and_then(|seen| seen.version.clone());
            desired::deployment(&name, &app.spec, *part, image, it);
        };
        own(app, client.apply_owned(app, &key, fill).await, cx)?;
    }
    Ok(())
}

/// Whether the entry has its Service already. It keeps it: a page with an arm missing is better than none.
async fn is_exposed(key: &Key, cx: &Context) -> Result<bool> {
    Ok(cx.client().get::<Service>(key).await?.is_some())
}

/// Reports an object of somebody else that has the name of a part.
fn own<K>(app: &PodtatoHeadApp, written: Result<K, ClientError>, cx: &Context) -> Result {
    match written {
        Err(error) if error.is_not_owned() => {
            let error = Error::from(error);
            cx.event(app, EventKind::Warning, "NameTaken", error.report());
            Err(error)
        }
        written => Ok(written.map(drop)?),
    }
}
