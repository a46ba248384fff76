//! The environment of a container, and what is missing for it.
//!
//! Mirrors `Kubelet.makeEnvironmentVariables`, with its texts: what is missing here is a `CreateContainerConfigError`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod, Service};

use super::downward::{self, Place};
use super::sources::Sources;

/// Something that a container refers to is not there; the text is the kubelet's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConfigError(pub(crate) String);

/// Whether an environment can fail: most have nothing but texts.
pub(crate) fn has_references(container: &Container) -> bool {
    let from = |source: &EnvVarSource| {
        source.config_map_key_ref.is_some() || source.secret_key_ref.is_some()
    };
    let mut variables = container.env.iter().flatten();
    container
        .env_from
        .as_ref()
        .is_some_and(|list| !list.is_empty())
        || variables.any(|variable| variable.value_from.as_ref().is_some_and(from))
}

/// The environment in its order: what services give, what whole ConfigMaps and Secrets give, and what is set one by one.
///
/// # Errors
/// What is missing.
pub(crate) fn environment(
    pod: &Pod,
    container: &Container,
    place: &Place,
    sources: &dyn Sources,
) -> Result<Vec<(String, String)>, ConfigError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links) != Some(false);
    let services = service_variables(namespace, links, sources);
    let mut known = from_whole_objects(namespace, container, sources)?;
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(text), _) if !text.is_empty() => expand(text, &known, &services),
            (_, Some(source)) => match resolve(source, pod, (container, place), sources)? {
                Some(value) => value,
                None => continue,
            },
            _ => String::new(),
        };
        known.insert(variable.name.clone(), value);
    }
    let mut all = services;
    all.extend(known);
    Ok(all.into_iter().collect())
}

fn from_whole_objects(
    namespace: &str,
    container: &Container,
    sources: &dyn Sources,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut known = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or("");
        if let Some(reference) = &from.config_map_ref {
            let found = sources.config_map(namespace, &reference.name);
            match found {
                Some(map) => {
                    let data = map.data.iter().flatten();
                    known.extend(data.map(|(k, v)| (format!("{prefix}{k}"), v.clone())));
                }
                None if reference.optional == Some(true) => {}
                None => return Err(missing("configmap", &reference.name)),
            }
        } else if let Some(reference) = &from.secret_ref {
            match sources.secret(namespace, &reference.name) {
                Some(secret) => {
                    let data = secret.data.iter().flatten();
                    known.extend(data.map(|(k, v)| {
                        let value = String::from_utf8_lossy(&v.0).into_owned();
                        (format!("{prefix}{k}"), value)
                    }));
                }
                None if reference.optional == Some(true) => {}
                None => return Err(missing("secret", &reference.name)),
            }
        }
    }
    Ok(known)
}

pub(crate) fn missing(kind: &str, name: &str) -> ConfigError {
    ConfigError(format!("{kind} {name:?} not found"))
}

/// The value from a source; nothing when it is optional and not there.
fn resolve(
    source: &EnvVarSource,
    pod: &Pod,
    (container, place): (&Container, &Place),
    sources: &dyn Sources,
) -> Result<Option<String>, ConfigError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    if let Some(selector) = &source.field_ref {
        return match downward::field(selector, pod, place) {
            Some(value) => Ok(Some(value)),
            None => Err(ConfigError(format!(
                "unsupported fieldPath: {}",
                selector.field_path
            ))),
        };
    }
    if let Some(selector) = &source.resource_field_ref {
        return Ok(downward::resource(selector, container, place));
    }
    if let Some(selector) = &source.config_map_key_ref {
        let (name, key) = (&selector.name, &selector.key);
        let optional = selector.optional == Some(true);
        let Some(map) = sources.config_map(namespace, name) else {
            return if optional {
                Ok(None)
            } else {
                Err(missing("configmap", name))
            };
        };
        let value = map.data.as_ref().and_then(|data| data.get(key));
        return match value {
            Some(value) => Ok(Some(value.clone())),
            None if optional => Ok(None),
            None => Err(ConfigError(format!(
                "couldn't find key {key} in ConfigMap {namespace}/{name}"
            ))),
        };
    }
    if let Some(selector) = &source.secret_key_ref {
        let (name, key) = (&selector.name, &selector.key);
        let optional = selector.optional == Some(true);
        let Some(secret) = sources.secret(namespace, name) else {
            return if optional {
                Ok(None)
            } else {
                Err(missing("secret", name))
            };
        };
        let value = secret.data.as_ref().and_then(|data| data.get(key));
        return match value {
            Some(value) => Ok(Some(String::from_utf8_lossy(&value.0).into_owned())),
            None if optional => Ok(None),
            None => Err(ConfigError(format!(
                "couldn't find key {key} in Secret {namespace}/{name}"
            ))),
        };
    }
    Ok(Some(String::new()))
}

/// Replaces `$(NAME)` by what is known of it; `$$` is a dollar, and what is not known stays.
///
/// Mirrors `expansion.Expand`.
pub fn expand(
    text: &str,
    known: &BTreeMap<String, String>,
    services: &BTreeMap<String, String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let reference = rest
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'));
        match reference {
            Some((name, after)) => {
                match known.get(name).or_else(|| services.get(name)) {
                    Some(value) => out.push_str(value),
                    None => out.push_str(&format!("$({name})")),
                }
                rest = after;
            }
            None => out.push('$'),
        }
    }
    out + rest
}

/// The variables that Services give: those of `default/kubernetes` always, those of the namespace if it wants links.
///
/// Mirrors `Kubelet.getServiceEnvVarMap` and `envvars.FromServices`.
fn service_variables(
    namespace: &str,
    links: bool,
    sources: &dyn Sources,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let master = sources.services("default");
    let master = master
        .iter()
        .filter(|s| s.metadata.name.as_deref() == Some("kubernetes"));
    let own = if links {
        sources.services(namespace)
    } else {
        Vec::new()
    };
    for service in own.iter().chain(master) {
        add_service(&mut variables, service);
    }
    variables
}

fn add_service(variables: &mut BTreeMap<String, String>, service: &Service) {
    let Some(spec) = &service.spec else {
        return;
    };
    let address = spec.cluster_ip.as_deref().unwrap_or("");
    let ports = spec.ports.as_deref().unwrap_or_default();
    let (Some(first), false) = (ports.first(), matches!(address, "" | "None")) else {
        return;
    };
    let upper = |text: &str| text.replace('-', "_").to_uppercase();
    let name = upper(service.metadata.name.as_deref().unwrap_or(""));
    variables.insert(format!("{name}_SERVICE_HOST"), address.to_owned());
    variables.insert(format!("{name}_SERVICE_PORT"), first.port.to_string());
    for port in ports {
        let number = port.port;
        if let Some(named) = port.name.as_deref().filter(|named| !named.is_empty()) {
            let key = format!("{name}_SERVICE_PORT_{}", upper(named));
            variables.insert(key, number.to_string());
        }
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let lower = protocol.to_lowercase();
        let prefix = format!("{name}_PORT_{number}_{protocol}");
        let url = format!("{lower}://{address}:{number}");
        if port == first {
            variables.insert(format!("{name}_PORT"), url.clone());
        }
        variables.insert(prefix.clone(), url);
        variables.insert(format!("{prefix}_PROTO"), lower);
        variables.insert(format!("{prefix}_PORT"), number.to_string());
        variables.insert(format!("{prefix}_ADDR"), address.to_owned());
    }
}
