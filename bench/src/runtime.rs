//! `kubewright-bench runtime`: controllers of kubewright, kube-rs and controller-runtime in one run, and the same operator
//! on two of them.
//!
//! Every controller is a process of its own and takes its turn alone; the best of several turns counts.

mod operator;
mod runner;
mod table;

use std::path::PathBuf;

use anyhow::Result;

use crate::process::Serving;
use crate::reconcile::Outcome;
use crate::{machine, page};
use operator::Operator;
use runner::{Plan, Runner};

/// Measure controllers, and an operator at rest.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The `kubewright` whose server the operators meet
    #[arg(long, value_name = "FILE")]
    kubewright: PathBuf,
    /// The operator of `examples/foo`
    #[arg(long, value_name = "FILE")]
    foo: PathBuf,
    /// The program `peer` of `bench/peers/controller-runtime`
    #[arg(long, value_name = "FILE", requires = "controller_runtime_foo")]
    controller_runtime: Option<PathBuf>,
    /// The operator of `bench/peers/controller-runtime`
    #[arg(long, value_name = "FILE")]
    controller_runtime_foo: Option<PathBuf>,
    /// Why those programs are not there
    #[arg(long, value_name = "TEXT", default_value = "it was not asked for")]
    no_controller_runtime: String,
    /// Write the figures into this page as well
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// A tenth of everything: to see that it runs, not for figures
    #[arg(long)]
    quick: bool,
}

/// Turns of each controller.
const ROUNDS: usize = 2;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    pub(crate) keys: usize,
    pub(crate) events: usize,
    pub(crate) flights: usize,
}

/// All that was found out.
pub(crate) struct Results {
    pub(crate) amount: Amount,
    pub(crate) ours: Figures,
    pub(crate) kube_rs: Figures,
    /// Nothing where there is no Go.
    pub(crate) controller_runtime: Option<Figures>,
    pub(crate) why_no_controller_runtime: String,
}

/// What was found out about one of them. Zero is what was not measured.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Reconciles of keys alone, and of objects.
    pub(crate) keys: Best,
    pub(crate) objects: Best,
    pub(crate) latency: Outcome,
    pub(crate) flight: Outcome,
    pub(crate) operator: Operator,
}

/// The best rate, and with what it was reached.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Best {
    pub(crate) per_second: f64,
    pub(crate) workers: usize,
}

/// Measures, prints, and writes the page if that was asked for.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let before = machine::load_average();
    let amount = if arguments.quick {
        Amount {
            keys: 10_000,
            events: 50,
            flights: 2_000,
        }
    } else {
        Amount {
            keys: 100_000,
            events: 500,
            flights: 20_000,
        }
    };
    let mut figures = controllers(&arguments, amount).await?;
    let server = crate::target::Target::Kubewright(arguments.kubewright);
    figures[0].operator = operator::measure(&server, &arguments.foo, "kubewright").await?;
    if let Some(program) = &arguments.controller_runtime_foo {
        figures[2].operator = operator::measure(&server, program, "controller-runtime").await?;
    }
    let [ours, kube_rs, theirs] = figures;
    let results = Results {
        amount,
        ours,
        kube_rs,
        controller_runtime: arguments.controller_runtime.is_some().then_some(theirs),
        why_no_controller_runtime: arguments.no_controller_runtime,
    };
    let text = table::markdown(&results, &machine::describe(&before));
    println!("{text}");
    if let Some(path) = arguments.write {
        page::replace(&path, "runtime", &text)?;
    }
    Ok(())
}

/// Kubewright, kube-rs, controller-runtime.
async fn controllers(arguments: &Arguments, amount: Amount) -> Result<[Figures; 3]> {
    let runner = Runner::new(arguments.controller_runtime.clone())?;
    let mut figures = [Figures::default(); 3];
    let many = Serving::foos(amount.keys).await?;
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        for (peer, figures) in runner.peers().zip(&mut figures) {
            for plan in peer.rates() {
                let found = runner.measure(peer, &many, plan).await?;
                figures.take_rate(plan, found);
            }
            let plan = Plan::latency(amount.events);
            figures.latency = figures
                .latency
                .best(runner.measure(peer, &many, plan).await?);
        }
    }
    let enough = Serving::foos(amount.flights + runner::SPARE).await?;
    for (peer, figures) in runner.peers().zip(&mut figures) {
        let plan = Plan::flight(peer, amount.flights);
        figures.flight = runner.measure(peer, &enough, plan).await?;
    }
    Ok(figures)
}

impl Figures {
    fn take_rate(&mut self, plan: Plan, found: Outcome) {
        let best = if plan.is_of_objects() {
            &mut self.objects
        } else {
            &mut self.keys
        };
        if found.reconciles_per_second > best.per_second {
            *best = Best {
                per_second: found.reconciles_per_second,
                workers: plan.workers,
            };
        }
    }
}
