//! `kubewright dev`: a cluster, the kinds, and the program, built again when a source changes.

mod account;
mod arguments;
mod child;
mod hooks;
mod refusals;
mod sources;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use kubewright_cluster::Cluster;
use kubewright_manifests::Inventory;
use kubewright_manifests::layout::{self, Settings};
use kubewright_server::Authorization;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::folder::{Folder, Place};
use crate::page;
use crate::program::{self, Profile};
use crate::remote::apply::Applying;
use crate::remote::wait;
use crate::up::{shell_path, wait_for_signal};
use account::{Account, Identity};
use child::{Launch, Running};
use hooks::Hooks;
use refusals::Refusals;
use sources::Sources;

/// How often sources are looked at.
const LOOK: Duration = Duration::from_millis(300);
/// What is applied is what the program declares, whatever others wrote.
const APPLYING: Applying = Applying {
    dry_run: false,
    force_conflicts: true,
};
/// The flags of the program, unless the user sets others: two of them may run on one machine.
const GIVEN: [&str; 1] = ["--health-probe-bind-address=0"];
/// How long kinds may take to be served; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Start a cluster, install the kinds, run the program, and build it again when a source changes
///
/// The cluster lives in this process and ends with it. Webhooks and conversions are asked of the program, over TLS, with a
/// certificate that is made at start. kubectl gets in with the kubeconfig that is written at start. The program has its own:
/// it asks as the service account that it is deployed with, and a rule that is missing from its roles is named. What stands
/// behind -- goes to the program, and counts more than what dev gives it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright dev\n  \
    kubewright dev --nodes 3 -- --log-level debug\n  \
    kubewright dev --as-admin\n  \
    kubectl --kubeconfig .kubewright/kubeconfig apply -k config/samples")]
pub(crate) struct Dev {
    /// Port of the API server; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// How many simulated nodes there are
    #[arg(long, default_value_t = 1)]
    nodes: usize,

    /// Apply a sample of each kind
    #[arg(long)]
    samples: bool,

    /// Run the program as the administrator, whatever its roles allow
    #[arg(long)]
    as_admin: bool,

    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,

    #[command(flatten)]
    place: Place,
}

/// A program that was built, and what it says of itself.
struct Built {
    program: PathBuf,
    inventory: Inventory,
}

/// What runs, and what it is made from.
struct Session<'a> {
    folder: &'a Folder,
    client: kube::Client,
    /// The administrator's.
    kubeconfig: PathBuf,
    identity: Identity,
    arguments: &'a [String],
    hooks: Hooks,
    /// Whether a sample of each kind is applied.
    samples: bool,
}

impl Dev {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let folder = self.place.open()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime could not be started")?;
        runtime.block_on(self.serve(&folder))
    }

    async fn serve(&self, folder: &Folder) -> anyhow::Result<()> {
        let began = Instant::now();
        let own = folder.root.join(".kubewright");
        std::fs::create_dir_all(&own)
            .with_context(|| format!("{} cannot be made", own.display()))?;
        let mut refusals = Refusals::in_log(own.join("audit.log"));
        let cluster = Cluster::builder()
            .nodes(self.nodes)
            .authorization(Authorization::Rbac)
            .audit_log(refusals.log());
        let cluster = cluster.start().await?;
        let endpoint = cluster.listen(([127, 0, 0, 1], self.port).into()).await?;
        let kubeconfig = own.join("kubeconfig");
        endpoint
            .write_kubeconfig(&kubeconfig)
            .with_context(|| format!("{} cannot be written", kubeconfig.display()))?;
        println!(
            "A cluster runs at {} since {:.0?}.",
            endpoint.url(),
            began.elapsed()
        );
        println!(
            "  kubeconfig  {}",
            folder.shown(Path::new(".kubewright/kubeconfig"))
        );
        let console = page::beside(page::of(&cluster, &endpoint).await).await;
        if let Some(console) = &console {
            println!("  console     {}", console.link());
        }
        let session = Session {
            folder,
            client: cluster.client(),
            kubeconfig,
            identity: self.identity(&own),
            arguments: &self.arguments,
            hooks: Hooks::prepare(own.join("webhook"))?
                .with_arguments(&self.arguments, &folder.root)?,
            samples: self.samples,
        };
        let mut running = None;
        // A signal is the way to end, whatever is under way.
        let ended = tokio::select! {
            biased;
            signal = wait_for_signal() => signal,
            ended = session.follow(&mut running) => ended,
            never = refusals.follow() => never,
        };
        println!("Stopping.");
        let stop = async {
            if let Some(program) = running {
                program.stop().await;
            }
            if let Some(console) = console {
                console.stop().await;
            }
            endpoint.close().await;
            cluster.stop().await;
        };
        // Who asks twice is in a hurry.
        tokio::select! {
            biased;
            () = stop => {}
            _ = wait_for_signal() => {}
        }
        let Session {
            kubeconfig,
            identity,
            hooks,
            ..
        } = session;
        drop((identity, hooks, refusals));
        forget(&kubeconfig);
        ended
    }

    fn identity(&self, own: &Path) -> Identity {
        if self.as_admin {
            return Identity::Admin;
        }
        Identity::Own(own.join("operator.kubeconfig"))
    }
}

