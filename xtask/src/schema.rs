//! `cargo xtask schema`: turns the published API definitions and protobuf tags into the checked-in type table.

mod always;
mod definitions;
mod protobuf;
mod render;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace;
use sources::Sources;

/// Where the table is kept, from the root of the repository.
const TABLE: &str = "crates/schema/data/kubernetes-1.37.types";

/// Arguments of `cargo xtask schema`. Without paths, the sources are downloaded from their package registries.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// `_definitions.json` of the package kubernetes-validate.
    #[arg(long, requires = "protobuf")]
    definitions: Option<PathBuf>,
    /// `src` directory of the crate k8s-pb.
    #[arg(long, requires = "definitions")]
    protobuf: Option<PathBuf>,
    /// Compare with the checked-in table instead of writing it.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let root = workspace::root();
    let sources = match (arguments.definitions, arguments.protobuf) {
        (Some(definitions), Some(protobuf)) => Sources {
            definitions,
            protobuf,
        },
        _ => sources::download(&root.join("target/schema-sources"))?,
    };
    let table = generate(&sources)?;
    let path = root.join(TABLE);
    if arguments.check {
        return check(&path, &table);
    }
    fs::create_dir_all(path.parent().context("the table has a directory")?)?;
    fs::write(&path, &table).with_context(|| format!("writing {}", path.display()))?;
    println!("{TABLE}: {} lines", table.lines().count());
    Ok(())
}

fn generate(sources: &Sources) -> Result<String> {
    let messages = protobuf::read(&sources.protobuf)?;
    let types = definitions::read(&sources.definitions, &messages)?;
    Ok(render::table(&types, &sources.provenance()?))
}

fn check(path: &Path, expected: &str) -> Result<()> {
    let found = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    if found == expected {
        println!("{TABLE} is up to date");
        return Ok(());
    }
    let line = found
        .lines()
        .zip(expected.lines())
        .position(|(found, expected)| found != expected)
        .unwrap_or_else(|| found.lines().count().min(expected.lines().count()));
    bail!(
        "{TABLE} differs from its sources at line {}; run `cargo xtask schema`",
        line + 1
    );
}
