//! From flags to a manager: logs, the cluster, the lease, probes and metrics.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kubewright_runtime::manager::{ManagerError, user_agent};
use kubewright_runtime::serving::{AccessGuard, Listener, Tls};
use kubewright_runtime::sharding::Caches;
use kubewright_runtime::webhook::Webhooks;
use kubewright_runtime::{
    CacheOptions, Client, Environment, Error, LeaseOptions, Manager, ShardingOptions,
};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::certificates;
use super::flags::Flags;
use super::pod;

/// Where a pod finds its own namespace.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Writes logs to standard error, as the flags say.
///
/// # Errors
/// When the level cannot be read.
pub(super) fn log(flags: &Flags) -> Result<(), Error> {
    let from_env = || std::env::var("KUBEWRIGHT_LOG_LEVEL").ok();
    let level = flags.log_level.clone().or_else(from_env);
    let level = level.unwrap_or_else(|| "info".to_owned());
    let targets: Targets = level
        .parse()
        .map_err(|error| Error::msg(format!("--log-level {level}: {error}")))?;
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let registry = tracing_subscriber::registry().with(targets);
    // A program that has a log of its own keeps it.
    let _ = if flags.log_json {
        registry.with(layer.json()).try_init()
    } else {
        registry.with(layer).try_init()
    };
    Ok(())
}

/// A manager as the flags want it, without controllers, and what its webhooks are served with if it makes certificates.
///
/// # Errors
/// When there is no cluster, or an address cannot be listened on.
pub(super) async fn manager(
    (name, version): (&str, &str),
    lease: &str,
    flags: &Flags,
) -> Result<(Manager, Option<Tls>), Error> {
    let mut config = config(flags).await?;
    config.headers.extend(user_agent(name, version));
    let own_namespace = own_namespace(&config);
    // Its client counts its requests; only what it watches is to be another.
    let plain = Manager::from_config(config)?;
    let (kube, metrics) = (plain.client().kube().clone(), plain.metrics().clone());
    let scoped = client(kube.clone(), &flags.namespaces);
    let manager = Manager::over(scoped).with_metrics(metrics).name(name);
    let manager = manager
        .serve_probes(&pod::listen_address(&flags.probes_address))
        .await?;
    let (manager, own) =
        certificates::look_after(manager, (name, own_namespace.as_str()), flags).await?;
    let manager = serve_metrics(manager, own.clone(), kube, flags).await?;
    Ok((coordinated(manager, &own_namespace, lease, flags), own))
}

/// The manager with what the flags say about other replicas: one leads, all share the objects, or it is alone.
fn coordinated(manager: Manager, namespace: &str, lease: &str, flags: &Flags) -> Manager {
    if flags.shard {
        let (name, member) = (label_value(lease), member(&identity()));
        let caches = if flags.shard_caches {
            Caches::OwnShards
        } else {
            Caches::Everything
        };
        manager.sharded(ShardingOptions::new(namespace, name, &member).caches(caches))
    } else if flags.leader_elect {
        manager.leader_election(LeaseOptions::new(namespace, lease, &identity()))
    } else {
        manager
    }
}

async fn config(flags: &Flags) -> Result<kube::Config, Error> {
    let read = match (&flags.kubeconfig, &flags.context) {
        (None, None) => {
            let inferred = kube::Config::infer().await;
            return Ok(inferred.map_err(|error| ManagerError::NoCluster(Box::new(error)))?);
        }
        (Some(path), _) => Kubeconfig::read_from(path)?,
        (None, Some(_)) => Kubeconfig::read()?,
    };
    let options = KubeConfigOptions {
        context: flags.context.clone(),
        ..KubeConfigOptions::default()
    };
    Ok(kube::Config::from_custom_kubeconfig(read, &options).await?)
}

/// A client whose cache has these namespaces, or all.
fn client(kube: kube::Client, namespaces: &[String]) -> Client {
    let cache = CacheOptions::new().namespaces(namespaces);
    Client::builder(kube).cache(cache).build()
}

