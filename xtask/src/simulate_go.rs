//! `cargo xtask simulate-go`: an operator in Go through every single fault, with a bug and without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::clients::go;
use crate::lanes::{self, AllowMissing};
use crate::process::{self, End};
use crate::workspace::{self, Profile};

/// How long the command may be silent. It says how far it is every ten seconds.
const PATIENCE: Duration = Duration::from_secs(300);
const FRUIT: &str = include_str!("../../examples/fruit/crd.yaml");
/// The steps of the workload.
const STEPS: [&str; 3] = ["1-create.yaml", "2-change.yaml", "3-remove.delete.yaml"];

/// Simulate an operator in Go, on controller-runtime, that has a bug; and the same without it
///
/// `kubewright simulate --program` takes the operator in xtask/lanes/go/simulated through every single fault. With
/// --status-first it writes its status before what the status is about, which a crash in between shows: that has to be
/// found. Without the bug nothing may be. Go modules are those that go.mod pins.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Run so many plans of each, evenly spread
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// How many runs are made at once
    #[arg(long, value_name = "COUNT")]
    jobs: Option<usize>,
    /// Use this command instead of building it
    #[arg(long, value_name = "FILE")]
    kubewright: Option<PathBuf>,
    #[command(flatten)]
    missing: AllowMissing,
}

/// What a campaign came to.
struct Outcome {
    plans: u64,
    seconds: u64,
    /// The violation and the plan of each failure.
    failures: Vec<(String, String)>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let built = match go::command("simulated")? {
        Ok(command) => command.get_program().to_owned(),
        Err(missing) => return Ok(arguments.missing.end(&[missing])),
    };
    let kubewright = match &arguments.kubewright {
        Some(path) => path.clone(),
        None => workspace::build("kubewright-cli", "kubewright", Profile::Debug)?,
    };
    let folder = lanes::installed("simulate-go")?;
    let workload = workload(&folder)?;
    let operator = Path::new(&built).display().to_string();
    let buggy = simulate(
        arguments,
        &kubewright,
        &workload,
        &format!("{operator} --status-first"),
    )?;
    show("status before its effect", &buggy);
    let fixed = simulate(arguments, &kubewright, &workload, &operator)?;
    show("fixed", &fixed);
    let is_found = |(violation, _): &(String, String)| violation.contains("configmaps");
    let found = buggy.failures.iter().any(is_found);
    match (found, fixed.failures.is_empty()) {
        (true, true) => Ok(ExitCode::SUCCESS),
        (false, _) => bail!("the bug was not found"),
        (true, false) => bail!("the operator without the bug has failures"),
    }
}

/// Puts the workload together: its definition, and its steps.
fn workload(folder: &Path) -> Result<PathBuf> {
    let workload = folder.join("workload");
    let setup = workload.join("setup");
    fs::create_dir_all(&setup).with_context(|| format!("making {}", setup.display()))?;
    fs::write(setup.join("fruit.yaml"), FRUIT).context("writing the definition")?;
    for step in STEPS {
        let from = workspace::root().join("xtask/lanes/simulate").join(step);
        fs::copy(&from, workload.join(step))
            .with_context(|| format!("copying {}", from.display()))?;
    }
    Ok(workload)
}

fn simulate(
    arguments: &Arguments,
    kubewright: &Path,
    workload: &Path,
    operator: &str,
) -> Result<Outcome> {
    let report = workload.with_file_name("report");
    let mut command = Command::new(kubewright);
    command
        .args(["simulate", "--program", operator, "--workload"])
        .arg(workload)
        .arg("--report")
        .arg(&report)
        .env("KUBEWRIGHT_SIM_PROGRESS", "1");
    for (flag, value) in [("--sample", arguments.sample), ("--jobs", arguments.jobs)] {
        if let Some(value) = value {
            command.args([flag, &value.to_string()]);
        }
    }
    let file = report.join("program.json");
    let _ = fs::remove_file(&file);
    let began = SystemTime::now();
    let output = process::run(&mut command, "", PATIENCE)?;
    let text = fs::read_to_string(&file).with_context(|| {
        format!(
            "no report, {:?}: {}{}",
            output.end, output.stdout, output.stderr
        )
    })?;
    let report: Value = serde_json::from_str(&text).context("the report is JSON")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let failures = report["failures"].as_array().into_iter().flatten();
    let failures: Vec<_> = failures
        .map(|it| (text(&it["violation"]), text(&it["plan"])))
        .collect();
    if (output.end == End::Exited(0)) != failures.is_empty() {
        bail!("the exit code and the report disagree: {:?}", output.end);
    }
    Ok(Outcome {
        plans: report["plans"].as_u64().unwrap_or_default(),
        seconds: began.elapsed().unwrap_or_default().as_secs(),
        failures,
    })
}

fn show(name: &str, outcome: &Outcome) {
    let Outcome {
        plans,
        seconds,
        failures,
    } = outcome;
    println!(
        "{name:<28}{plans} plans in {seconds} s, {} failed",
        failures.len()
    );
    for (violation, plan) in failures.iter().take(6) {
        println!("    {violation}\n      {plan}");
    }
}
