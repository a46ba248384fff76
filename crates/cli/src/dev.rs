//! `kubewright dev`: a cluster, the kinds, and the program, built again when a source changes.

mod child;
mod sources;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use kubewright_cluster::Cluster;
use kubewright_manifests::layout::{self, Settings};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::folder::{Folder, Place};
use crate::notes;
use crate::program::{self, Profile};
use crate::remote::apply::Applying;
use crate::remote::wait;
use crate::up::{shell_path, wait_for_signal};
use child::Running;
use sources::Sources;

/// How often sources are looked at.
const LOOK: Duration = Duration::from_millis(300);
/// How long kinds may take to be served; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Start a cluster, install the kinds, run the program, and build it again when a source changes
///
/// The cluster lives in this process and ends with it. kubectl gets in with the kubeconfig that is written at start. What
/// stands behind -- goes to the program.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright dev\n  \
    kubewright dev --nodes 3 -- --log-level debug\n  \
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

    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,

    #[command(flatten)]
    place: Place,
}

/// What runs, and what it is made from.
struct Session<'a> {
    folder: &'a Folder,
    client: kube::Client,
    kubeconfig: PathBuf,
    arguments: &'a [String],
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
        let cluster = Cluster::builder().nodes(self.nodes).start().await?;
        let endpoint = cluster.listen(([127, 0, 0, 1], self.port).into()).await?;
        let kubeconfig = folder.root.join(".kubewright/kubeconfig");
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
        let session = Session {
            folder,
            client: cluster.client(),
            kubeconfig,
            arguments: &self.arguments,
            samples: self.samples,
        };
        let mut running = None;
        // A signal is the way to end, whatever is under way.
        let ended = tokio::select! {
            biased;
            signal = wait_for_signal() => signal,
            ended = session.follow(&mut running) => ended,
        };
        println!("Stopping.");
        let stop = async {
            if let Some(program) = running {
                program.stop().await;
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
        session.forget();
        ended
    }
}

impl Session<'_> {
    /// Keeps the program running as its sources are.
    async fn follow(&self, running: &mut Option<Running>) -> anyhow::Result<()> {
        let mut sources = Sources::look(&self.folder.root);
        *running = match self.build().await {
            Ok(program) => Some(self.start(&program)?),
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
                Ok(program) => {
                    if let Some(old) = running.take() {
                        old.stop().await;
                    }
                    *running = Some(self.start(&program)?);
                }
                Err(error) => drop(self.tell(&error)),
            }
        }
    }

    /// Builds the program and installs its kinds.
    async fn build(&self) -> anyhow::Result<PathBuf> {
        let began = Instant::now();
        let project = &self.folder.project;
        let program = program::build(self.folder, Profile::Debug).await?;
        let inventory = program::inventory(&program).await?;
        notes::tell(notes::webhooks(&inventory).as_deref());
        let mut kinds = layout::deployed(project, &inventory, &Settings::default())?;
        kinds.retain(|object| object["kind"] == "CustomResourceDefinition");
        let applying = Applying {
            dry_run: false,
            force_conflicts: true,
        };
        let applied = applying.all(&self.client, &kinds).await?;
        wait::until_ready(&applied, None, PATIENCE).await?;
        println!("Built in {:.1?}.", began.elapsed());
        Ok(program)
    }

    /// Takes away the kubeconfig of a cluster that is no more.
    fn forget(&self) {
        // What cannot be removed is in nobody's way: the next one is written over it.
        let _ = std::fs::remove_file(&self.kubeconfig);
        if let Some(folder) = self.kubeconfig.parent() {
            let _ = std::fs::remove_dir(folder);
        }
    }

    fn start(&self, program: &Path) -> anyhow::Result<Running> {
        Running::start(program, &self.folder.root, &self.kubeconfig, self.arguments)
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
