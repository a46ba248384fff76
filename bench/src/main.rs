//! `kubewright-bench`: measures API servers as their users see them, over TLS, from another process.
//!
//! `cargo xtask bench server` builds it and the server in release and runs it. Where a kube-apiserver and an etcd are
//! on PATH, they are measured by the same client in the same run.

mod cost;
mod fan_out;
mod figure;
mod growth;
mod load;
mod machine;
mod objects;
mod report;
mod single;
mod stopwatch;
mod target;
mod upstream;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;

use figure::Figure;
use target::Target;

/// Measure API servers over TLS.
#[derive(Parser)]
struct Arguments {
    /// The `kubewright` to measure
    #[arg(long)]
    kubewright: PathBuf,
    /// Write the figures to this file as well
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// A tenth of everything: to see that it runs, not for figures
    #[arg(long)]
    quick: bool,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    /// 1, or 10 for a tenth of everything.
    divisor: usize,
}

impl Amount {
    /// This many, or a tenth of it.
    pub(crate) fn of(self, full: usize) -> usize {
        full.div_ceil(self.divisor)
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let amount = Amount {
        divisor: if arguments.quick { 10 } else { 1 },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let before = machine::load_average();
    let ours = Target::Kubewright(arguments.kubewright);
    let mut columns = vec![(
        "kubewright".to_owned(),
        runtime.block_on(measure(&ours, amount))?,
    )];
    if let Some(upstream) = upstream::on_path() {
        let name = upstream.name.clone();
        let target = Target::Upstream(upstream);
        columns.push((name, runtime.block_on(measure(&target, amount))?));
    }
    let machine = machine::describe(&before);
    report::print(&columns, &machine);
    let costs = runtime.block_on(cost::measure(&ours, amount))?;
    cost::print(&costs);
    if let Some(path) = arguments.write {
        let page = report::markdown(&columns, &machine) + &cost::markdown(&costs);
        std::fs::write(&path, page).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

async fn measure(target: &Target, amount: Amount) -> Result<Vec<Figure>> {
    let mut figures = single::measure(target, amount).await?;
    figures.extend(fan_out::measure(target, amount).await?);
    figures.extend(growth::measure(target, amount).await?);
    Ok(figures)
}
