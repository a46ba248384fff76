//! `cargo xtask schema`: turns the published API definitions and Go structs into the checked-in type table.

mod definitions;
mod descriptions;
mod golang;
mod render;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;
use sources::Sources;

/// Where the table is kept, from the root of the repository.
const TABLE: &str = "crates/schema/data/kubernetes-1.37.types";

/// Where the descriptions are kept.
const DESCRIPTIONS: &str = "crates/schema/data/kubernetes-1.37.descriptions.gz";

/// Arguments of `cargo xtask schema`. Without paths, the sources are downloaded from their package registries.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// `_definitions.json` of the package kubernetes-validate.
    #[arg(long, requires = "modules")]
    definitions: Option<PathBuf>,
    /// Directory `k8s.io` of a Go module cache.
    #[arg(long, requires = "definitions")]
    modules: Option<PathBuf>,
    /// Compare with the checked-in table instead of writing it.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let root = workspace::root();
    let sources = match (arguments.definitions, arguments.modules) {
        (Some(definitions), Some(modules)) => Sources {
            definitions,
            modules,
        },
        _ => sources::download(&root.join("target/schema-sources"))?,
    };
    let table = generate(&sources)?;
    let path = root.join(TABLE);
    let descriptions = descriptions::text(&sources.definitions)?;
    let packed = root.join(DESCRIPTIONS);
    if arguments.check {
        let found = fs::read(&packed).with_context(|| format!("reading {}", packed.display()))?;
        ensure!(
            descriptions::unpack(&found)? == descriptions,
            "{DESCRIPTIONS} differs from its sources; run `cargo xtask schema`"
        );
        return check(&path, &table);
    }
    fs::write(&packed, descriptions::pack(&descriptions)?)
        .with_context(|| format!("writing {}", packed.display()))?;
    fs::create_dir_all(path.parent().context("the table has a directory")?)?;
    fs::write(&path, &table).with_context(|| format!("writing {}", path.display()))?;
    println!("{TABLE}: {} lines", table.lines().count());
    Ok(())
}

fn generate(sources: &Sources) -> Result<String> {
    let structs = golang::read(&sources.modules)?;
    let types = definitions::read(&sources.definitions, &structs)?;
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
