//! The IPAddresses of Services, and what becomes of ServiceCIDRs (ipallocator.go, repairip.go, servicecidrs_controller.go).
//!
//! In Kubernetes the latter is a controller that waits ten seconds before it lets a range go, because another server may
//! still take addresses from it. Here nobody does from the deletion on, so nobody waits.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::core::Core;
use crate::definitions::{ConditionUpdate, set_condition};
use crate::derived::{
    AddressClaim, Outcome, RANGE_FINALIZER, RangeUse, Task, ip_address, is_ready,
};
use crate::object;
use crate::request::Part;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::Record;
use crate::write::{DeleteOptions, Deleted, WriteRequest};

const GROUP: &str = "networking.k8s.io";

/// The ServiceCIDR of the server's own range.
const OWN: &str = "kubernetes";

const READY: ConditionUpdate<'static> = ConditionUpdate {
    kind: "Ready",
    status: "True",
    reason: "",
    message: "Kubernetes Service CIDR is ready",
};
const TERMINATING: ConditionUpdate<'static> = ConditionUpdate {
    kind: "Ready",
    status: "False",
    reason: "Terminating",
    message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
};

impl Core {
    /// Makes the IPAddress of the Service that has this address now, and takes away one of a Service that has it no more.
    pub(super) async fn reconcile_ip_address(&self, name: &str) -> Result<Outcome, ApiError> {
        let served = self.registry.now().builtin(GROUP, "v1", "ipaddresses");
        let owner = self.derived.addresses.owner(name);
        let Some(record) = served.collection.get(name) else {
            return match owner {
                None => Ok(Outcome::Done),
                Some(service) => self.create_ip_address(&served, name, &service).await,
            };
        };
        let claim = AddressClaim::read(&served.revive(&record)?);
        if !claim.is_managed || owner.is_some_and(|service| service == claim.parent) {
            return Ok(Outcome::Done);
        }
        self.delete_ip_address(&served, &record).await
    }

    async fn delete_ip_address(
        &self,
        served: &Arc<Served>,
        record: &Record,
    ) -> Result<Outcome, ApiError> {
        let request = WriteRequest::by_server(served, record.key(), Part::Whole);
        let only = json!({ "preconditions": { "uid": record.uid() } });
        let options = DeleteOptions::of(&only, std::iter::empty())?;
        match Box::pin(self.delete(&request, &options)).await {
            Ok(Deleted::Gone(..)) => Ok(Outcome::Again),
            // Finalizers of others hold it; it comes here again when it goes.
            Ok(Deleted::Going(_)) => Ok(Outcome::Done),
            Err(error) if is_outrun(&error) => Ok(Outcome::Again),
            Err(error) => Err(error),
        }
    }

    async fn create_ip_address(
        &self,
        served: &Arc<Served>,
        name: &str,
        service: &str,
    ) -> Result<Outcome, ApiError> {
        let request = WriteRequest::by_server(served, name, Part::Whole);
        let created = Box::pin(self.create(&request, ip_address(name, service))).await;
        match created {
            Err(error) if is_outrun(&error) => Ok(Outcome::Again),
            Err(error) => Err(error),
            Ok(_) => Ok(Outcome::Done),
        }
    }

    /// Makes sure that the server's own range is a ServiceCIDR (controlplane/controller/defaultservicecidr).
    pub(crate) fn ensure_service_cidr(&self) {
        self.derived.queue.extend([Task::service_cidr(OWN)]);
    }

    /// Gives a ServiceCIDR its finalizer and says that it is ready, or lets a deleted one go. That of the server itself
    /// comes back.
    pub(super) async fn reconcile_service_cidr(&self, name: &str) -> Result<Outcome, ApiError> {
        let served = self.registry.now().builtin(GROUP, "v1", "servicecidrs");
        if served.collection.get(name).is_none() {
            if name == OWN {
                let request = WriteRequest::by_server(&served, name, Part::Whole);
                let own = own_range(&self.network().cidr());
                Box::pin(self.create(&request, own)).await?;
            }
            return Ok(Outcome::Done);
        }
        let now = self.environment.now_rfc3339();
        let mut outcome = Outcome::Done;
        let change = |old: &Value| {
            let mut new = old.clone();
            outcome = Outcome::Done;
            if !object::is_deleting(old) {
                settle(&mut new, &now);
                return Ok(new);
            }
            // Asked after the object was read: since it is deleted, no address is taken from it.
            match self.derived.addresses.use_of(name) {
                RangeUse::Free => set_finalizer(&mut new, Finalizer::Absent),
                RangeUse::Stored => set_condition(&mut new["status"], &now, &TERMINATING),
                // Whether a write that is under way succeeds is not known yet.
                RangeUse::Reserved => outcome = Outcome::Failed,
            }
            Ok(new)
        };
        let request = WriteRequest::by_server(&served, name, Part::Own("status"));
        match Box::pin(self.update(&request, change)).await {
            Err(error) if error.code() != StatusCode::NOT_FOUND => Err(error),
            _ => Ok(outcome),
        }
    }
}

/// Whether somebody else was faster.
fn is_outrun(error: &ApiError) -> bool {
    [StatusCode::CONFLICT, StatusCode::NOT_FOUND].contains(&error.code())
}

fn own_range(cidr: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": { "name": OWN, "finalizers": [RANGE_FINALIZER] }, "spec": { "cidrs": [cidr] },
    })
}

fn settle(range: &mut Value, now: &str) {
    set_finalizer(range, Finalizer::Present);
    if is_ready(range) != Some(true) {
        set_condition(&mut range["status"], now, &READY);
    }
}

/// Whether a range has the finalizer of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finalizer {
    Present,
    Absent,
}

fn set_finalizer(range: &mut Value, wanted: Finalizer) {
    let present = object::finalizers(range);
    let mut finalizers: Vec<String> = present.into_iter().map(str::to_owned).collect();
    let is_own = |finalizer: &String| finalizer == RANGE_FINALIZER;
    match wanted {
        Finalizer::Present if finalizers.iter().any(is_own) => return,
        Finalizer::Present => finalizers.push(RANGE_FINALIZER.to_owned()),
        Finalizer::Absent => finalizers.retain(|finalizer| !is_own(finalizer)),
    }
    object::set_finalizers(range, finalizers);
}
