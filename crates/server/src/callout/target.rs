//! Where a webhook is, read from its client configuration.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use crate::kinds::value::text;

/// Where a webhook is and whom to trust there. Made once for a configuration, since certificates are costly to read.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) place: Place,
    /// `host:port`, as it is shown and sent.
    pub(crate) authority: String,
    pub(crate) path: String,
    pub(crate) server_name: ServerName<'static>,
    pub(crate) tls: Arc<ClientConfig>,
}

/// What is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Host(String, u16),
    Service {
        namespace: String,
        name: String,
        port: u16,
    },
}

impl Target {
    /// Reads a client configuration of a webhook.
    pub(crate) fn read(config: &Value) -> Result<Self, String> {
        let tls = trust(text(&config["caBundle"]))?;
        let service = &config["service"];
        if service.is_object() {
            return Self::of_service(service, tls);
        }
        let url = text(&config["url"]);
        let rest = url
            .strip_prefix("https://")
            .ok_or("webhook configuration must have either service or URL")?;
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let (host, port) = split_port(authority)?;
        let server_name = ServerName::try_from(host.clone())
            .map_err(|_| format!("Unparsable URL: {host:?} is not a host"))?;
        Ok(Self {
            place: Place::Host(host, port),
            authority: authority.to_owned(),
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            server_name,
            tls,
        })
    }

    fn of_service(service: &Value, tls: Arc<ClientConfig>) -> Result<Self, String> {
        let (namespace, name) = (text(&service["namespace"]), text(&service["name"]));
        let port = match service["port"].as_u64() {
            None => 443,
            Some(port) => u16::try_from(port).map_err(|_| format!("no port {port}"))?,
        };
        let host = format!("{name}.{namespace}.svc");
        let server_name = ServerName::try_from(host.clone())
            .map_err(|_| format!("{host:?} is not the name of a service"))?;
        let path = text(&service["path"]);
        Ok(Self {
            place: Place::Service {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                port,
            },
            authority: format!("{host}:{port}"),
            path: if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            },
            server_name,
            tls,
        })
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority, self.path)
    }
}

/// `host:port`, `host`, `[::1]:port`
fn split_port(authority: &str) -> Result<(String, u16), String> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        None => 443,
        Some(port) => port
            .parse()
            .map_err(|_| format!("Unparsable URL: invalid port {port:?}"))?,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || (host.contains(':') && host.parse::<IpAddr>().is_err()) {
        return Err(format!("Unparsable URL: invalid host {authority:?}"));
    }
    Ok((host.to_owned(), port))
}

/// TLS that trusts the certificates of a bundle and no others.
fn trust(bundle: &str) -> Result<Arc<ClientConfig>, String> {
    let pem = base64::engine::general_purpose::STANDARD
        .decode(bundle)
        .map_err(|e| format!("caBundle is not base64: {e}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|e| format!("caBundle is not PEM: {e}"))?;
        let added = roots.add(certificate);
        added.map_err(|e| format!("unable to load root certificates: {e}"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn targets_are_read_from_urls_and_services() {
        for (config, shown) in [
            (
                json!({"url": "https://h.example:8443/a/b"}),
                Ok("https://h.example:8443/a/b"),
            ),
            (
                json!({"url": "https://127.0.0.1"}),
                Ok("https://127.0.0.1/"),
            ),
            (json!({"url": "https://[::1]:9/x"}), Ok("https://[::1]:9/x")),
            (
                json!({"service": {"namespace": "n", "name": "s", "path": "/p"}}),
                Ok("https://s.n.svc:443/p"),
            ),
            (
                json!({"url": "http://h"}),
                Err("webhook configuration must have either service or URL"),
            ),
            (
                json!({"url": "https://h:99999/"}),
                Err("Unparsable URL: invalid port \"99999\""),
            ),
        ] {
            let found = Target::read(&config).map(|target| format!("{target:?}"));
            let found = found.as_deref().map_err(String::as_str);
            assert_eq!(found, shown, "{config}");
        }
        assert!(Target::read(&json!({"url": "https://h", "caBundle": "!"})).is_err());
    }
}
