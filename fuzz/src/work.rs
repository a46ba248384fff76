//! Tries inputs of one target until time is up. Panics are caught, made small and written; other ends are for the
//! parent to see.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::time::Instant;

use crate::corpus::Corpus;
use crate::novelty::Novelty;
use crate::progress::Writer;
use crate::targets::{Read, Target, Verdict};
use crate::{finding, mutate};

/// The stack that the server's own threads have: what overflows it here does so there.
const STACK: usize = 2 * 1024 * 1024;
/// Most different panics that are written down.
const MAX_PANICS: usize = 20;
/// Attempts at making an input smaller.
const SHRINK_ATTEMPTS: usize = 2_000;

/// Arguments of the working process.
#[derive(clap::Args, Clone)]
pub(crate) struct Work {
    #[arg(long)]
    pub(crate) target: String,
    #[arg(long)]
    pub(crate) seconds: u64,
    #[arg(long)]
    pub(crate) seed: u64,
    /// Directory with a directory for each target
    #[arg(long)]
    pub(crate) corpus: PathBuf,
    #[arg(long)]
    pub(crate) findings: PathBuf,
    #[arg(long)]
    pub(crate) progress: PathBuf,
}

/// Where the last panic was, as its hook reported.
type LastPanic = Arc<Mutex<String>>;

struct Worker {
    target: &'static Target,
    read: Read,
    last_panic: LastPanic,
    panics: BTreeSet<String>,
    findings: PathBuf,
}

pub(crate) fn run(work: &Work) -> Result<()> {
    let work = work.clone();
    on_a_small_stack(move || try_inputs(&work))?
}

/// Runs something on a thread with the stack of a server's thread.
pub(crate) fn on_a_small_stack<T: Send + 'static>(
    something: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(something)?;
    thread.join().map_err(|_| anyhow::anyhow!("it panicked"))
}

fn try_inputs(work: &Work) -> Result<()> {
    let target = Target::named(&work.target)?;
    let mut corpus = Corpus::read(&work.corpus.join(target.name))?;
    let mut progress = Writer::create(&work.progress).context("the progress file")?;
    let mut worker = Worker {
        target,
        read: target.reader(),
        last_panic: listen_for_panics(),
        panics: BTreeSet::new(),
        findings: work.findings.clone(),
    };
    let mut random = StdRng::seed_from_u64(work.seed);
    let mut novelty = Novelty::default();
    let deadline = Instant::now() + Duration::from_secs(work.seconds);
    let seeds = corpus.seeds().to_vec();
    let mut number = 0;
    let mut accepted = 0_u64;
    while Instant::now() < deadline {
        // The corpus itself comes first: it has to pass as it is.
        let input = match seeds.get(number) {
            Some(seed) => seed.clone(),
            None => mutate::input(&corpus, &mut random),
        };
        number += 1;
        progress.note(number as u64, &input)?;
        let Some(verdict) = worker.try_one(&input)? else {
            continue;
        };
        accepted += u64::from(verdict.is_accepted());
        if novelty.is_new(&verdict.0) {
            corpus.keep(input, &mut random);
        }
    }
    println!(
        "{number} {accepted} {} {}",
        novelty.len(),
        worker.panics.len()
    );
    Ok(())
}

impl Worker {
    /// The target's outcome for an input; nothing when it panicked.
    fn try_one(&mut self, input: &[u8]) -> Result<Option<Verdict>> {
        match catch_unwind(AssertUnwindSafe(|| (self.read)(input))) {
            Ok(verdict) => Ok(Some(verdict)),
            Err(_) => {
                self.panicked(input)?;
                // What the target keeps between inputs may have been left half done.
                self.read = self.target.reader();
                Ok(None)
            }
        }
    }

    fn panicked(&mut self, input: &[u8]) -> Result<()> {
        let place = self.place();
        if self.panics.len() >= MAX_PANICS || !self.panics.insert(place.clone()) {
            return Ok(());
        }
        let small = finding::shrink(input, SHRINK_ATTEMPTS, |smaller| {
            let read = self.target.reader();
            catch_unwind(AssertUnwindSafe(|| read(smaller))).is_err() && self.place() == place
        });
        let path = finding::write(&self.findings, self.target.name, "panic", &small)?;
        let command = finding::replay_command(self.target.name, &path);
        eprintln!("  {}: {place}\n    {command}", self.target.name);
        Ok(())
    }

    fn place(&self) -> String {
        let last = self.last_panic.lock();
        last.map_or_else(|e| e.into_inner().clone(), |last| last.clone())
    }
}

/// Keeps what panics say instead of printing it: the same one may come thousands of times.
fn listen_for_panics() -> LastPanic {
    let last = LastPanic::default();
    let heard = last.clone();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let payload = info.payload();
        let owned = payload.downcast_ref::<String>().map(String::as_str);
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or(owned)
            .unwrap_or("");
        let first: String = text
            .lines()
            .next()
            .unwrap_or("")
            .chars()
            .take(200)
            .collect();
        if let Ok(mut last) = heard.lock() {
            *last = format!("panic at {place}: {first}");
        }
    }));
    last
}
