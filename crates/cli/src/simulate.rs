//! `kubewright simulate`: an operator through every single fault.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kubewright_sim::{Campaign, Plan, Program, Report};
use tokio_util::sync::CancellationToken;

use crate::folder::Place;
use crate::program::cargo;
use crate::up::wait_for_signal;

/// What the names of simulation tests have in common: the module that they are in.
const TESTS: &str = "simulation";

/// Run an operator through every single fault, and compare what becomes of it
///
/// In a project this runs the tests in src/controller/*/simulation.rs, which `create api` writes: the operator goes through
/// its workload once without faults, and then once for every crash, lost answer, refusal, broken watch and view of the past
/// that it has a place for, in virtual time. Every failure comes with a token that repeats it.
///
/// With --program it does the same to a program in any language, which finds its API server by KUBECONFIG. The workload is a
/// directory: what is in setup/ is created first, each *.yaml beside it is a step that is applied, *.delete.yaml one that is
/// deleted. The clock is real, so a run takes seconds; several run at once. The program must not bind fixed ports.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    kubewright simulate                                   the plans that the tests sample\n  \
    kubewright simulate --full --report target/simulation every plan, and reports as JSON and HTML\n  \
    kubewright simulate --seeds 1000                      several faults at once, a thousand times\n  \
    kubewright simulate --replay 'guestbook:crash-after:guestbook,patch,guestbooks.webapp.my.domain/status,default/sample,5b1e#1'\n  \
    kubewright simulate --program './manager --metrics-bind-address=0' --workload simulation/\n\n\
    The command fails if a plan does."
)]
pub(crate) struct Simulate {
    /// Only tests with this in their name
    #[arg(value_name = "TEST", conflicts_with = "program")]
    test: Option<String>,

    /// Run so many seeds of tests that have any: several faults at once, in other orders
    #[arg(long, value_name = "COUNT")]
    seeds: Option<u64>,

    /// How many runs are made at once
    #[arg(long, value_name = "COUNT")]
    jobs: Option<usize>,

    /// Repeat the one run that a report names
    #[arg(long, value_name = "TOKEN")]
    replay: Option<String>,

    /// Write reports into this directory, as JSON and as HTML
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,

    /// Run every plan, where tests or --sample take some of them
    #[arg(long)]
    full: bool,

    /// Build optimised: worth it from a few hundred plans on
    #[arg(long, conflicts_with = "program")]
    release: bool,

    /// Simulate the program of this command line instead of a project
    #[arg(long, value_name = "COMMAND", requires = "workload")]
    program: Option<String>,

    /// The directory with the steps of the workload
    #[arg(long, value_name = "DIR", requires = "program")]
    workload: Option<PathBuf>,

    /// Run so many of the program's plans: one of each kind of fault, and others evenly spread
    #[arg(long, value_name = "COUNT", requires = "program")]
    sample: Option<usize>,

    /// How many seconds nothing may happen until a step of the program counts as done
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 2.5,
        requires = "program"
    )]
    settle: f64,

    #[command(flatten)]
    place: Place,
}

