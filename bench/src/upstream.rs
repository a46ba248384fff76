//! A kube-apiserver with an etcd, as test environments start them: no authentication but a token, no fsync.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use kubewright_bench::Access;
use rcgen::{CertificateParams, KeyPair};

use crate::process::Process;
use crate::target::free_address;

const TOKEN: &str = "benchmark";

/// The programs.
pub(crate) struct Upstream {
    /// What it calls itself.
    pub(crate) name: String,
    apiserver: PathBuf,
    etcd: PathBuf,
}

/// Both programs, if both are on PATH.
pub(crate) fn on_path() -> Option<Upstream> {
    let (apiserver, etcd) = (find("kube-apiserver")?, find("etcd")?);
    let version = Command::new(&apiserver).arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout);
    Some(Upstream {
        name: format!(
            "kube-apiserver {}",
            version.trim().trim_start_matches("Kubernetes ")
        ),
        apiserver,
        etcd,
    })
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

impl Upstream {
    /// Starts both; the apiserver waits for its etcd by itself.
    pub(crate) fn start(
        &self,
        folder: &Path,
        address: SocketAddr,
    ) -> Result<(Vec<Process>, Access)> {
        let (client, peer) = (free_address()?, free_address()?);
        let key = KeyPair::generate().context("making a key")?;
        let certificate =
            CertificateParams::new(vec![address.ip().to_string()])?.self_signed(&key)?;
        fs::write(folder.join("key.pem"), key.serialize_pem())?;
        fs::write(folder.join("public.pem"), key.public_key_pem())?;
        fs::write(folder.join("certificate.pem"), certificate.pem())?;
        fs::write(
            folder.join("tokens.csv"),
            format!("{TOKEN},admin,admin,\"system:masters\"\n"),
        )?;
        let access = Access::with_token(address, &certificate.pem(), TOKEN)?;
        let etcd = Process::start(&mut self.etcd(folder, client, peer))?;
        let apiserver = Process::start(&mut self.apiserver(folder, address, client))?;
        Ok((vec![etcd, apiserver], access))
    }

    fn etcd(&self, folder: &Path, client: SocketAddr, peer: SocketAddr) -> Command {
        let mut command = Command::new(&self.etcd);
        command
            .current_dir(folder)
            .arg(option("--data-dir", folder.join("etcd")))
            .arg("--unsafe-no-fsync")
            .arg(format!("--listen-client-urls=http://{client}"))
            .arg(format!("--advertise-client-urls=http://{client}"))
            .arg(format!("--listen-peer-urls=http://{peer}"))
            .arg(format!("--initial-advertise-peer-urls=http://{peer}"))
            .arg(format!("--initial-cluster=default=http://{peer}"));
        command
    }

    fn apiserver(&self, folder: &Path, address: SocketAddr, etcd: SocketAddr) -> Command {
        let key = folder.join("key.pem");
        let mut command = Command::new(&self.apiserver);
        command
            .current_dir(folder)
            .arg(format!("--etcd-servers=http://{etcd}"))
            .arg(format!("--bind-address={}", address.ip()))
            .arg(format!("--advertise-address={}", address.ip()))
            .arg(format!("--secure-port={}", address.port()))
            .arg(option("--tls-cert-file", folder.join("certificate.pem")))
            .arg(option("--tls-private-key-file", &key))
            .arg(option("--token-auth-file", folder.join("tokens.csv")))
            .arg("--service-account-issuer=https://127.0.0.1/")
            .arg(option(
                "--service-account-key-file",
                folder.join("public.pem"),
            ))
            .arg(option("--service-account-signing-key-file", &key))
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            .arg("--authorization-mode=RBAC")
            .arg("--disable-admission-plugins=ServiceAccount");
        command
    }
}

fn option(name: &str, value: impl AsRef<OsStr>) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push("=");
    option.push(value);
    option
}
