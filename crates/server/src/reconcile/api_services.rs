//! APIServices of the groups that definitions add, as kube-aggregator keeps them (`crdregistration_controller.go`): one
//! for each version that is served, gone with the last definition that serves it.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::access::Authorization;
use crate::core::Core;
use crate::object;
use crate::request::Part;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::At;
use crate::write::{DeleteOptions, WriteRequest};

/// Marks the APIServices that come and go with definitions.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

impl Core {
    /// Creates an APIService of a group that the server itself serves, unless there is one of that name.
    pub(crate) async fn ensure_api_service(&self, wanted: Value) -> Result<(), ApiError> {
        let served = self.api_services();
        let name = object::name(&wanted).to_owned();
        if served.collection.get(&name).is_some() {
            return Ok(());
        }
        let request = WriteRequest::by_server(&served, &name, Part::Whole);
        match Box::pin(self.create(&request, wanted)).await {
            Err(error) if error.code() == StatusCode::CONFLICT => return Ok(()),
            created => drop(created?),
        }
        let now = self.environment.now_rfc3339();
        let available = json!({
            "type": "Available", "status": "True", "reason": "Local",
            "message": "Local APIServices are always available", "lastTransitionTime": now,
        });
        let change = |old: &Value| {
            let mut new = old.clone();
            new["status"] = json!({ "conditions": [available] });
            Ok(new)
        };
        let request = WriteRequest::by_server(&served, &name, Part::Status);
        Box::pin(self.update(&request, change)).await?;
        Ok(())
    }

    /// Brings the APIServices of a group that definitions add in line with the versions that are served.
    pub(super) async fn reconcile_api_services(&self, group: &str) -> Result<(), ApiError> {
        if self.access.mode() != Authorization::Rbac {
            return Ok(());
        }
        let resources = self.registry.now();
        let wanted: BTreeSet<String> = resources
            .of_group(group)
            .filter(|(_, all)| all.values().any(|served| served.custom().is_some()))
            .map(|(gv, _)| gv.version.clone())
            .collect();
        for version in &wanted {
            self.ensure_api_service(api_service(group, version)).await?;
        }
        for name in self.outdated_api_services(group, &wanted)? {
            let request = WriteRequest::by_server(&self.api_services(), &name, Part::Whole);
            let options = DeleteOptions::of(&Value::Null, std::iter::empty())?;
            match Box::pin(self.delete(&request, &options)).await {
                Err(error) if error.code() != StatusCode::NOT_FOUND => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The names of APIServices of a group whose versions are not served any more.
    fn outdated_api_services(
        &self,
        group: &str,
        wanted: &BTreeSet<String>,
    ) -> Result<Vec<String>, ApiError> {
        let served = self.api_services();
        let snapshot = served.collection.snapshot(At::Latest);
        let snapshot = snapshot.map_err(ApiError::internal)?;
        let mut outdated = Vec::new();
        for record in snapshot.range("", None) {
            let name = record.name();
            let version = name
                .strip_suffix(group)
                .and_then(|rest| rest.strip_suffix('.'));
            let is_own = record.labels().get(MANAGED) == Some("true");
            if is_own && version.is_some_and(|version| !wanted.contains(version)) {
                outdated.push(name.to_owned());
            }
        }
        Ok(outdated)
    }

    pub(super) fn api_services(&self) -> Arc<Served> {
        let resources = self.registry.now();
        resources.builtin("apiregistration.k8s.io", "v1", "apiservices")
    }
}

fn api_service(group: &str, version: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": format!("{version}.{group}"), "labels": { MANAGED: "true" } },
        "spec": {
            "group": group, "version": version, "groupPriorityMinimum": 1_000, "versionPriority": 100,
        },
    })
}