impl Simulate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.program {
            Some(_) => self.run_program(),
            None => self.run_tests(),
        }
    }

    /// Lets cargo take the place of this process, so that signals and the exit code are its own. Only where one run is repeated,
    /// this process stays: whether any campaign had that run is known when all have been asked.
    fn run_tests(self) -> anyhow::Result<()> {
        let folder = self.place.open()?;
        let wanted = self.test.as_deref().unwrap_or(TESTS);
        // Unit and integration tests, in whichever targets there are: no campaign is in an example or in documentation, which
        // cargo would build as well.
        let cargo_test = || {
            let mut command = Command::new(cargo());
            command.current_dir(&folder.root).args(["test", "--tests"]);
            command.args(self.release.then_some("--release"));
            command
        };
        check_there_are(wanted, cargo_test())?;
        let mut command = cargo_test();
        command
            .arg(wanted)
            .args(["--", "--nocapture", "--test-threads=1"])
            .env("KUBEWRIGHT_SIM_PROGRESS", "1");
        if self.full {
            command.env("KUBEWRIGHT_SIM", "full");
        }
        let report = self.report.as_ref().map(std::path::absolute).transpose()?;
        let settings = [
            ("KUBEWRIGHT_SIM_SEEDS", self.seeds.map(|it| it.to_string())),
            ("KUBEWRIGHT_SIM_JOBS", self.jobs.map(|it| it.to_string())),
            (
                "KUBEWRIGHT_REPORTS",
                report.map(|it| it.display().to_string()),
            ),
        ];
        for (name, value) in settings {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        if let Some(token) = &self.replay {
            return replay(token, command);
        }
        bail!(anyhow::Error::new(command.exec()).context("cargo cannot be run"));
    }

    fn run_program(self) -> anyhow::Result<()> {
        let cancel = CancellationToken::new();
        let campaign = self.campaign(cancel.clone())?;
        let plan = self.replay.as_deref().map(plan_of).transpose()?;
        watch_signals(cancel.clone())?;
        let report = match (&plan, self.seeds) {
            (Some(plan), _) => campaign.replay(plan),
            (None, Some(seeds)) => campaign.simulate(0..seeds),
            (None, None) => campaign.run(),
        };
        if cancel.is_cancelled() {
            bail!("interrupted; the processes that were running have been ended");
        }
        self.tell(&report)
    }

    fn campaign(&self, cancel: CancellationToken) -> anyhow::Result<Campaign> {
        let (Some(command), Some(workload)) = (&self.program, &self.workload) else {
            bail!("--program and --workload go together");
        };
        if !(0.1..=600.0).contains(&self.settle) {
            bail!("--settle is between 0.1 and 600 seconds");
        }
        let settle = Duration::from_secs_f64(self.settle);
        let campaign = Campaign::of_program("program", Program::new(command));
        let mut campaign = campaign
            .workload(workload)
            .context("the workload cannot be used")?
            .settle(settle)
            .quiet(settle)
            .cancelled_by(cancel);
        if let Some(jobs) = self.jobs {
            campaign = campaign.jobs(jobs);
        }
        if let Some(sample) = self.sample.filter(|_| !self.full) {
            campaign = campaign.sample(sample);
        }
        Ok(campaign)
    }

    fn tell(&self, report: &Report) -> anyhow::Result<()> {
        if let Some(directory) = &self.report {
            let written = report.write(directory);
            written.with_context(|| format!("{} cannot be written", directory.display()))?;
        }
        // What repeats a run of a test is a variable; here it is a flag.
        let text = report.to_string();
        let text = text.replace("KUBEWRIGHT_REPLAY='", "--replay '");
        let text = text.replace("' cargo test \n", "'\n");
        let mut out = std::io::stdout().lock();
        write!(out, "{text}").context("the report cannot be shown")?;
        if !report.is_clean() {
            bail!("{} of {} plans failed", report.failures.len(), report.plans);
        }
        Ok(())
    }
}

/// Fails if no test has this in its name: cargo takes that for a success.
fn check_there_are(wanted: &str, mut cargo_test: Command) -> anyhow::Result<()> {
    let listed = cargo_test
        .args(["--", "--list"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be run")?;
    if !listed.status.success() {
        bail!("the tests cannot be built");
    }
    let listed = String::from_utf8_lossy(&listed.stdout);
    let tests: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .collect();
    if tests.iter().any(|test| test.contains(wanted)) {
        return Ok(());
    }
    let known = tests.into_iter().filter(|test| test.contains(TESTS));
    let known = known.collect::<Vec<_>>().join(", ");
    if known.is_empty() {
        bail!("there is no test with {wanted} in its name, and none of a simulation");
    }
    bail!("there is no test with {wanted} in its name; there are: {known}")
}

/// Repeats the one run of a token, and fails if no campaign has it.
fn replay(token: &str, mut command: Command) -> anyhow::Result<()> {
    let Some((name, _)) = token.split_once(':') else {
        bail!("{token} is not a token, which is NAME:PLAN, as a report prints it");
    };
    let asked = tempfile::NamedTempFile::new().context("no temporary file can be made")?;
    let status = command
        .env("KUBEWRIGHT_REPLAY", token)
        .env("KUBEWRIGHT_SIM_CAMPAIGNS", asked.path())
        .status()
        .context("cargo cannot be run")?;
    if !status.success() {
        bail!("the run failed");
    }
    let names = std::fs::read_to_string(asked.path()).context("no names of campaigns are there")?;
    let names: BTreeSet<&str> = names.lines().collect();
    if names.contains(name) {
        return Ok(());
    }
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        bail!("nothing was run: the tests have no campaign");
    }
    bail!("nothing was run: no campaign is called {name}; there are: {names}")
}

/// Reads a token, with the name of the campaign or without it.
fn plan_of(token: &str) -> anyhow::Result<Plan> {
    let plan = token.strip_prefix("program:").unwrap_or(token);
    plan.parse().context("--replay")
}

/// Cancels at the first signal.
fn watch_signals(cancel: CancellationToken) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("signals cannot be received")?;
    std::thread::spawn(move || {
        // A machine without signals has none to wait for.
        let _ = runtime.block_on(wait_for_signal());
        cancel.cancel();
    });
    Ok(())
}