/// Serves the webhooks, if there are any and a certificate for them: one in files, or one of the operator's own.
///
/// # Errors
/// When the address cannot be listened on, or the certificate not be used.
pub(super) async fn serve_webhooks(
    manager: Manager,
    webhooks: Webhooks,
    own: Option<Tls>,
    flags: &Flags,
) -> Result<Manager, Error> {
    if webhooks.is_empty() {
        return Ok(manager);
    }
    let tls = match (&flags.webhook_certificates, own) {
        (Some(directory), _) => {
            let certificate = directory.join(&flags.webhook_certificate_name);
            Tls::from_files(certificate, directory.join(&flags.webhook_key_name)).await?
        }
        (None, Some(own)) => own,
        (None, None) => {
            tracing::warn!(
                ?webhooks,
                "webhooks are not served: no certificate is given with --webhook-cert-path, nor a Secret for one with --cert-secret"
            );
            return Ok(manager);
        }
    };
    let address = pod::listen_address(&flags.webhook_address);
    let Some(listener) = Listener::bind(&address).await? else {
        return Ok(manager);
    };
    let manager = manager.serve_webhooks(listener.tls(tls), webhooks);
    Ok(pod::delay_servers(manager, pod::drain(flags.webhook_drain)))
}

async fn serve_metrics(
    manager: Manager,
    own: Option<Tls>,
    kube: kube::Client,
    flags: &Flags,
) -> Result<Manager, Error> {
    let address = pod::listen_address(&flags.metrics_address);
    if !flags.metrics_secure {
        return Ok(manager.serve_metrics(&address).await?);
    }
    let Some(listener) = Listener::bind(&address).await? else {
        return Ok(manager);
    };
    let tls = match (&flags.metrics_certificates, own) {
        (None, Some(own)) => own,
        (None, None) => Tls::self_signed(&["localhost"])?,
        (Some(directory), _) => {
            let certificate = directory.join(&flags.metrics_certificate_name);
            Tls::from_files(certificate, directory.join(&flags.metrics_key_name)).await?
        }
    };
    Ok(manager.serve_metrics_on(listener.tls(tls), Some(AccessGuard::new(kube))))
}

/// The namespace that the operator itself is in, for its lease.
fn own_namespace(config: &kube::Config) -> String {
    let mounted = std::fs::read_to_string(OWN_NAMESPACE).ok();
    let mounted = mounted
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty());
    mounted.unwrap_or_else(|| config.default_namespace.clone())
}

/// A name that no other process has: the host's, which is the pod's, and a random part.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let host = if host.is_empty() {
        "operator".to_owned()
    } else {
        host
    };
    format!("{host}_{}", Environment::system().uid())
}

/// An identity as a part of the name of a lease, which has small letters, digits and dashes.
fn member(identity: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    identity.chars().map(allowed).collect()
}

/// As much of a name as the value of a label takes: leases of one operator are found by it.
fn label_value(name: &str) -> &str {
    let end = name.len().min(63);
    name[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// The lease of an operator: a short hash of its name, and its domain, so that two operators in one namespace never share
/// one by accident.
pub(super) fn lease_name(name: &str, domain: Option<&str>) -> String {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    match domain {
        Some(domain) => format!("{hash:08x}.{domain}"),
        None => format!("{hash:08x}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_lease_is_stable() {
        assert_eq!(lease_name("a", None), "e40c292c.a");
        assert_eq!(lease_name("a", Some("my.domain")), "e40c292c.my.domain");
        assert_ne!(
            lease_name("b", Some("my.domain")),
            lease_name("a", Some("my.domain"))
        );
    }

    #[test]
    fn names_of_members_and_labels_are_ones_that_servers_take() {
        assert_eq!(member("Web-7_0a.b"), "web-7-0a-b");
        assert_eq!(label_value("e40c292c.my.domain"), "e40c292c.my.domain");
        let long = format!("e40c292c.{}.domain", "a".repeat(53));
        assert_eq!(label_value(&long), &long[..62]);
    }
}
