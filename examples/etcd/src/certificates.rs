//! The certificates of a cluster: an authority in a Secret, one certificate for each member, one for clients.
//!
//! Certificates are renewed when two thirds of their time are over. Etcd reads them again with each connection, so nothing is
//! restarted. The authority is good for ten years; replacing it is not automatic.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kubewright::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::api::EtcdCluster;
use crate::names::Names;
use crate::objects;

/// How long the authority is good for.
const AUTHORITY: Duration = Duration::from_secs(3650 * 24 * 3600);
/// How long certificates are good for.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// When a certificate is to be renewed.
const RENEW: &str = "etcd.kubewright.dev/renew-after";

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A key or certificate cannot be made from what is there.
    #[error("cannot make a certificate for {0}")]
    Make(String, #[source] rcgen::Error),
    /// A Secret does not have what it should.
    #[error("the Secret {secret} has no {entry}")]
    Missing {
        /// The Secret.
        secret: String,
        /// What it should have.
        entry: &'static str,
    },
    /// What is in a Secret is not a certificate and its key.
    #[error("the Secret {0} cannot be used")]
    Unusable(String, #[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Makes the authority and the certificates of these members, where there are none or they are to be renewed.
///
/// # Errors
/// When they cannot be made or stored.
pub(crate) async fn ensure(cluster: &EtcdCluster, members: &[String], cx: &Context) -> Result {
    let names = Names::of(cluster);
    let authority = ensure_authority(cluster, &names, cx).await?;
    let service = names.client_service();
    let mut hosts = vec![
        service.clone(),
        format!("{service}.{}.svc", names.namespace),
    ];
    let client = names.client_certificate();
    ensure_leaf(cluster, &authority, &client, &[], cx).await?;
    hosts.extend(["localhost".to_owned(), "127.0.0.1".to_owned()]);
    for member in members {
        let mut names_of_member = hosts.clone();
        names_of_member.push(names.host(member));
        names_of_member.push(format!("{}.cluster.local", names.host(member)));
        let secret = names.certificate(member);
        ensure_leaf(cluster, &authority, &secret, &names_of_member, cx).await?;
    }
    Ok(())
}

async fn ensure_authority(
    cluster: &EtcdCluster,
    names: &Names,
    cx: &Context,
) -> Result<Arc<Secret>> {
    let key = cx.key().sibling(&names.authority());
    if let Some(secret) = cx.client().get::<Secret>(&key).await? {
        return Ok(secret);
    }
    let name = names.authority();
    let made = make_authority(&names.cluster, cx.now());
    let made = made.map_err(|error| CertificateError::Make(name.clone(), error))?;
    let [certificate, private] = made;
    let entries = [("ca.crt", certificate), ("ca.key", private)];
    let secret = new_secret(cluster, &name, entries.into(), None)?;
    Ok(Arc::new(cx.client().create(&secret).await?))
}

fn make_authority(cluster: &str, now: Timestamp) -> Result<[String; 2], rcgen::Error> {
    let mut params = params(&[], &format!("{cluster} authority"), now, AUTHORITY)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok([certificate.pem(), key.serialize_pem()])
}

/// Keeps one certificate.
async fn ensure_leaf(
    cluster: &EtcdCluster,
    authority: &Secret,
    name: &str,
    hosts: &[String],
    cx: &Context,
) -> Result {
    let key = cx.key().sibling(name);
    let present = cx.client().get::<Secret>(&key).await?;
    let trusted = entry(authority, "ca.crt")?;
    if let Some(present) = &present {
        let same = entry(present, "ca.crt").is_ok_and(|ca| ca == trusted);
        if same && !is_due(present, cx.now()) {
            return Ok(());
        }
    }
    let made = make_leaf(authority, name, hosts, cx.now())?;
    let [certificate, private] = made;
    let entries = [
        ("ca.crt", trusted.to_owned()),
        ("tls.crt", certificate),
        ("tls.key", private),
    ];
    let renew = cx.now() + LIFETIME * 2 / 3;
    let secret = new_secret(cluster, name, entries.into(), Some(renew))?;
    match present {
        None => {
            cx.client().create(&secret).await?;
        }
        Some(present) => {
            let change = |present: &mut Secret| {
                present.data = secret.data.clone();
                present
                    .annotations_mut()
                    .extend(secret.annotations().clone());
            };
            cx.client().modify(&present, change).await?;
            let message = format!("renewed the certificate in Secret {name}");
            cx.event(cluster, EventKind::Normal, "CertificateRenewed", message);
        }
    }
    Ok(())
}

fn make_leaf(
    authority: &Secret,
    name: &str,
    hosts: &[String],
    now: Timestamp,
) -> Result<[String; 2], CertificateError> {
    let (ca, ca_key) = (entry(authority, "ca.crt")?, entry(authority, "ca.key")?);
    let make = || {
        let issuer = Issuer::from_ca_cert_pem(ca, KeyPair::from_pem(ca_key)?)?;
        let mut params = params(hosts, name, now, LIFETIME)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // A member is a server, a client of its peers, and a client of itself when it serves JSON.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok([certificate.pem(), key.serialize_pem()])
    };
    make().map_err(|error| CertificateError::Make(name.to_owned(), error))
}

/// What certificates have in common. They are good from an hour ago: clocks differ.
fn params(
    hosts: &[String],
    name: &str,
    now: Timestamp,
    lifetime: Duration,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(hosts.to_vec())?;
    let since = Duration::from_secs(now.as_second().unsigned_abs());
    let now = rcgen::date_time_ymd(1970, 1, 1) + since;
    params.not_before = now - Duration::from_secs(3600);
    params.not_after = now + lifetime;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn is_due(secret: &Secret, now: Timestamp) -> bool {
    let renew = secret.annotations().get(RENEW);
    let renew = renew.and_then(|text| text.parse::<Timestamp>().ok());
    renew.is_none_or(|renew| renew <= now)
}

fn new_secret(
    cluster: &EtcdCluster,
    name: &str,
    entries: Vec<(&str, String)>,
    renew: Option<Timestamp>,
) -> Result<Secret> {
    let names = Names::of(cluster);
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.namespace = cluster.namespace();
    secret.metadata.labels = serde_json::from_value(objects::labels(&names, "tls")).ok();
    if let Some(renew) = renew {
        secret
            .annotations_mut()
            .insert(RENEW.to_owned(), renew.to_string());
    }
    let entries = entries.into_iter();
    let bytes = entries.map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes())));
    secret.data = Some(bytes.collect());
    set_controller_reference(cluster, &mut secret)?;
    Ok(secret)
}

