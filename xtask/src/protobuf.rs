//! `cargo xtask protobuf`: objects of every kind, in the protobuf of Go and in ours, mean the same.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_schema::decode::{self, Format};
use kubewright_schema::{Table, TypeId, protobuf};
use serde_json::Value;

use crate::clients::go;
use crate::lanes::{AllowMissing, Missing};
use crate::process::{self, End};

/// How long Go's program may be silent.
const PATIENCE: Duration = Duration::from_secs(120);

/// What comes before the protobuf in a line, which is its last field.
const PROTOBUF: &str = "\"protobuf\":\"";

/// Exchange objects of every built-in kind with Go's encoders, both ways
///
/// A program of xtask/lanes/go fills objects at random and writes them as JSON and as protobuf. Ours must read both as the
/// same object; and Go must read what we write of it as the same JSON. Kinds that Go does not have are listed; those that
/// we do not have, alpha and beta versions for the most part, are counted.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Objects of each kind
    #[arg(long, default_value_t = 10)]
    each: u32,
    /// Where the randomness starts
    #[arg(long, default_value_t = 1)]
    seed: u32,
    #[command(flatten)]
    missing: AllowMissing,
}

/// What an exchange showed.
#[derive(Default)]
struct Seen {
    /// Objects of each kind that were exchanged.
    kinds: BTreeMap<String, usize>,
    /// Kinds of Go that are not in our table.
    unknown: BTreeSet<String>,
    /// What Go's protobuf was read as, where it should have been something else.
    wrong: Vec<String>,
    /// The objects in our protobuf, a line each.
    written: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (seed, each) = (arguments.seed.to_string(), arguments.each.to_string());
    let made = match go_program(&["make", &seed, &each], "")? {
        Ok((_, made)) => made,
        Err(missing) => return Ok(arguments.missing.end(&[missing])),
    };
    let mut seen = Seen::default();
    for line in made.lines() {
        seen.exchange(line)?;
    }
    ensure!(!seen.kinds.is_empty(), "Go made nothing");
    let Ok((end, printed)) = go_program(&["check"], &seen.written)? else {
        bail!("Go's program is gone");
    };
    for wrong in &seen.wrong {
        println!("read wrong: {wrong}");
    }
    print!("{printed}");
    let objects: usize = seen.kinds.values().sum();
    println!("{objects} objects of {} kinds", seen.kinds.len());
    println!("{} kinds of Go are not in our table", seen.unknown.len());
    let ours_alone: Vec<String> = ours_alone(&seen).into_iter().collect();
    println!("not in Go's scheme: {}", ours_alone.join(", "));
    Ok(if seen.wrong.is_empty() && end == End::Exited(0) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn go_program(arguments: &[&str], input: &str) -> Result<Result<(End, String), Missing>> {
    let mut command = match go::command("protobuf")? {
        Ok(command) => command,
        Err(missing) => return Ok(Err(missing)),
    };
    command.args(arguments);
    let output = process::run(&mut command, input, PATIENCE)?;
    ensure!(output.stderr.is_empty(), "Go says {}", output.stderr);
    Ok(Ok((output.end, output.stdout)))
}

impl Seen {
    /// Reads an object that Go wrote, and writes it.
    fn exchange(&mut self, line: &str) -> Result<()> {
        let object: Value = serde_json::from_str(line).context("Go makes lines of JSON")?;
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let name = format!("{api_version} {kind}");
        let Some(ty) = type_of(&api_version, &kind) else {
            self.unknown.insert(name);
            return Ok(());
        };
        let table = Table::builtin();
        let json = object["json"].to_string();
        let wanted = decode::decode(table, ty, json.as_bytes(), Format::Json)
            .with_context(|| format!("{name} of Go is no JSON of ours: {json}"))?;
        let bytes = STANDARD.decode(text("protobuf"))?;
        let found = protobuf::decode(table, ty, &bytes);
        if !found.as_ref().is_ok_and(|found| *found == wanted.value) || !wanted.strict.is_empty() {
            let strict = &wanted.strict;
            let wanted = &wanted.value;
            self.wrong.push(format!(
                "{name} {strict:?}\n  wanted {wanted}\n  found  {found:?}"
            ));
        }
        let written = STANDARD.encode(protobuf::encode(table, ty, &wanted.value));
        // The JSON stays as Go wrote it, to the byte.
        let (before, _) = line
            .rsplit_once(PROTOBUF)
            .context("Go's lines end with protobuf")?;
        self.written
            .push_str(&format!("{before}{PROTOBUF}{written}\"}}\n"));
        *self.kinds.entry(name).or_default() += 1;
        Ok(())
    }
}

fn type_of(api_version: &str, kind: &str) -> Option<TypeId> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let ty = Table::builtin().kind(group, version, kind)?;
    protobuf::is_supported(Table::builtin(), ty).then_some(ty)
}

/// Kinds of our table that Go did not make. Every group has the options of requests; those of the core group count.
fn ours_alone(seen: &Seen) -> BTreeSet<String> {
    let kinds = Table::builtin().kinds().iter();
    let named = kinds.filter(|kind| !["DeleteOptions", "WatchEvent"].contains(&&*kind.kind));
    named
        .map(|kind| match &*kind.group {
            "" => format!("{} {}", kind.version, kind.kind),
            group => format!("{group}/{} {}", kind.version, kind.kind),
        })
        .filter(|name| !seen.kinds.contains_key(name))
        .collect()
}
