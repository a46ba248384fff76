//! Where a webhook is, read from its client configuration.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;

use super::trust::{ServerTrust, trust, trust_anybody};
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

/// Why a client configuration does not say where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidTarget(pub(super) String);

impl From<String> for InvalidTarget {
    fn from(why: String) -> Self {
        Self(why)
    }
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
    pub(crate) fn read(config: &Value) -> Result<Self, InvalidTarget> {
        let tls = trust(text(&config["caBundle"]))?;
        let service = &config["service"];
        if service.is_object() {
            return Self::of_service(service, tls);
        }
        let url = text(&config["url"]);
        let rest = url.strip_prefix("https://").ok_or_else(|| {
            let why = "webhook configuration must have either service or URL";
            InvalidTarget(why.to_owned())
        })?;
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let (host, port) = split_port(authority)?;
        let server_name = ServerName::try_from(host.clone())
            .map_err(|_| format!("Unparsable URL: {host:?} is not a host"))?;
        Ok(Self {
            place: Place::Host(host, port),
            authority: authority.to_owned(),
            path: clean(path),
            server_name,
            tls,
        })
    }

    /// Reads where the server behind a Service is.
    pub(crate) fn behind(service: &Value, trusted: ServerTrust<'_>) -> Result<Self, InvalidTarget> {
        let tls = match trusted {
            ServerTrust::Bundle(bundle) => trust(bundle)?,
            ServerTrust::Anybody => trust_anybody()?,
        };
        Self::of_service(service, tls)
    }

    fn of_service(service: &Value, tls: Arc<ClientConfig>) -> Result<Self, InvalidTarget> {
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
            path: clean(path),
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

/// A path as clients in Go send it: `//a/./b/` is `/a/b`. Go's own servers answer others with a redirect.
fn clean(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// `host:port`, `host`, `[::1]:port`
fn split_port(authority: &str) -> Result<(String, u16), InvalidTarget> {
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
        return Err(InvalidTarget(format!(
            "Unparsable URL: invalid host {authority:?}"
        )));
    }
    Ok((host.to_owned(), port))
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
            // envtest joins an address that ends with a slash and a path that begins with one.
            (json!({"url": "https://h//deny"}), Ok("https://h/deny")),
            (
                json!({"service": {"namespace": "n", "name": "s", "path": "a/./b/../c/"}}),
                Ok("https://s.n.svc:443/a/c"),
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
            let found = found.as_deref().map_err(|e| e.0.as_str());
            assert_eq!(found, shown, "{config}");
        }
        assert!(Target::read(&json!({"url": "https://h", "caBundle": "!"})).is_err());
    }
}
