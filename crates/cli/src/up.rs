//! `kubewright up`: a cluster, in the foreground, until Ctrl-C.

mod network;
mod processes;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, ValueEnum};
use kubewright_cluster::{Cluster, Ipv4Range};
use kubewright_process::Isolation;
use kubewright_server::storage::{Fsync, OpenError};
use kubewright_server::{Authorization, FieldManagement};
use tokio::signal::unix::{SignalKind, signal};

use crate::notes::counted;
use crate::page::{self, Forks};
use network::NetworkMode;
use processes::ProcessFlags;

/// Start a cluster on this machine and keep it running until Ctrl-C
///
/// It is an API server with the built-in controllers and simulated nodes. The server speaks the Kubernetes API over TLS. kubectl and every other client get in with the kubeconfig that is
/// written at start. Nothing is installed and, without --data-dir, nothing is kept: the next start is a new cluster.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright up\n  \
    kubewright up --port 6443 --data-dir ./cluster\n  \
    kubewright up --nodes 3\n  \
    kubewright up --runtime process --image 'quay.io/coreos/etcd:*=/usr/bin/etcd'\n  \
    kubewright up --webhook-service system/webhook=127.0.0.1:9443\n  \
    kubectl --kubeconfig .kubewright/kubeconfig get namespaces")]
pub(crate) struct Up {
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Address to listen on; anything but loopback lets other machines in
    #[arg(long, default_value = "127.0.0.1")]
    address: IpAddr,

    /// How many simulated nodes there are
    #[arg(long, default_value_t = 1, value_parser = parse_nodes)]
    nodes: usize,

    /// Start the API server alone: no controllers, no nodes
    #[arg(long, conflicts_with = "nodes")]
    no_controllers: bool,

    /// Directory to keep the cluster in; without it the cluster ends with the process
    #[arg(long)]
    data_dir: Option<PathBuf>,

    /// When writes are forced to the disk, with --data-dir: always, never, or every so many milliseconds
    #[arg(long, default_value = "always", value_name = "always|never|MILLISECONDS", value_parser = parse_fsync)]
    fsync: Fsync,

    /// Who may do what: as roles and bindings say, or everything for everybody with a certificate or token
    #[arg(long, value_enum, default_value_t = Mode::Rbac)]
    authorization: Mode,

    /// Whether objects tell who manages which of their fields; without, writes are cheaper and no apply conflicts
    #[arg(long, value_enum, default_value_t = ManagedFields::On)]
    managed_fields: ManagedFields,

    /// File to write every request to, as audit events in lines of JSON
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,

    /// Where the process behind a Service listens, for webhooks that name the Service; may be repeated
    ///
    /// Pods are simulated, so nothing answers at their addresses. PORT is the port of the Service, 443 unless given.
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]=ADDRESS", value_parser = parse_webhook_service)]
    webhook_service: Vec<WebhookService>,

    /// Where pods and Services have their addresses: none, loopback, or a /14 of 127.0.0.0/8
    ///
    /// With a network of the loopback device Services lead to the processes that listen at the addresses of pods, and names
    /// resolve. Several clusters of one machine have networks of their own; one with a data directory keeps its own. It is none
    /// by default, and loopback with --runtime process.
    #[arg(long, value_name = "none|loopback|RANGE")]
    network: Option<NetworkMode>,

    /// Give Services of the type LoadBalancer addresses of this range, 203.0.113.0/24 say
    ///
    /// Nothing listens at them unless they are of a network (see --network), which has a range of its own for that.
    #[arg(long, value_name = "RANGE")]
    load_balancers: Option<Ipv4Range>,

    /// Where to write the kubeconfig
    #[arg(long, default_value = ".kubewright/kubeconfig")]
    kubeconfig: PathBuf,

    /// Do not serve the console, the page that shows the cluster
    #[arg(long)]
    no_console: bool,

    #[command(flatten)]
    processes: ProcessFlags,
}

/// A Service and the process that answers for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WebhookService {
    namespace: String,
    name: String,
    port: u16,
    address: SocketAddr,
}

