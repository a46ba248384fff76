//! What happens around a write whoever asks for it: Services get addresses, definitions come to life, some namespaces
//! stay. Unlike plugins it cannot be switched off and holds for the server's own writes too.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::WriteRequest;
use crate::access::follow;
use crate::core::Core;
use crate::definitions;
use crate::derived::{Refusal, Reservation};
use crate::kinds::{discovery, service};
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
pub(super) fn kind_accepts(served: &Served, name: &str) -> Result<(), ApiError> {
    if served.is_terminating() {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(served.about(), name, why));
    }
    Ok(())
}

/// Gives a new object what only the server can give.
pub(super) fn before_create(
    core: &Core,
    served: &Served,
    value: &mut Value,
) -> Result<Reservation, ApiError> {
    let mut reservation = core.derived.addresses.reservation();
    if is_definition(served) {
        definitions::prepare_create(value);
    } else if follow::is_policy(served) {
        follow::aggregate(&core.access, served, value);
    } else if served.is("", "Service") {
        allocate(core, value, None, &mut reservation)?;
    }
    Ok(reservation)
}

/// Gives an updated object what only the server can give.
pub(super) fn before_update(
    core: &Core,
    request: &WriteRequest,
    new: &mut Value,
    old: &Value,
) -> Result<Reservation, ApiError> {
    let served = &request.served;
    let mut reservation = core.derived.addresses.reservation();
    if !request.part.is_main() {
        return Ok(reservation);
    }
    if is_definition(served) {
        kubewright_schema::crd::default_definition(new);
        kubewright_schema::crd::carry_status(new, old);
    } else if follow::is_policy(served) {
        follow::aggregate(&core.access, served, new);
    } else if served.is("", "Service") {
        allocate(core, new, Some(old), &mut reservation)?;
    }
    Ok(reservation)
}

/// Checks of new objects that need more than the object's kind.
pub(super) fn validate_create(
    core: &Core,
    request: &WriteRequest,
    value: &Value,
    errors: &mut Vec<FieldError>,
) {
    if is_definition(&request.served) {
        definitions::validate(value, None, errors);
    }
    validate_endpoints(core, request, value, None, errors);
}

/// Checks the addresses of endpoints. The server's own may be anything: that is where it listens.
fn validate_endpoints(
    core: &Core,
    request: &WriteRequest,
    new: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let served = &request.served;
    let about = served.is("", "Endpoints") || served.is("discovery.k8s.io", "EndpointSlice");
    if about && request.user().is_some() {
        let loopback = if core.network().is_loopback() {
            discovery::Loopback::Allowed
        } else {
            discovery::Loopback::Refused
        };
        discovery::validate_addresses_are_usable(new, old, loopback, errors);
    }
}

/// Checks of updated objects that need more than the object's kind.
pub(super) fn validate_update(
    core: &Core,
    request: &WriteRequest,
    new: &Value,
    old: &Value,
    errors: &mut Vec<FieldError>,
) {
    if is_definition(&request.served) && request.part.is_main() {
        definitions::validate(new, Some(old), errors);
    }
    validate_endpoints(core, request, new, Some(old), errors);
}

/// Some namespaces stay.
pub(super) fn before_delete(served: &Served, name: &str) -> Result<(), ApiError> {
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
pub(super) fn mark_deleted(served: &Served, value: &mut Value, now: &str) {
    if is_definition(served) {
        definitions::mark_terminating(value, now);
    }
}

fn is_definition(served: &Served) -> bool {
    served.is("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// Reserves the cluster IP and node ports that a Service needs and does not have (`alloc.go: allocateCreate,
/// allocateUpdate`).
fn allocate(
    core: &Core,
    service: &mut Value,
    old: Option<&Value>,
    reservation: &mut Reservation,
) -> Result<(), ApiError> {
    if let Some(old) = old {
        let errors = service::address_errors(service, old);
        if !errors.is_empty() {
            return Err(invalid(service, &errors));
        }
    }
    allocate_address(core, service, old, reservation)?;
    let held = old.map(service::node_ports).unwrap_or_default();
    for (index, port) in service::given_node_ports(service) {
        if held.contains(&port) {
            continue;
        }
        reservation.port(port).map_err(|refusal| {
            let why = match refusal {
                Refusal::Taken => "provided port is already allocated",
                Refusal::OutOfRange => {
                    "provided port is not in the valid range. The range of valid ports is 30000-32767"
                }
            };
            let field = format!("spec.ports[{index}].nodePort");
            invalid(service, &[FieldError::invalid(field, &json!(port), why)])
        })?;
    }
    if let Some(port) = service::health_check_node_port(service).filter(|p| !held.contains(p)) {
        reservation.port(port).map_err(|_| {
            ApiError::internal(format!(
                "failed to allocate requested HealthCheck NodePort {port}: provided port is already allocated"
            ))
        })?;
    }
    let mut any_port = || {
        let port = reservation.any_port(&core.environment);
        port.ok_or_else(|| ApiError::internal("failed to allocate a nodePort: range is full"))
    };
    for index in service::node_ports_needed(service) {
        service::set_node_port(service, index, any_port()?);
    }
    if service::needs_health_check_node_port(service) {
        service::set_health_check_node_port(service, any_port()?);
    }
    Ok(())
}

fn allocate_address(
    core: &Core,
    service: &mut Value,
    old: Option<&Value>,
    reservation: &mut Reservation,
) -> Result<(), ApiError> {
    if service::needs_cluster_ip(service) {
        let address = reservation
            .any_address(&core.environment)
            .ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))?;
        service::set_cluster_ip(service, &address);
        return Ok(());
    }
    let Some(address) = service::cluster_ip(service).map(str::to_owned) else {
        return Ok(());
    };
    if old.and_then(service::cluster_ip) == Some(&address) {
        return Ok(());
    }
    reservation.address(&address).map_err(|refusal| {
        let why = match refusal {
            Refusal::Taken => "provided IP is already allocated",
            Refusal::OutOfRange => "the provided network does not match the current range",
        };
        let why = format!("failed to allocate IP {address}: {why}");
        let error = FieldError::invalid("spec.clusterIPs", &json!([address]), &why);
        invalid(service, &[error])
    })?;
    service::set_cluster_ip(service, &address);
    Ok(())
}

fn invalid(service: &Value, errors: &[FieldError]) -> ApiError {
    let about = About {
        group: "",
        resource: "Service",
    };
    ApiError::invalid(about, object::name(service), errors)
}
