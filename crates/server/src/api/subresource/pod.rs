//! Parts of pods: binding to a node, eviction, containers added and resources changed while running.

use http::StatusCode;
use kubewright_schema::catalog::Verb;
use kubewright_schema::{Table, TypeId};
use serde_json::{Value, json};

use super::budget::spend_budget;
use crate::api::call::Call;
use crate::api::delete;
use crate::api::patch::Patch;
use crate::http::query::{Persist, WriteOptions};
use crate::http::respond::{self, Answer};
use crate::kinds::{self, value};
use crate::object;
use crate::request::Part;
use crate::status::ApiError;
use crate::write::WriteRequest;

/// Puts a pod on a node.
pub(crate) async fn bind(call: &Call, body: &[u8]) -> Result<Answer, ApiError> {
    let options = WriteOptions::read(&call.query, "CreateOptions")?;
    let binding = read(call, body, "io.k8s.api.core.v1.Binding")?;
    check_name(call, &binding, "Binding")?;
    let binding = call
        .admit_posted("binding", binding, options.persist)
        .await?;
    let node = binding["target"]["name"].as_str().unwrap_or("").to_owned();
    let kind = binding["target"]["kind"].as_str().unwrap_or("Node");
    if node.is_empty() || kind != "Node" {
        return Err(ApiError::bad_request(
            "a pod is bound to a target of kind Node with a name",
        ));
    }
    let now = call.core.environment.now_rfc3339();
    let (about, name) = (call.served.about(), &call.name);
    let change = |old: &Value| {
        let bound = old["spec"]["nodeName"].as_str().filter(|n| !n.is_empty());
        if object::is_deleting(old) {
            return Err(ApiError::conflict(
                about,
                name,
                &format!("pod {name} is being deleted, cannot be assigned to a host"),
            ));
        }
        if let Some(bound) = bound {
            let why = format!("pod {name} is already assigned to node {bound:?}");
            return Err(ApiError::conflict(about, name, &why));
        }
        let mut new = old.clone();
        new["spec"]["nodeName"] = json!(node);
        set_scheduled(&mut new, &now);
        // Where it was to be is of no interest any more.
        if let Some(status) = new["status"].as_object_mut() {
            status.remove("nominatedNodeName");
        }
        Ok(new)
    };
    let request = call.write_request(options.persist, Part::Own("binding"));
    let request = request.with_managers_as_given().admitted();
    call.core.update(&request, change).await?;
    Ok(created(call))
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let condition = json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now });
    put_condition(pod, condition);
}

/// Puts a condition in the place of the one of its type.
fn put_condition(pod: &mut Value, condition: Value) {
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    if let Some(conditions) = pod["status"]["conditions"].as_array_mut() {
        conditions.retain(|c| c["type"] != condition["type"]);
        conditions.push(condition);
    }
}

/// Deletes a pod if the budgets that cover it allow.
pub(crate) async fn evict(call: &Call, body: &[u8]) -> Result<Answer, ApiError> {
    let eviction = read(call, body, "io.k8s.api.policy.v1.Eviction")?;
    check_name(call, &eviction, "Eviction")?;
    let record = call
        .served
        .collection
        .get(&call.key())
        .ok_or_else(|| call.not_found())?;
    let pod = call.served.revive(&record)?;
    let mut persist = WriteOptions::read(&call.query, "CreateOptions")?.persist;
    // kubectl drain says it in the options of the delete alone (eviction.go: `propagateDryRun`).
    if !value::is_empty(&eviction["deleteOptions"]["dryRun"]) {
        persist = Persist::DryRun;
    }
    let eviction = call.admit_posted("eviction", eviction, persist).await?;
    let phase = pod["status"]["phase"].as_str().unwrap_or("");
    let unguarded =
        matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_deleting(&pod);
    if !unguarded {
        spend_budget(call, &pod, persist).await?;
    }
    // A delete that goes by the version that was looked at would not find it any more.
    let conditions = &eviction["deleteOptions"]["preconditions"];
    let uid = value::text(&conditions["uid"]);
    let is_meant = uid.is_empty() || uid == object::uid(&pod);
    if persist == Persist::Store && is_meant && conditions["resourceVersion"].is_null() {
        mark_disrupted(call).await?;
    }
    delete::delete_by(call, &eviction["deleteOptions"]).await?;
    Ok(created(call))
}