/// How the operator talks TLS with the members of a cluster.
///
/// # Errors
/// When the certificate for clients is not there or not one.
pub(crate) async fn client_config(
    names: &Names,
    cx: &Context,
) -> Result<Arc<rustls::ClientConfig>> {
    let name = names.client_certificate();
    let key = cx.key().sibling(&name);
    let missing = || CertificateError::Missing {
        secret: name.clone(),
        entry: "tls.crt",
    };
    let secret = cx.client().get::<Secret>(&key).await?.ok_or_else(missing)?;
    Ok(Arc::new(client_tls(&secret)?))
}

/// How a client talks TLS with a cluster, from the Secret `NAME-client-tls`.
///
/// # Errors
/// When a certificate or key is missing or not one.
pub fn client_tls(secret: &Secret) -> Result<rustls::ClientConfig, CertificateError> {
    configure(secret).map_err(|error| CertificateError::Unusable(secret.name_any(), error))
}

fn configure(
    secret: &Secret,
) -> Result<rustls::ClientConfig, Box<dyn std::error::Error + Send + Sync>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(
        entry(secret, "ca.crt")?.as_bytes(),
    )?)?;
    let certificate = CertificateDer::from_pem_slice(entry(secret, "tls.crt")?.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(entry(secret, "tls.key")?.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate], key)?;
    Ok(config)
}

fn entry<'a>(secret: &'a Secret, entry: &'static str) -> Result<&'a str, CertificateError> {
    let data = secret.data.as_ref().and_then(|data| data.get(entry));
    let text = data.and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
    text.ok_or_else(|| CertificateError::Missing {
        secret: secret.name_any(),
        entry,
    })
}
