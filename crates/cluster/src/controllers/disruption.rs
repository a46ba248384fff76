//! Disruption budgets: how many pods may be evicted at this moment, for the server to spend.

mod budget;
mod scale;
mod stale;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{
    Client, Context, Controller, Error, Key, Outcome, Predicate, Reconciler, Selector, Watch,
};

use budget::{Expected, assess, fail, needs_scale};

use crate::pods::selected::candidates;
use crate::pods::selecting::selecting;
use crate::writes::report;

/// Keeps the status of disruption budgets.
pub(crate) fn controller() -> Controller {
    Controller::of::<PodDisruptionBudget>("disruption")
        .watches(Watch::of::<Pod>().map(covering))
        .reconciler(Budgets)
}

/// Takes back `DisruptionTarget` from pods that were not deleted after all.
pub(crate) fn stale_controller() -> Controller {
    Controller::of::<Pod>("stale-pod-disruption")
        .when(Predicate::value(|pod: &Pod| stale::since(pod).is_some()))
        .reconciler(Stale)
}

struct Stale;

impl Reconciler<Pod> for Stale {
    async fn reconcile(&self, pod: Arc<Pod>, cx: &Context) -> Result<Outcome, Error> {
        let Some(since) = stale::since(&pod) else {
            return Ok(Outcome::done());
        };
        let age = Duration::try_from(cx.now().duration_since(since)).unwrap_or_default();
        if let Some(wait) = stale::TIMEOUT
            .checked_sub(age)
            .filter(|wait| !wait.is_zero())
        {
            return Ok(Outcome::requeue_after(wait));
        }
        report(cx.client(), &*pod, |pod| stale::reset(pod, cx.now())).await?;
        Ok(Outcome::done())
    }
}

struct Budgets;

impl Reconciler<PodDisruptionBudget> for Budgets {
    async fn reconcile(
        &self,
        budget: Arc<PodDisruptionBudget>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        match account(&budget, cx).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                // The server must not allow what nobody has counted.
                let mut closed = (*budget).clone();
                fail(&mut closed, &error.report(), cx.now());
                report(cx.client(), &*budget, |budget| *budget = closed).await?;
                Err(error)
            }
        }
    }
}

async fn account(budget: &PodDisruptionBudget, cx: &Context) -> Result<Outcome, Error> {
    let namespace = cx.key().namespace().unwrap_or_default();
    let labels = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let labels = labels.and_then(|selector| selector.match_labels.clone());
    let pods = candidates(cx.client(), namespace, &labels.unwrap_or_default()).await?;
    let selector = selector(budget)?;
    let pods: Vec<Arc<Pod>> = pods
        .into_iter()
        .filter(|pod| selector.as_ref().is_some_and(|s| s.matches(pod.labels())))
        .collect();
    if pods.is_empty() {
        cx.event(
            budget,
            EventKind::Normal,
            "NoPods",
            "No matching pods found",
        );
    }
    let expected = expected(budget, &pods, cx).await?;
    let mut assessed = budget.clone();
    let again = assess(&mut assessed, &pods, expected, cx.now())?;
    // The server spends from what is written here: whoever was faster is not overwritten.
    if assessed.status != budget.status {
        cx.client().update_status(&assessed).await?;
    }
    Ok(again.map_or_else(Outcome::done, Outcome::requeue_after))
}

async fn expected(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    cx: &Context,
) -> Result<Expected, Error> {
    if !needs_scale(budget) {
        return Ok(Expected::Counted);
    }
    match scale::expected(cx.client(), pods).await {
        Ok((scale, unmanaged)) => {
            if !unmanaged.is_empty() {
                let selector = serde_json::to_string(&budget.spec.as_ref().map(|s| &s.selector));
                let selector = selector.unwrap_or_default();
                cx.event(budget, EventKind::Warning, "UnmanagedPods", format_args!(
                    "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, \
                     the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account \
                     for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
                ));
            }
            Ok(Expected::Scale(scale))
        }
        Err(error) => {
            let text = format!("Failed to calculate the number of expected pods: {error}");
            cx.event(
                budget,
                EventKind::Warning,
                "CalculateExpectedPodCountFailed",
                text,
            );
            Err(error)
        }
    }
}

/// The pods that a budget covers; none without a selector, all of the namespace with an empty one.
fn selector(budget: &PodDisruptionBudget) -> Result<Option<Selector>, Error> {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let selector = selector.map(Selector::try_from).transpose();
    selector.map_err(Error::from)
}

/// The budgets that cover a pod.
fn covering(pod: &Pod, client: &Client) -> Vec<Key> {
    let namespace = pod.namespace().unwrap_or_default();
    let there = selecting::<PodDisruptionBudget>(client, pod, |budget| {
        let selector = budget.spec.as_ref()?.selector.as_ref()?;
        selector.match_labels.as_ref()
    });
    let covers = |budget: &&Arc<PodDisruptionBudget>| {
        let selector = selector(budget).ok().flatten();
        selector.is_some_and(|selector| selector.matches(pod.labels()))
    };
    let found = there.iter().filter(covers);
    let mut keys: Vec<Key> = found.map(|b| Key::new(&namespace, &b.name_any())).collect();
    keys.sort();
    keys
}