/// What is posted to a part of a pod is about that pod.
fn check_name(call: &Call, object: &Value, kind: &str) -> Result<(), ApiError> {
    if object::name(object) != call.name {
        return Err(ApiError::bad_request(format!(
            "name in URL does not match name in {kind} object"
        )));
    }
    let namespace = object::meta_str(object, "namespace");
    if !namespace.is_empty() && Some(namespace) != call.namespace.as_deref() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Tells controllers that the pod's end is not its own doing (eviction.go: `addConditionAndDeletePod`).
async fn mark_disrupted(call: &Call) -> Result<(), ApiError> {
    let now = call.core.environment.now_rfc3339();
    let change = |old: &Value| {
        let mut new = old.clone();
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
        });
        put_condition(&mut new, condition);
        Ok(new)
    };
    let request = WriteRequest::by_server(&call.served, &call.key(), Part::Own(""));
    let request = request.with_managers_as_given();
    call.core.update(&request, change).await?;
    Ok(())
}

/// Parts of an object that the main path does not let change: each through its own path, and nothing else with it.
pub(crate) async fn restricted(
    call: &Call,
    verb: Verb,
    part: &'static str,
    body: &[u8],
) -> Result<Answer, ApiError> {
    if verb == Verb::Get {
        return crate::api::get::get(call).await;
    }
    let options_kind = if verb == Verb::Patch {
        "PatchOptions"
    } else {
        "UpdateOptions"
    };
    let options = WriteOptions::read(&call.query, options_kind)?;
    let source = if verb == Verb::Patch {
        Source::Patch(Patch::read(call, body, options.field_validation)?)
    } else {
        let incoming = call.served.decode(body, call.body_format()?)?;
        call.strict(incoming.strict, options.field_validation)?;
        Source::Object(incoming.object)
    };
    let now = call.core.environment.now_rfc3339();
    let served = &call.served;
    let change = |old: &Value| {
        let mut wanted = match &source {
            Source::Object(object) => object.clone(),
            Source::Patch(patch) => {
                let (made, complaints) = patch.apply(served, old)?;
                call.warnings.extend(complaints);
                made
            }
        };
        served.default(&mut wanted);
        let mut new = old.clone();
        new["metadata"]["resourceVersion"] = wanted["metadata"]["resourceVersion"].clone();
        take_part(part, &mut new, &wanted);
        if part == "approval" {
            kinds::certificates::date_conditions(&mut new, old, &now);
        }
        if part == "ephemeralcontainers" {
            let errors = kinds::pod::validate_ephemeral_containers(&new, old);
            if !errors.is_empty() {
                return Err(ApiError::invalid(
                    served.about_kind(),
                    object::name(old),
                    &errors,
                ));
            }
        }
        let counted = object::generation(old);
        if part != "approval" && counted > 0 && new["spec"] != old["spec"] {
            object::set_meta(&mut new, "generation", counted + 1);
        }
        Ok(new)
    };
    let request = call.write_request(options.persist, Part::Own(part));
    let written = call.core.update(&request, change).await?;
    call.answer_written(StatusCode::OK, &written).await
}

enum Source {
    Object(Value),
    Patch(Patch),
}

fn take_part(part: &str, new: &mut Value, wanted: &Value) {
    match part {
        "approval" => new["status"]["conditions"] = wanted["status"]["conditions"].clone(),
        "ephemeralcontainers" => {
            new["spec"]["ephemeralContainers"] = wanted["spec"]["ephemeralContainers"].clone()
        }
        _ => {
            for list in ["containers", "initContainers"] {
                let Some(containers) = new["spec"][list].as_array_mut() else {
                    continue;
                };
                for container in containers {
                    let same = |c: &&Value| c["name"] == container["name"];
                    let Some(found) = wanted["spec"][list]
                        .as_array()
                        .and_then(|l| l.iter().find(same))
                    else {
                        continue;
                    };
                    for field in ["resources", "resizePolicy"] {
                        if !found[field].is_null() {
                            container[field] = found[field].clone();
                        }
                    }
                }
            }
        }
    }
}

/// Reads a body of a kind that is not the resource's own.
fn read(call: &Call, bytes: &[u8], ty: &str) -> Result<Value, ApiError> {
    let table = Table::builtin();
    let ty: TypeId = table
        .named(ty)
        .ok_or_else(|| ApiError::internal(format!("{ty} is not in the type table")))?;
    let decoded = call
        .body_format()?
        .decode(table, ty, bytes)
        .map_err(|e| ApiError::bad_request(e.to_string()))?;
    Ok(decoded.value)
}

fn created(call: &Call) -> Answer {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    respond::typed(
        StatusCode::CREATED,
        call.accept.format,
        respond::STATUS,
        &status,
    )
}