/// How the server decides who may do what.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    Rbac,
    AlwaysAllow,
}

/// Whether the server keeps account of who manages which fields.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ManagedFields {
    On,
    Off,
}

impl From<ManagedFields> for FieldManagement {
    fn from(managed_fields: ManagedFields) -> Self {
        match managed_fields {
            ManagedFields::On => Self::Tracked,
            ManagedFields::Off => Self::Off,
        }
    }
}

impl From<Mode> for Authorization {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Rbac => Self::Rbac,
            Mode::AlwaysAllow => Self::AlwaysAllow,
        }
    }
}

impl Up {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime could not be started")?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let management = self.managed_fields.into();
        let mut builder = Cluster::builder()
            .authorization(self.authorization.into())
            .server(|server| server.field_management(management))
            .nodes(self.nodes);
        if self.no_controllers {
            builder = builder.without_controllers();
        }
        let network = network::claim(self.network_mode(), self.data_dir.as_deref()).await?;
        if let Some(network) = &network {
            builder = builder.network(network.clone());
        }
        if let Some(range) = self.load_balancers {
            builder = builder.load_balancers(range);
        }
        let data_dir = self.data_dir.as_deref();
        let processes = self.processes.runtime(data_dir, network.as_ref())?;
        if let Some(runtime) = &processes {
            builder = builder.runtime(runtime.clone());
        }
        if let Some(file) = &self.audit_log {
            builder = builder.audit_log(file);
        }
        if let Some(directory) = &self.data_dir {
            builder = builder.data_dir(directory).fsync(self.fsync);
        }
        let cluster = builder.start().await.map_err(|e| self.advise(e.into()))?;
        let cluster = Arc::new(cluster);
        let services = cluster.server().services();
        for service in &self.webhook_service {
            services.insert(
                &service.namespace,
                &service.name,
                service.port,
                service.address,
            );
        }
        let endpoint = cluster
            .listen(SocketAddr::new(self.address, self.port))
            .await?;
        endpoint
            .write_kubeconfig(&self.kubeconfig)
            .with_context(|| {
                format!(
                    "the kubeconfig could not be written to {}",
                    self.kubeconfig.display()
                )
            })?;
        let console = if self.no_console {
            None
        } else {
            let mut page = page::of(&cluster, &endpoint).await;
            // A fork would start the same processes once more.
            if processes.is_none() {
                page = page.snapshots(Arc::new(Forks::of(&cluster, &self.kubeconfig)));
            }
            page::beside(page).await
        };
        let link = console.as_ref().map(|console| console.link());
        let isolation = processes.as_ref().map(|runtime| runtime.isolation());
        self.announce(&cluster, endpoint.url(), isolation, link);
        wait_for_signal().await?;
        eprintln!("Stopping.");
        tokio::select! {
            () = page::stop(console, cluster, endpoint) => Ok(()),
            result = wait_for_signal() => result,
        }
    }

    /// Says what can be done about a data directory that is damaged.
    fn advise(&self, error: anyhow::Error) -> anyhow::Error {
        let causes = error.chain().filter_map(|e| e.downcast_ref::<OpenError>());
        match &self.data_dir {
            Some(directory) if causes.into_iter().any(OpenError::is_damage) => {
                error.context(format!(
                    "see what can be rescued with: kubewright doctor --data-dir {}",
                    shell_path(directory)
                ))
            }
            _ => error,
        }
    }

    /// The network that was asked for. Pods that are processes can be reached unless somebody says otherwise.
    fn network_mode(&self) -> NetworkMode {
        let usual = if self.processes.is_process() {
            NetworkMode::Loopback
        } else {
            NetworkMode::None
        };
        self.network.unwrap_or(usual)
    }

    /// Prints what was started. The last line says that it is ready: whoever waits for it may stop reading then.
    fn announce(
        &self,
        cluster: &Cluster,
        url: &str,
        isolation: Option<&Isolation>,
        console: Option<&str>,
    ) {
        println!("The API server answers at {url}");
        println!("  kubeconfig  {}", self.kubeconfig.display());
        if self.no_controllers {
            println!("  runs        the API server alone");
        } else {
            let nodes = counted(self.nodes, "simulated node", "simulated nodes");
            println!("  runs        all controllers, {nodes}");
        }
        if let Some(isolation) = isolation {
            println!("  containers  {isolation}");
        }
        match &self.data_dir {
            Some(directory) => println!("  kept in     {}", directory.display()),
            None => println!("  kept        nowhere: it ends with this process (see --data-dir)"),
        }
        if let Some(network) = cluster.network() {
            let (services, pods) = (network.services(), network.pods());
            println!("  network     Services in {services}, pods in {pods}");
            println!("              DNS at {}", network.dns_address());
        }
        if let Some(recovery) = cluster.server().recovery() {
            println!(
                "  found       {} objects at revision {}",
                recovery.objects, recovery.revision
            );
            if recovery.truncated_bytes > 0 {
                println!(
                    "              a torn write of {} bytes at the end was cut off",
                    recovery.truncated_bytes
                );
            }
        }
        if let Some(link) = console {
            println!("  console     {link}");
        }
        if let Some(file) = &self.audit_log {
            println!("  audit log   {}", file.display());
        }
        if !self.address.is_loopback() {
            println!("  open to     other machines, on {}", self.address);
        }
        println!(
            "\nTry:  kubectl --kubeconfig {} get namespaces",
            shell_path(&self.kubeconfig)
        );
        println!("Ctrl-C stops it.");
    }
}

