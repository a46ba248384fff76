//! What happens around a write whoever asks for it: Services get addresses, definitions come to life, some namespaces
//! stay. Unlike plugins it cannot be switched off and holds for the server's own writes too.

use std::sync::Arc;

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use crate::access::follow;
use crate::allocate::{Claims, Refusal};
use crate::api::write::Part;
use crate::core::Core;
use crate::definitions;
use crate::kinds::service;
use crate::object;
use crate::resource::Served;
use crate::status::{About, ApiError};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

const NAMESPACES: About<'static> = About {
    group: "",
    resource: "namespaces",
};

/// Refuses new objects of a kind that is going away.
pub(crate) fn kind_accepts(served: &Served, name: &str) -> Result<(), ApiError> {
    if served.custom().is_some_and(|custom| custom.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(served.about(), name, why));
    }
    Ok(())
}

/// Gives a new object what only the server can give.
pub(crate) fn before_create(
    core: &Core,
    served: &Served,
    value: &mut Value,
) -> Result<Claims, ApiError> {
    let mut claims = core.addresses.claims();
    if is_definition(served) {
        definitions::prepare_create(value);
    } else if follow::is_policy(served) {
        follow::aggregate(core, served, value);
    } else if served.is("", "Service") {
        allocate(core, served, value, None, &mut claims)?;
    }
    Ok(claims)
}

/// Gives an updated object what only the server can give.
pub(crate) fn before_update(
    core: &Core,
    served: &Served,
    new: &mut Value,
    old: &Value,
    part: Part,
) -> Result<Claims, ApiError> {
    let mut claims = core.addresses.claims();
    if part != Part::Whole {
        return Ok(claims);
    }
    if is_definition(served) {
        kubewright_schema::crd::default_definition(new);
        kubewright_schema::crd::carry_status(new, old);
    } else if follow::is_policy(served) {
        follow::aggregate(core, served, new);
    } else if served.is("", "Service") {
        allocate(core, served, new, Some(old), &mut claims)?;
    }
    Ok(claims)
}

/// Checks of new objects that need more than the object's kind.
pub(crate) fn validate_create(served: &Served, value: &Value, errors: &mut Vec<FieldError>) {
    if is_definition(served) {
        definitions::validate(value, None, errors);
    }
}

/// Checks of updated objects that need more than the object's kind.
pub(crate) fn validate_update(
    served: &Served,
    new: &Value,
    old: &Value,
    part: Part,
    errors: &mut Vec<FieldError>,
) {
    if is_definition(served) && part == Part::Whole {
        definitions::validate(new, Some(old), errors);
    }
}

/// Some namespaces stay.
pub(crate) fn before_delete(served: &Served, name: &str) -> Result<(), ApiError> {
    if served.is("", "Namespace") && IMMORTAL.contains(&name) {
        return Err(ApiError::forbidden(
            NAMESPACES,
            name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

/// What a delete does to an object besides marking it.
pub(crate) fn mark_deleted(served: &Served, value: &mut Value, now: &str) {
    if is_definition(served) {
        definitions::mark_terminating(value, now);
    }
}

/// Whether a write of this resource changes more than its object.
pub(crate) fn has_consequences(served: &Served) -> bool {
    is_definition(served)
        || follow::is_policy(served)
        || served.is("", "Service")
        || served.custom().is_some_and(|custom| custom.terminating)
}

/// What follows from a write that has happened.
pub(crate) async fn after_write(
    core: &Core,
    served: &Arc<Served>,
    key: &str,
) -> Result<(), ApiError> {
    if is_definition(served) {
        core.settle_definition(key).await?;
    } else if follow::is_policy(served) {
        core.follow_policy(served, key).await?;
    }
    Ok(())
}

/// What follows from a removal that has happened.
pub(crate) async fn after_delete(
    core: &Core,
    served: &Arc<Served>,
    last: &Value,
) -> Result<(), ApiError> {
    if served.is("", "Service") {
        let (address, ports) = used(last);
        core.addresses.release(&address, &ports);
    }
    if served.custom().is_some_and(|custom| custom.terminating) {
        let definition = format!("{}.{}", served.resource.plural, served.resource.group);
        Box::pin(core.settle_definition(&definition)).await?;
    }
    Ok(())
}

fn is_definition(served: &Served) -> bool {
    served.is("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// The address and node ports that a Service uses.
pub(crate) fn used(object: &Value) -> (String, Vec<u16>) {
    let address = service::cluster_ip(object).unwrap_or("").to_owned();
    let mut ports = service::node_ports(object);
    ports.sort_unstable();
    // A port may serve TCP and UDP under one number.
    ports.dedup();
    (address, ports)
}

/// Takes the address and node ports that a Service needs and does not have.
fn allocate(
    core: &Core,
    served: &Served,
    value: &mut Value,
    old: Option<&Value>,
    claims: &mut Claims,
) -> Result<(), ApiError> {
    let (old_address, old_ports) = old.map(used).unwrap_or_default();
    let invalid = |field: &str, value: Value, why: &str| {
        ApiError::invalid(
            served.about_kind(),
            object::name(&value),
            &[FieldError::invalid(field, &value, why)],
        )
    };
    if service::needs_cluster_ip(value) {
        let address = claims
            .address(&core.environment)
            .ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))?;
        service::set_cluster_ip(value, &address);
    } else {
        let (address, _) = used(value);
        if !address.is_empty() && address != "None" && address != old_address {
            claims.this_address(&address).map_err(|refusal| {
                let why = match refusal {
                    Refusal::Taken => "failed to allocate IP: provided IP is already allocated",
                    Refusal::OutOfRange => "failed to allocate IP: the provided network does not match the current range",
                };
                invalid("spec.clusterIPs", json!([address]), why)
            })?;
            service::set_cluster_ip(value, &address);
        }
    }
    let (_, given) = used(value);
    for port in given.iter().filter(|p| !old_ports.contains(p)) {
        claims.this_port(*port).map_err(|refusal| {
            let why = match refusal {
                Refusal::Taken => "provided port is already allocated",
                Refusal::OutOfRange => "provided port is not in the valid range. The range of valid ports is 30000-32767",
            };
            invalid("spec.ports[0].nodePort", json!(port), why)
        })?;
    }
    for index in service::node_ports_needed(value) {
        let port = claims
            .port(&core.environment)
            .ok_or_else(|| ApiError::internal("failed to allocate a nodePort: range is full"))?;
        service::set_node_port(value, index, port);
    }
    if service::needs_health_check_node_port(value) {
        let port = claims
            .port(&core.environment)
            .ok_or_else(|| ApiError::internal("failed to allocate a nodePort: range is full"))?;
        service::set_health_check_node_port(value, port);
    }
    Ok(())
}
