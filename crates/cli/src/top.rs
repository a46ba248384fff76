//! `kubewright top`: the objects of a cluster as a live tree in the terminal.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kubewright_console::{Forest, Leaf, LeafHealth, Live};
use tokio::time::{Instant, sleep};

use crate::console;
use crate::picture::{self, Colour, Painted, Picture};
use crate::up::wait_for_signal;

/// How often the picture is drawn at most.
const FRAME: Duration = Duration::from_millis(100);
/// How long a picture stands while nothing changes.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the first state may take with --once.
const FIRST: Duration = Duration::from_secs(30);

/// Show the objects of a cluster as a live tree: what owns what, what fails and why
///
/// Every kind is followed, custom ones included. Trees with something that fails come first, owners before what they own.
/// The picture fits the window and stays when it ends with Ctrl-C. Objects that have no state and own nothing are left out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright top\n  \
    kubewright top --kubeconfig .kubewright/kubeconfig --namespace default\n  \
    kubewright top --once                     prints the tree and ends, for scripts")]
pub(crate) struct Top {
    /// The kubeconfig; otherwise $KUBECONFIG, ~/.kube/config, or the service account of a pod
    #[arg(long)]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig; otherwise its current one
    #[arg(long)]
    context: Option<String>,

    /// Show one namespace; otherwise all of them
    #[arg(long, short)]
    namespace: Option<String>,

    /// Print the tree once it is known, and end
    #[arg(long)]
    once: bool,
}

impl Top {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime could not be started")?;
        runtime.block_on(self.show())
    }

    async fn show(self) -> anyhow::Result<()> {
        let context = self.context.clone();
        let config = console::config(self.kubeconfig.as_deref(), context).await?;
        let own = self.namespace.clone();
        let own = own.unwrap_or_else(|| config.default_namespace.clone());
        let client = kube::Client::try_from(config).context("the kubeconfig cannot be used")?;
        let mut live = Live::new(client, own);
        if self.once || !std::io::stdout().is_terminal() {
            return self.print_once(&mut live).await;
        }
        let mut screen = Picture::default();
        let signal = wait_for_signal();
        tokio::pin!(signal);
        loop {
            let rows = picture::size().rows.saturating_sub(1);
            let forest = live.forest(self.namespace.as_deref());
            screen.draw(lines(&forest, live.trouble().as_deref(), rows));
            tokio::select! { biased; // The end is worth most.
                ended = &mut signal => return ended,
                () = live.changed(PATIENCE) => sleep(FRAME).await,
            }
        }
    }

    async fn print_once(&self, live: &mut Live) -> anyhow::Result<()> {
        let end = Instant::now() + FIRST;
        loop {
            let forest = live.forest(self.namespace.as_deref());
            if forest.starting == 0 {
                for line in lines(&forest, None, usize::MAX) {
                    println!("{}", line.text());
                }
                return Ok(());
            }
            if Instant::now() > end {
                let why = live
                    .trouble()
                    .unwrap_or_else(|| format!("{} kinds are not read yet", forest.starting));
                bail!("the cluster could not be read within {FIRST:?}: {why}");
            }
            live.changed(FRAME).await;
        }
    }
}

/// The picture: a heading, and as much of the tree as fits.
fn lines(forest: &Forest, trouble: Option<&str>, rows: usize) -> Vec<Painted> {
    let count = |health| {
        forest
            .leaves
            .iter()
            .filter(|leaf| leaf.health == health)
            .count()
    };
    let (failing, busy) = (count(LeafHealth::Failing), count(LeafHealth::InProgress));
    let mut heading = Painted::new(Colour::Plain, format!("{} objects", forest.leaves.len()));
    if failing > 0 {
        heading = heading.and(Colour::Bad, format!(", {failing} failing"));
    }
    if busy > 0 {
        heading = heading.and(Colour::Waiting, format!(", {busy} in progress"));
    }
    if forest.starting > 0 {
        heading = heading.and(Colour::Dim, format!(", reading {} kinds", forest.starting));
    }
    if !forest.refused.is_empty() {
        let text = format!(
            ", {} kinds not shown: {}",
            forest.refused.len(),
            forest.refused[0]
        );
        heading = heading.and(Colour::Dim, text);
    }
    let mut all = vec![heading];
    if let Some(trouble) = trouble {
        all.push(Painted::new(Colour::Bad, trouble));
    }
    let room = rows.saturating_sub(all.len());
    let tree = forest.leaves.iter().map(line).collect();
    all.extend(picture::first(tree, room));
    all
}

fn line(leaf: &Leaf) -> Painted {
    let namespace = leaf.namespace.as_deref().filter(|_| leaf.depth == 0);
    let place = namespace
        .map(|namespace| format!("{namespace}/"))
        .unwrap_or_default();
    let name = format!(
        "{}{} {place}{}",
        "  ".repeat(leaf.depth),
        leaf.kind,
        leaf.name
    );
    let (colour, state) = match leaf.health {
        LeafHealth::Failing => (Colour::Bad, leaf.why.as_str()),
        LeafHealth::InProgress => (Colour::Waiting, leaf.why.as_str()),
        LeafHealth::Healthy => (Colour::Good, "healthy"),
        _ => (Colour::Plain, ""),
    };
    Painted::new(Colour::Plain, format!("{name:<46} ")).and(colour, state)
}