/// Most nodes that are simulated on one machine.
const MOST_NODES: usize = 1000;

fn parse_nodes(text: &str) -> anyhow::Result<usize> {
    let nodes = text.parse().ok().filter(|nodes| *nodes <= MOST_NODES);
    nodes.with_context(|| format!("{text:?} is not a number up to {MOST_NODES}"))
}

fn parse_fsync(text: &str) -> anyhow::Result<Fsync> {
    match text {
        "always" => Ok(Fsync::Always),
        "never" => Ok(Fsync::Never),
        milliseconds => match milliseconds.parse() {
            Ok(n) => Ok(Fsync::Interval(Duration::from_millis(n))),
            Err(_) => {
                bail!("{text:?} is neither `always` nor `never` nor a number of milliseconds")
            }
        },
    }
}

/// `system/webhook=127.0.0.1:9443`, `system/webhook:8443=127.0.0.1:9443`
fn parse_webhook_service(text: &str) -> anyhow::Result<WebhookService> {
    let wrong = || {
        anyhow!(
            "{text:?} is not NAMESPACE/NAME[:PORT]=ADDRESS, such as system/webhook=127.0.0.1:9443"
        )
    };
    let (service, address) = text.split_once('=').ok_or_else(wrong)?;
    let (namespace, name) = service.split_once('/').ok_or_else(wrong)?;
    let (name, port) = match name.split_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| wrong())?),
        None => (name, 443),
    };
    if namespace.is_empty() || name.is_empty() {
        return Err(wrong());
    }
    Ok(WebhookService {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port,
        address: address.parse().map_err(|_| wrong())?,
    })
}

/// A path as it can be pasted into a shell.
pub(crate) fn shell_path(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    if plain {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Returns when the process is asked to end.
pub(crate) async fn wait_for_signal() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.context("signals cannot be received"),
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_webhooks_are_read() {
        let read = |text| parse_webhook_service(text).map(|s| (s.namespace, s.name, s.port));
        let expected = |port| ("a".to_owned(), "b".to_owned(), port);
        assert_eq!(read("a/b=127.0.0.1:9443").expect("read"), expected(443));
        assert_eq!(
            read("a/b:8443=127.0.0.1:9443").expect("read"),
            expected(8443)
        );
        for wrong in [
            "a/b",
            "b=127.0.0.1:1",
            "a/b=somewhere",
            "/b=127.0.0.1:1",
            "a/b:x=127.0.0.1:1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
