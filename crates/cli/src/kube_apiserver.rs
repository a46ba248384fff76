//! The API server under the name and with the flags of `kube-apiserver`, for tools that start one.
//!
//! The contract is that of controller-runtime's envtest: certificates in `--cert-dir`, clients known by a certificate of
//! `--client-ca-file`, `/healthz` for everybody, an end on SIGTERM.

mod files;
mod lender;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context as _;
use kubewright_server::storage::Fsync;
use kubewright_server::{Authorization, Server};

use crate::flags::Flags;
use crate::up::wait_for_signal;

/// Flags that have an effect, or whose effect is what the server does anyway.
pub(crate) const KNOWN: &[&str] = &[
    "advertise-address",
    "allow-privileged",
    "audit-log-path",
    "authorization-mode",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "disable-admission-plugins",
    "etcd-servers",
    "secure-port",
    "service-account-issuer",
    "service-account-key-file",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "tls-cert-file",
    "tls-private-key-file",
    "token-auth-file",
];

pub(crate) async fn run(flags: &Flags) -> anyhow::Result<()> {
    for name in flags.others(KNOWN) {
        eprintln!("kube-apiserver: --{name} has no effect");
    }
    let server = start(flags).await?;
    let address = address(flags)?;
    let certificates = files::certificates(flags, address.ip())?;
    let endpoint = server.listen_with(address, &certificates).await?;
    eprintln!("Serving securely on {}", endpoint.address());
    wait_for_signal().await?;
    server.stop();
    tokio::select! {
        () = endpoint.close() => Ok(()),
        result = wait_for_signal() => result,
    }
}

async fn start(flags: &Flags) -> anyhow::Result<Server> {
    let mut builder = Server::builder()
        .authorization(authorization(flags))
        .tokens(files::tokens(flags)?);
    if let Some(path) = flags.value("audit-log-path") {
        builder = builder.audit_log(path);
    }
    if let Some(issuer) = flags.value("service-account-issuer") {
        builder = builder.token_issuer(issuer);
    }
    if let Some(path) = flags.value("service-account-signing-key-file") {
        builder = builder.token_key(files::read(path)?);
    }
    // What is lost with the machine is a test's: nothing needs to be forced to the disk.
    if let Some(directory) = lender::directory(flags).await {
        builder = builder.data_dir(directory).fsync(Fsync::Never);
    }
    Ok(builder.start().await?)
}

fn address(flags: &Flags) -> anyhow::Result<SocketAddr> {
    let ip: IpAddr = match flags.value("bind-address") {
        Some(text) => text
            .parse()
            .with_context(|| format!("--bind-address={text} is no IP address"))?,
        None => Ipv4Addr::UNSPECIFIED.into(),
    };
    let port = match flags.value("secure-port") {
        Some(text) => text
            .parse()
            .with_context(|| format!("--secure-port={text} is not a port"))?,
        None => 6443,
    };
    Ok(SocketAddr::new(ip, port))
}

/// Roles decide wherever one of the modes restricts anybody.
fn authorization(flags: &Flags) -> Authorization {
    let modes = flags.values("authorization-mode");
    if modes.iter().all(|mode| *mode == "AlwaysAllow") {
        Authorization::AlwaysAllow
    } else {
        Authorization::Rbac
    }
}

/// A file in the directory of certificates.
fn in_cert_dir(flags: &Flags, name: &str) -> std::path::PathBuf {
    Path::new(flags.value("cert-dir").unwrap_or("/var/run/kubernetes")).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Flags {
        Flags::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn roles_decide_unless_everything_is_allowed() {
        for (line, expected) in [
            ("--authorization-mode=RBAC", Authorization::Rbac),
            ("--authorization-mode=Node,RBAC", Authorization::Rbac),
            (
                "--authorization-mode=AlwaysAllow",
                Authorization::AlwaysAllow,
            ),
            ("--secure-port=1", Authorization::AlwaysAllow),
        ] {
            assert_eq!(authorization(&flags(line)), expected, "{line}");
        }
    }

    #[test]
    fn the_address_is_that_of_the_flags() {
        let address = |line: &str| address(&flags(line)).map(|a| a.to_string()).ok();
        for (line, expected) in [
            (
                "--bind-address=127.0.0.1 --secure-port=1",
                Some("127.0.0.1:1"),
            ),
            ("--bind-address=::1 --secure-port=1", Some("[::1]:1")),
            ("--v=1", Some("0.0.0.0:6443")),
            ("--secure-port=many", None),
            ("--bind-address=localhost", None),
        ] {
            assert_eq!(address(line).as_deref(), expected, "{line}");
        }
    }
}