impl Session<'_> {
    /// Keeps the program running as its sources are.
    async fn follow(&self, running: &mut Option<Running>) -> anyhow::Result<()> {
        let mut sources = Sources::look(&self.folder.root);
        *running = match self.build().await {
            Ok(built) => Some(self.start(&built).await?),
            Err(error) => self.tell(&error),
        };
        if running.is_some() {
            self.advise().await?;
        }
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // A program that ended is worth knowing of before its sources change.
            tokio::select! {
                biased;
                status = Running::ended(running) => {
                    eprintln!("The program ended: {status}. It is built again when a source changes.");
                    *running = None;
                }
                _ = ticks.tick() => {}
            }
            let now = Sources::look(&self.folder.root);
            if now == sources {
                continue;
            }
            println!("{} changed; building.", now.first_difference(&sources));
            sources = now;
            match self.build().await {
                Ok(built) => {
                    if let Some(old) = running.take() {
                        old.stop().await;
                    }
                    *running = Some(self.start(&built).await?);
                }
                Err(error) => drop(self.tell(&error)),
            }
        }
    }

    /// Builds the program and installs its kinds.
    async fn build(&self) -> anyhow::Result<Built> {
        let began = Instant::now();
        let project = &self.folder.project;
        let program = program::build(self.folder, Profile::Debug).await?;
        let inventory = program::inventory(&program).await?;
        let mut kinds = layout::deployed(project, &inventory, &Settings::default())?;
        kinds.retain(|object| object["kind"] == "CustomResourceDefinition");
        for kind in &mut kinds {
            self.hooks.lead(kind);
        }
        let applied = APPLYING.all(&self.client, &kinds).await?;
        wait::until_ready(&applied, None, PATIENCE).await?;
        println!("Built in {:.1?}.", began.elapsed());
        Ok(Built { program, inventory })
    }

    /// Starts the program, and has it asked once it answers.
    async fn start(&self, built: &Built) -> anyhow::Result<Running> {
        let Built { program, inventory } = built;
        let hooked = hooks::are_in(inventory);
        let mut arguments: Vec<String> = GIVEN.map(str::to_owned).to_vec();
        if hooked {
            arguments.extend(self.hooks.arguments());
        }
        let mut running = Running::start(&Launch {
            program,
            root: &self.folder.root,
            kubeconfig: self.identity.kubeconfig(&self.kubeconfig),
            watched: self.introduce(inventory).await?,
            arguments: arguments::merged(arguments, self.arguments),
        })?;
        let configurations = if hooked && self.answers(&mut running).await {
            self.hooks.configurations(inventory)
        } else {
            Vec::new()
        };
        hooks::remove_others(&self.client, &configurations).await?;
        APPLYING.all(&self.client, &configurations).await?;
        Ok(running)
    }

    /// Makes the service account and the roles of the program, as they are deployed, and says which namespaces it watches.
    async fn introduce(&self, inventory: &Inventory) -> anyhow::Result<Option<String>> {
        let Identity::Own(path) = &self.identity else {
            return Ok(None);
        };
        let account = Account::of(&self.folder.project, inventory)?;
        APPLYING.all(&self.client, &account.objects).await?;
        let admin = std::fs::read_to_string(&self.kubeconfig)?;
        account.write_kubeconfig(&self.client, &admin, path).await?;
        println!("The program runs as {}.", account.user());
        if let Some(watched) = &account.watched {
            println!("It watches the namespaces {watched}.");
        }
        Ok(account.watched)
    }

    /// Whether the program answers as soon as it runs. If not, nobody is led to it, and dev goes on.
    async fn answers(&self, running: &mut Running) -> bool {
        // A program that ends prints the reason itself; there is nothing to wait for.
        let served = tokio::select! {
            biased;
            _ = running.end() => return false,
            served = self.hooks.are_served() => served,
        };
        if let Err(error) = &served {
            eprintln!("{error:#}; its webhooks are not called.");
        }
        served.is_ok()
    }

    fn tell(&self, error: &anyhow::Error) -> Option<Running> {
        eprintln!("{error:#}\nWaiting for a change of the sources.");
        None
    }

    /// Says what to try, and tries it if asked to.
    async fn advise(&self) -> anyhow::Result<()> {
        if self.samples {
            let objects = self.samples()?;
            Applying::default().all(&self.client, &objects).await?;
        }
        let kubeconfig = shell_path(&self.kubeconfig);
        println!("\nTry:  kubectl --kubeconfig {kubeconfig} apply -k config/samples");
        println!("Sources are watched. Ctrl-C stops it all.");
        Ok(())
    }

    /// The samples on file.
    fn samples(&self) -> anyhow::Result<Vec<serde_json::Value>> {
        let mut objects = Vec::new();
        for path in layout::generated_files(&self.folder.root)? {
            let is_sample =
                path.starts_with("config/samples") && !path.ends_with("kustomization.yaml");
            if is_sample {
                let text = std::fs::read_to_string(self.folder.root.join(&path))?;
                let object = serde_saphyr::from_str(&text);
                objects.push(object.with_context(|| format!("{} is no YAML", path.display()))?);
            }
        }
        Ok(objects)
    }
}

/// Takes away the kubeconfig of a cluster that is no more.
fn forget(kubeconfig: &Path) {
    // What cannot be removed is in nobody's way: the next one is written over it.
    let _ = std::fs::remove_file(kubeconfig);
    if let Some(folder) = kubeconfig.parent() {
        let _ = std::fs::remove_dir(folder);
    }
}
