//! `kubewright demo`: a cluster, an operator, and what happens between them, live.

mod screen;
mod story;
mod tree;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::CustomResourceExt;
use kubewright_cluster::Cluster;
use kubewright_console::LocalOperator;
use kubewright_demo::{self as cloud_manager, CloudManager, Phase};
use kubewright_runtime::controller::{Handle, Reconciled};
use kubewright_runtime::metrics::Metrics;
use kubewright_runtime::{Client, Key, Manager};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};
use tokio_util::sync::CancellationToken;

use crate::page::{self, Forks};
use crate::up::{shell_path, wait_for_signal};
use screen::Screen;
use story::Story;

/// How often the picture is looked at.
const FRAME: Duration = Duration::from_millis(50);
/// How long it may take until everything is ready; it takes about a second.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Show an operator at work: a cluster, a custom resource, and what becomes of it
///
/// Starts a cluster in this process, installs the kind CloudManager, runs its operator (crates/demo), applies a
/// sample, and shows live what happens: the objects and their states, events, reconciles and why each ran. When all is
/// ready it keeps running, so that kubectl can be tried on it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright demo\n  \
    kubewright demo --exit-when-ready      for scripts: ends with success once the phase is ready")]
pub(crate) struct Demo {
    /// End as soon as everything is ready
    #[arg(long)]
    exit_when_ready: bool,

    /// How many simulated nodes there are
    #[arg(long, default_value_t = 3)]
    nodes: usize,

    /// Where to write the kubeconfig
    #[arg(long, default_value = ".kubewright/kubeconfig")]
    kubeconfig: PathBuf,
}

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime could not be started")?;
        runtime.block_on(self.show())
    }

    async fn show(self) -> anyhow::Result<()> {
        let began = Instant::now();
        let cluster = Arc::new(Cluster::builder().nodes(self.nodes).start().await?);
        let endpoint = cluster.listen("127.0.0.1:0".parse()?).await?;
        endpoint
            .write_kubeconfig(&self.kubeconfig)
            .with_context(|| {
                format!(
                    "the kubeconfig could not be written to {}",
                    self.kubeconfig.display()
                )
            })?;
        let mut screen = Screen::new(std::io::stdout().is_terminal());
        screen.say(&format!(
            "A cluster of {} nodes runs in this process since {:.0?}.",
            self.nodes,
            began.elapsed()
        ));
        let user = Client::new(cluster.client());
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        let controller = cloud_manager::controller();
        let handle = controller.handle();
        user.create(&CloudManager::crd()).await?;
        screen.say("The kind CloudManager is installed, its operator runs, the sample is applied.");
        let manager = Manager::new(cluster.client())
            .name("CloudManager")
            .controller(controller);
        let metrics = manager.metrics().clone();
        running.spawn(manager.run_until(stop.clone()));
        let console = if self.exit_when_ready {
            None
        } else {
            let page = page::of(&cluster, &endpoint).await;
            let snapshots = Forks::of(&cluster, &self.kubeconfig);
            let page = page.snapshots(Arc::new(snapshots));
            page::beside(page.operator(operator(&handle, metrics))).await
        };
        if let Some(console) = &console {
            screen.say(&format!("See it in a browser: {}", console.link()));
        }
        user.create(&cloud_manager::sample()?).await?;
        let mut story = Story::new(Instant::now());
        let followed = self.follow(&mut story, &user, &handle, &mut screen, &mut running);
        // Ctrl-C ends the wait as well as what comes after it.
        let ready = tokio::select! {
            followed = followed => followed,
            signal = wait_for_signal() => signal.and_then(|()| bail!("stopped before it was ready")),
        };
        let ended = match ready {
            Ok(took) if self.exit_when_ready => {
                screen.say(&format!("phase: ready, after {took:.2?}"));
                Ok(())
            }
            Ok(took) => {
                self.advise(took, &mut story);
                stay(&mut story, &user, &handle, &mut screen).await
            }
            Err(error) => Err(error),
        };
        stop.cancel();
        while running.join_next().await.is_some() {}
        user.factory().shutdown().await;
        page::stop(console, cluster, endpoint).await;
        ended
    }

    /// Shows what happens until the sample is ready. Gives the time it took.
    async fn follow(
        &self,
        story: &mut Story,
        user: &Client,
        handle: &Handle,
        screen: &mut Screen,
        running: &mut JoinSet<Result<(), kubewright_runtime::manager::ManagerError>>,
    ) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let mut frames = interval(FRAME);
        loop {
            tokio::select! { biased; // An operator that ended explains why nothing happens.
                Some(ended) = running.join_next() => {
                    ended.context("the operator panicked")?.context("the operator ended")?;
                    bail!("the operator ended");
                }
                _ = frames.tick() => {}
            }
            story.look(user, handle).await?;
            screen.show(story);
            if phase(user).await? == Some(Phase::Ready) {
                return Ok(began.elapsed());
            }
            if began.elapsed() > READY_WITHIN {
                bail!("not ready within {READY_WITHIN:?}: run with KUBEWRIGHT_LOG=info to see why");
            }
        }
    }

    /// Says what to try.
    fn advise(&self, took: Duration, story: &mut Story) {
        let kubectl = format!("kubectl --kubeconfig {}", shell_path(&self.kubeconfig));
        story.note(&format!("phase: ready, after {took:.2?}"));
        story.note("Try, in another terminal:");
        for command in [
            "get cloudmanagers,deployments,statefulsets,pods",
            "describe cloudmanager cloudmanager-sample",
            "delete deployment ake-front                 # it comes back",
            "edit cloudmanager cloudmanager-sample       # other replicas, images, names",
            "delete cloudmanager cloudmanager-sample     # all of it goes",
        ] {
            story.note(&format!("  {kubectl} {command}"));
        }
        story.note("Ctrl-C stops it.");
    }
}

/// Goes on showing what happens until Ctrl-C.
async fn stay(
    story: &mut Story,
    user: &Client,
    handle: &Handle,
    screen: &mut Screen,
) -> anyhow::Result<()> {
    let mut frames = interval(FRAME);
    loop {
        tokio::select! { biased; // The end is worth most.
            signal = wait_for_signal() => return signal,
            _ = frames.tick() => {}
        }
        story.look(user, handle).await?;
        screen.show(story);
    }
}

/// The operator of the demo as the console shows it: its reconciles with the version of each write, and its queue.
fn operator(handle: &Handle, metrics: Metrics) -> LocalOperator {
    let history = handle.history().clone();
    let causes = move || {
        let list = history.list();
        // The controller has the name of its queue.
        let name = list
            .first()
            .map(|reconciled| reconciled.controller.to_string());
        let runs: Vec<Value> = list.iter().map(Reconciled::to_page).collect();
        json!({name.unwrap_or_default(): runs})
    };
    LocalOperator::new("CloudManager", Arc::new(causes)).metrics(Arc::new(move || metrics.render()))
}

async fn phase(user: &Client) -> anyhow::Result<Option<Phase>> {
    let key = Key::new("default", "cloudmanager-sample");
    let manager = user.get::<CloudManager>(&key).await?;
    Ok(manager.and_then(|manager| manager.status.as_ref()?.phase))
}
