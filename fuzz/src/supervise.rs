//! Starts a process for each target and watches it: whether it ends as it should, and whether it gets anywhere.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::Instant;

use crate::targets::Target;
use crate::work::Work;
use crate::{finding, progress};

/// How often a process is looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// How many times longer an input may take on the clock than on a processor.
const WAITING: u32 = 30;
/// How often a target is started again after it ended in the middle of an input.
const MAX_STARTS: u64 = 10;

/// Try inputs for a while
#[derive(clap::Args)]
pub(crate) struct Run {
    /// Only this target; can be repeated
    #[arg(long)]
    target: Vec<String>,
    /// How long, for each target
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Where the randomness starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long one input may take on a processor, in milliseconds
    #[arg(long, default_value_t = 2_000)]
    patience: u64,
    /// Directory with a directory for each target
    #[arg(long)]
    corpus: PathBuf,
    /// Directory that findings are written to
    #[arg(long)]
    findings: PathBuf,
}

/// What one target showed.
#[derive(Default)]
struct Summary {
    inputs: u64,
    accepted: u64,
    answers: u64,
    findings: u64,
}

/// How a process ended.
enum End {
    /// Time was up.
    Well(String),
    /// It died, from a stack overflow for example.
    Died(String),
    /// One input took too long.
    Hung,
}

pub(crate) fn run(arguments: &Run) -> Result<ExitCode> {
    let targets = match arguments.target.as_slice() {
        [] => Target::ALL.iter().collect(),
        names => names
            .iter()
            .map(|name| Target::named(name))
            .collect::<Result<Vec<_>>>()?,
    };
    println!(
        "{:<18}{:>10}{:>10}{:>9}{:>10}",
        "target", "inputs", "accepted", "answers", "findings"
    );
    let mut findings = 0;
    for target in targets {
        let summary = watch(target, arguments)?;
        println!(
            "{:<18}{:>10}{:>10}{:>9}{:>10}",
            target.name, summary.inputs, summary.accepted, summary.answers, summary.findings
        );
        findings += summary.findings;
    }
    Ok(match findings {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// One target until its time is up, in as many processes as that takes.
fn watch(target: &Target, arguments: &Run) -> Result<Summary> {
    let folder = tempfile::tempdir()?;
    let deadline = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut summary = Summary::default();
    for start in 0..MAX_STARTS {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        if left == 0 {
            break;
        }
        let work = Work {
            target: target.name.to_owned(),
            seconds: left,
            seed: arguments.seed.wrapping_add(start),
            corpus: arguments.corpus.clone(),
            findings: arguments.findings.clone(),
            progress: folder.path().join("progress"),
        };
        let patience = Duration::from_millis(arguments.patience);
        match attend(&mut spawn(&work)?, &work.progress, patience)? {
            End::Well(line) => summary.add(&line),
            End::Died(how) => summary.findings += left_behind(target, &work, "crash", &how)?,
            End::Hung => {
                let how = format!("an input takes longer than {patience:?}");
                summary.findings += left_behind(target, &work, "hang", &how)?;
            }
        }
    }
    Ok(summary)
}

fn spawn(work: &Work) -> Result<Child> {
    let itself = std::env::current_exe().context("this program cannot find itself")?;
    let (seconds, seed) = (work.seconds.to_string(), work.seed.to_string());
    let mut command = Command::new(itself);
    command
        .args([
            "work",
            "--target",
            &work.target,
            "--seconds",
            &seconds,
            "--seed",
            &seed,
        ])
        .arg("--corpus")
        .arg(&work.corpus)
        .arg("--findings")
        .arg(&work.findings)
        .arg("--progress")
        .arg(&work.progress);
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped());
    piped
        .spawn()
        .context("the working process cannot be started")
}

/// Looks at a process until it ends or stays with one input for too long: in time on a processor, so that a busy machine
/// is not a finding, or in a multiple of it on the clock, so that an input that waits forever is one.
fn attend(child: &mut Child, file: &Path, patience: Duration) -> Result<End> {
    let mut seen = (None, Instant::now(), Duration::ZERO);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() {
                End::Well(output(child))
            } else {
                End::Died(status.to_string())
            });
        }
        let number = progress::read(file).map(|attempt| attempt.number);
        let used = processor_time(child.id());
        if number != seen.0 {
            seen = (number, Instant::now(), used);
        } else if number.is_some()
            && (used.saturating_sub(seen.2) > patience || seen.1.elapsed() > patience * WAITING)
        {
            child.kill()?;
            child.wait()?;
            return Ok(End::Hung);
        }
        // Nobody tells when another process goes on; this looks again.
        thread::park_timeout(INTERVAL);
    }
}

/// The time that a process has spent on a processor; nothing where the system does not tell.
fn processor_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may contain spaces; the times are the 12th and 13th field behind it, in hundredths.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn output(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        // A summary that cannot be read is one of zeros.
        let _ = std::io::Read::read_to_string(&mut pipe, &mut text);
    }
    text
}

/// Keeps the input that a process ended with.
fn left_behind(target: &Target, work: &Work, what: &str, how: &str) -> Result<u64> {
    let attempt = progress::read(&work.progress);
    let input = attempt.map(|attempt| attempt.input).unwrap_or_default();
    let path = finding::write(&work.findings, target.name, what, &input)?;
    let command = finding::replay_command(target.name, &path);
    eprintln!("  {}: {how}\n    {command}", target.name);
    Ok(1)
}

impl Summary {
    /// Adds what a process printed at its end.
    fn add(&mut self, line: &str) {
        let mut numbers = line.split_whitespace().map(|n| n.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        self.inputs += next();
        self.accepted += next();
        self.answers += next();
        self.findings += next();
    }
}
