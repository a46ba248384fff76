//! The webhooks of an operator: a certificate, an address, and objects that lead the API server there.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kubewright::manifests::Inventory;
use kubewright::manifests::webhook::{Address, configurations, service};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// How long an operator may take until it listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where an operator serves its webhooks, and whom to trust there.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// Has the certificate and its key.
    directory: PathBuf,
    address: SocketAddr,
    /// The certificate, in PEM.
    certificate: String,
}

impl Hooks {
    /// Makes a certificate, and finds a port that is free.
    pub(crate) fn prepare(folder: &Path) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
        let directory = folder.join("webhook");
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))?;
        let certificate = made.cert.pem();
        fs::write(directory.join("tls.crt"), &certificate)?;
        fs::write(directory.join("tls.key"), made.signing_key.serialize_pem())?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        Ok(Self {
            directory,
            address: free.context("there is no free port for webhooks")?,
            certificate,
        })
    }

    /// The flags of the operator that make it serve them here.
    pub(crate) fn flags(&self) -> [String; 2] {
        [
            format!("--webhook-bind-address={}", self.address),
            format!("--webhook-cert-path={}", self.directory.display()),
        ]
    }

    /// Installs the kinds and webhook configurations of an operator.
    pub(crate) async fn install(&self, client: &kube::Client, inventory: &Inventory) -> Result<()> {
        ensure!(
            !inventory.webhooks.is_empty(),
            "the operator has no webhook"
        );
        let made = configurations(&inventory.webhooks, &service());
        for definition in &inventory.definitions {
            let all: Api<CustomResourceDefinition> = Api::all(client.clone());
            all.create(&PostParams::default(), definition).await?;
        }
        if let Some(mutating) = &made.mutating {
            let led: MutatingWebhookConfiguration = self.lead(mutating)?;
            let all = Api::all(client.clone());
            all.create(&PostParams::default(), &led).await?;
        }
        if let Some(validating) = &made.validating {
            let led: ValidatingWebhookConfiguration = self.lead(validating)?;
            let all = Api::all(client.clone());
            all.create(&PostParams::default(), &led).await?;
        }
        Ok(())
    }

    /// The same configuration, with this address in the place of the manager's service.
    fn lead<K: Serialize + DeserializeOwned>(&self, configuration: &K) -> Result<K> {
        let mut object = serde_json::to_value(configuration)?;
        Address::new(self.address, &self.certificate).lead(&mut object);
        Ok(serde_json::from_value(object)?)
    }

    /// Waits until somebody listens.
    pub(crate) async fn are_served(&self) -> Result<()> {
        let listens = async {
            while TcpStream::connect(self.address).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = timeout(PATIENCE, listens).await;
        waited.with_context(|| format!("the operator serves no webhooks at {}", self.address))
    }
}
