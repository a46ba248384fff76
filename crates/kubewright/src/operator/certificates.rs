//! The certificates that an operator makes itself, if its flags name a Secret for them.

use kubewright_manifests::Inventory;
use kubewright_runtime::serving::{CertificateOptions, Certificates, Tls, TrustTarget};
use kubewright_runtime::{Environment, Error, Manager};

use super::flags::{CertificateFlags, Flags};

/// Has the manager look after certificates, under the operator's name. Gives what listeners serve with.
///
/// # Errors
/// When no certificate can be made or found.
pub(super) async fn look_after(
    manager: Manager,
    (name, namespace): (&str, &str),
    flags: &Flags,
) -> Result<(Manager, Option<Tls>), Error> {
    let Some(flags) = &flags.certificates else {
        return Ok((manager, None));
    };
    let kube = manager.client().kube().clone();
    let options = options(namespace, flags, &crate::registered::try_inventory()?)?;
    let options = options.field_manager(name);
    let certificates = Certificates::prepare(kube, options, Environment::system()).await?;
    let tls = certificates.tls();
    manager
        .probes()
        .readiness("certificates", certificates.readiness());
    Ok((manager.runnable(certificates), Some(tls)))
}

/// What is trusted where: configurations by the flags, definitions because the program knows them.
fn options(
    namespace: &str,
    flags: &CertificateFlags,
    inventory: &Inventory,
) -> Result<CertificateOptions, Error> {
    let mut options = CertificateOptions::new(namespace, &flags.secret);
    options.services.clone_from(&flags.services);
    let mutating = flags.mutating.iter().cloned().map(TrustTarget::Mutating);
    let validating = flags
        .validating
        .iter()
        .cloned()
        .map(TrustTarget::Validating);
    let converted = inventory.definitions.iter().filter(|definition| {
        let conversion = definition.spec.conversion.as_ref();
        conversion.is_some_and(|conversion| conversion.strategy == "Webhook")
    });
    let converted = converted.filter_map(|definition| definition.metadata.name.clone());
    let targets = mutating.chain(validating);
    options.targets = targets
        .chain(converted.map(TrustTarget::Definition))
        .collect();
    Ok(options.times(flags.lifetime, flags.settle)?)
}
