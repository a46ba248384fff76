//! The webhooks of the program under development: a certificate, an address, and objects that lead the API server there.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use kube::api::DeleteParams;
use kubewright_manifests::Inventory;
use kubewright_manifests::webhook::{self, Address};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::arguments;
use crate::remote::Target;

/// How often it is tried whether the program listens.
const TRY: Duration = Duration::from_millis(20);
/// How long a program may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);
/// The configurations that a program can have.
const CONFIGURATIONS: [(&str, &str); 2] = [
    (
        "MutatingWebhookConfiguration",
        "mutating-webhook-configuration",
    ),
    (
        "ValidatingWebhookConfiguration",
        "validating-webhook-configuration",
    ),
];

/// Where the program serves its webhooks, and whom to trust there.
pub(super) struct Hooks {
    /// Has the certificate and its key.
    directory: PathBuf,
    address: SocketAddr,
    /// The certificate, for those who ask.
    bundle: String,
}

impl Hooks {
    /// Makes a certificate, and finds an address that is free.
    pub(super) fn prepare(directory: PathBuf) -> anyhow::Result<Self> {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names)
            .context("a certificate for webhooks could not be made")?;
        let bundle = made.cert.pem();
        let write = || {
            fs::create_dir_all(&directory)?;
            fs::write(directory.join("tls.crt"), &bundle)?;
            private(&directory.join("tls.key"))?
                .write_all(made.signing_key.serialize_pem().as_bytes())
        };
        write().with_context(|| format!("{} cannot be written", directory.display()))?;
        let address = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        Ok(Self {
            directory,
            address: address.context("there is no free port for webhooks")?,
            bundle,
        })
    }

    /// Where the user has the program serve them, and with which certificate.
    ///
    /// # Errors
    /// When an address or a certificate of the user's cannot be used.
    pub(super) fn with_arguments(mut self, theirs: &[String], root: &Path) -> anyhow::Result<Self> {
        if let Some(given) = arguments::value(theirs, "--webhook-bind-address") {
            self.address = local(given)?;
        }
        if let Some(given) = arguments::value(theirs, "--webhook-cert-path") {
            let name = arguments::value(theirs, "--webhook-cert-name").unwrap_or("tls.crt");
            let path = root.join(given).join(name);
            let read = fs::read_to_string(&path);
            self.bundle = read.with_context(|| format!("{} cannot be read", path.display()))?;
        }
        Ok(self)
    }

    /// What tells the program.
    pub(super) fn arguments(&self) -> [String; 2] {
        [
            format!("--webhook-bind-address={}", self.address),
            format!("--webhook-cert-path={}", self.directory.display()),
        ]
    }

    /// Returns when the program listens, or may not any more.
    pub(super) async fn are_served(&self) -> anyhow::Result<()> {
        let listens = async {
            while TcpStream::connect(self.address).await.is_err() {
                sleep(TRY).await;
            }
        };
        let waited = timeout(PATIENCE, listens).await;
        waited.with_context(|| format!("the program serves no webhooks at {}", self.address))
    }

    /// The configurations of the program's webhooks.
    pub(super) fn configurations(&self, inventory: &Inventory) -> Vec<Value> {
        let made = webhook::configurations(&inventory.webhooks, &webhook::service());
        let mut made = made.to_json();
        made.iter_mut().for_each(|object| self.lead(object));
        made
    }

    /// Has the server ask the program where an object says that it asks the manager's service.
    pub(super) fn lead(&self, object: &mut Value) {
        Address::new(self.address, &self.bundle).lead(object);
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        // What cannot be removed is in nobody's way: the next one is written over it.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Where an address that is listened on can be reached on this machine.
fn local(given: &str) -> anyhow::Result<SocketAddr> {
    let whole = match given.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => given.to_owned(),
    };
    let address: SocketAddr = whole.parse().with_context(|| {
        format!(
            "--webhook-bind-address {given:?} is not an address, as `:9443` or `127.0.0.1:9443`"
        )
    })?;
    if address.ip().is_unspecified() {
        return Ok(([127, 0, 0, 1], address.port()).into());
    }
    Ok(address)
}

/// A file that nobody else reads.
pub(super) fn private(path: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether the API server has anything to ask this program.
pub(super) fn are_in(inventory: &Inventory) -> bool {
    let converts = inventory.definitions.iter().any(|definition| {
        let conversion = definition.spec.conversion.as_ref();
        conversion.is_some_and(|conversion| conversion.strategy == "Webhook")
    });
    converts || !inventory.webhooks.is_empty()
}

/// Takes away configurations that the program has no longer: nobody would answer.
pub(super) async fn remove_others(client: &Client, there: &[Value]) -> anyhow::Result<()> {
    for (kind, name) in CONFIGURATIONS {
        if there.iter().any(|object| object["kind"] == kind) {
            continue;
        }
        let gone = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        });
        let Some(target) = Target::find(client, &gone).await? else {
            continue;
        };
        match target.api.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other.with_context(|| format!("{kind} {name} cannot be deleted"))?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_the_user_is_reached_on_this_machine() {
        let check = |given: &str, expected: &str| {
            let address = local(given).map(|address| address.to_string());
            assert_eq!(address.unwrap_or_else(|error| error.to_string()), expected);
        };
        check(":9443", "127.0.0.1:9443");
        check("0.0.0.0:1", "127.0.0.1:1");
        check("127.0.0.2:5", "127.0.0.2:5");
        check(
            "x",
            "--webhook-bind-address \"x\" is not an address, as `:9443` or `127.0.0.1:9443`",
        );
    }

    #[test]
    fn certificate_goes_with_the_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let hooks = Hooks::prepare(folder.path().join("webhook")).expect("they can be prepared");
        let key = folder.path().join("webhook/tls.key");
        let text = fs::read_to_string(&key).expect("a key");
        assert!(text.contains("PRIVATE KEY"));
        drop(hooks);
        assert!(!key.exists());
    }
}
