//! Addresses of load balancers, where the cluster has a range for them: what a cloud's service controller does, without a
//! cloud. Each Service of the type `LoadBalancer` gets one address and keeps it; one with a class is left to that.
//!
//! Deliberately absent: the finalizer `service.kubernetes.io/load-balancer-cleanup`. Nothing has to be cleaned up.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use kubewright_proxy::Ipv4Range;
use kubewright_proxy::load_balancers::{Assignment, addresses, assign, status};
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{Context, Controller, Error, Outcome, Query, Reconciler, Watch};

use crate::pods::adopt::key;
use crate::writes::report;

/// Gives load balancers addresses of a range. One at a time, so that no address is given twice.
pub(crate) fn controller(range: Ipv4Range) -> Controller {
    Controller::of::<Service>("service-lb-controller")
        .watches(Watch::of::<Service>().map(waiting))
        .reconciler(LoadBalancers { range })
}

/// When a Service changes or goes, its address may be free for another that waits for one.
fn waiting(_: &Service, client: &kubewright_runtime::Client) -> Vec<kubewright_runtime::Key> {
    let waits = |service: &&Arc<Service>| {
        let spec = service.spec.as_ref();
        let kind = spec.and_then(|spec| spec.type_.as_deref());
        kind == Some("LoadBalancer") && addresses(service).next().is_none()
    };
    let services = client.reader::<Service>().list();
    let keys = services.iter().filter(waits).map(|s| key(&s.metadata));
    keys.collect()
}

struct LoadBalancers {
    range: Ipv4Range,
}

impl Reconciler<Service> for LoadBalancers {
    async fn reconcile(&self, service: Arc<Service>, cx: &Context) -> Result<Outcome, Error> {
        let services: Vec<Arc<Service>> = cx.client().list(Query::all()).await?;
        let uid = &service.metadata.uid;
        let others = services.iter().filter(|other| other.metadata.uid != *uid);
        let taken = others.flat_map(|other| addresses(other)).collect();
        let (address, doing, done) = match assign(&service, self.range, &taken) {
            Assignment::Keep => return Ok(Outcome::done()),
            Assignment::Give(address) => (Some(address), "Ensuring", "Ensured"),
            Assignment::TakeBack => (None, "Deleting", "Deleted"),
            _ => {
                let text = format!(
                    "Error syncing load balancer: no address of {} is free",
                    self.range
                );
                cx.event(
                    &*service,
                    EventKind::Warning,
                    "SyncLoadBalancerFailed",
                    text,
                );
                return Ok(Outcome::done());
            }
        };
        let tell = |what: &str| {
            let (reason, text) = (
                format!("{what}LoadBalancer"),
                format!("{what} load balancer"),
            );
            cx.event(&*service, EventKind::Normal, &reason, text);
        };
        tell(doing);
        report(cx.client(), &*service, |service| {
            let own = service.status.get_or_insert_default();
            own.load_balancer = Some(status(address));
        })
        .await?;
        tell(done);
        Ok(Outcome::done())
    }
}
