//! Builds the program of a project and asks it what it consists of.

mod hints;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kubewright_manifests::{FORMAT, Inventory};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::folder::Folder;
use crate::remote::block_on;

/// The most that a program may say of itself.
const MAX_INVENTORY: u64 = 64 << 20;
/// How long it may take to say it; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// What makes the C library a part of the program.
const STATIC: &str = "target-feature=+crt-static";

/// Where the inventory of a program comes from.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct Source {
    /// Read what the program consists of from this file instead of building and asking it
    #[arg(long, value_name = "FILE", hide = true)]
    inventory: Option<PathBuf>,
}

/// How the program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
}

/// What a program is compiled for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The Rust target; without one that of this machine.
    pub(crate) triple: Option<&'static str>,
    pub(crate) c_library: CLibrary,
}

/// How a program gets the C library of its target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CLibrary {
    /// As is usual for the target.
    #[default]
    Usual,
    /// As a part of the program.
    Static,
}

impl Target {
    /// Has cargo compile for this target. Flags that were given for the compiler are kept.
    fn apply(self, command: &mut Command) {
        let Some(triple) = self.triple else {
            return;
        };
        command.arg(format!("--target={triple}"));
        if self.c_library == CLibrary::Usual {
            return;
        }
        match std::env::var("RUSTFLAGS") {
            // The variable takes the place of what is configured.
            Ok(flags) => command.env("RUSTFLAGS", format!("{flags} -C {STATIC}")),
            Err(_) => command.arg("--config").arg(format!(
                "target.{triple}.rustflags = [\"-C\", \"{STATIC}\"]"
            )),
        };
    }
}

/// A line of what cargo says in JSON.
#[derive(Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    message: Option<Diagnostic>,
}

/// What the compiler says.
#[derive(Deserialize)]
struct Diagnostic {
    message: String,
    rendered: Option<String>,
}

impl Source {
    /// What the program of a project consists of.
    ///
    /// # Errors
    /// When it cannot be built, or does not answer.
    pub(crate) fn inventory(&self, folder: &Folder) -> anyhow::Result<Inventory> {
        let Some(file) = &self.inventory else {
            return block_on(async {
                let program = build(folder, Profile::Debug).await?;
                inventory(&program).await
            });
        };
        let text = fs::read_to_string(file)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        read(&text).with_context(|| format!("{} is not an inventory", file.display()))
    }
}

/// Builds the program and says where it is. What the compiler says goes to the terminal. Whoever does not wait for it any
/// more ends it.
///
/// # Errors
/// When it cannot be built; the compiler has printed why.
pub(crate) async fn build(folder: &Folder, profile: Profile) -> anyhow::Result<PathBuf> {
    build_for(folder, profile, Target::default()).await
}

/// As [`build`], for a target other than that of this machine.
///
/// # Errors
/// When it cannot be built; the compiler has printed why.
pub(crate) async fn build_for(
    folder: &Folder,
    profile: Profile,
    target: Target,
) -> anyhow::Result<PathBuf> {
    let manifest = folder.root.join("Cargo.toml");
    let mut command = Command::new(cargo());
    command
        .args(["build", "--bins"])
        .arg(hints::message_format())
        .args((profile == Profile::Release).then_some("--release"))
        .arg("--manifest-path")
        .arg(&manifest)
        // Settings of a project in `.cargo` are found from the folder in which cargo runs.
        .current_dir(&folder.root)
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    target.apply(&mut command);
    let mut child = command
        .spawn()
        .context("cargo cannot be run; install Rust from https://rustup.rs")?;
    let Built {
        mut programs,
        hints,
    } = match child.stdout.take() {
        Some(out) => built(out, &manifest).await?,
        None => Built::default(),
    };
    let status = child.wait().await.context("cargo was lost")?;
    if !status.success() {
        let hints: String = hints.iter().map(|hint| format!("\n{hint}")).collect();
        bail!("the program does not build; the compiler says why above{hints}");
    }
    match programs.len() {
        0 => bail!("{} builds no program", manifest.display()),
        1 => Ok(programs.remove(0)),
        _ => {
            let name = &folder.project.project_name;
            let named = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem == &**name);
            let found = programs.iter().find(named).cloned();
            found.with_context(|| {
                format!(
                    "{} builds many programs and none is called {name}",
                    manifest.display()
                )
            })
        }
    }
}

/// What came of a build.
#[derive(Debug, Default)]
struct Built {
    /// The programs that cargo says it made for a manifest.
    programs: Vec<PathBuf>,
    /// What to do about errors whose text does not say so.
    hints: BTreeSet<&'static str>,
}

/// Follows a build, and passes on what the compiler says.
async fn built(out: impl AsyncRead + Unpin, manifest: &Path) -> anyhow::Result<Built> {
    let mut found = Built::default();
    let mut lines = BufReader::new(out).lines();
    while let Some(line) = lines.next_line().await.context("cargo was lost")? {
        // Programs that are run while building may write lines of their own.
        let Ok(message) = serde_json::from_str::<Message>(&line) else {
            continue;
        };
        if let Some(diagnostic) = message.message {
            eprint!("{}", diagnostic.rendered.unwrap_or_default());
            found.hints.extend(hints::of(&diagnostic.message));
        }
        let ours = message
            .manifest_path
            .is_some_and(|path| same(&path, manifest));
        if message.reason == "compiler-artifact" && ours {
            found.programs.extend(message.executable);
        }
    }
    Ok(found)
}

fn same(one: &Path, other: &Path) -> bool {
    one == other
        || match (one.canonicalize(), other.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
}

/// What a program says of itself.
///
/// # Errors
/// When it does not answer as expected.
pub(crate) async fn inventory(program: &Path) -> anyhow::Result<Inventory> {
    let mut child = Command::new(program)
        .arg("inventory")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} cannot be run", program.display()))?;
    let out = child.stdout.take().context("the program has no output")?;
    let mut text = String::new();
    let answer = async {
        out.take(MAX_INVENTORY).read_to_string(&mut text).await?;
        child.wait().await
    };
    let answered = timeout(PATIENCE, answer).await.with_context(|| {
        format!("the program did not say what it consists of within {PATIENCE:?}")
    })?;
    let status = answered.context("the program's answer cannot be read")?;
    if !status.success() {
        bail!("{} inventory failed; it says why above", program.display());
    }
    if !text.trim_start().starts_with('{') {
        bail!(
            "{} inventory does not say what the program consists of; src/main.rs has to call kubewright::operator!().run()",
            program.display()
        );
    }
    read(&text).context("what the program says of itself cannot be used")
}

/// Which format an inventory has; a program that knew none does not say.
#[derive(Deserialize)]
struct Format {
    #[serde(default)]
    format: u32,
}

/// Reads what a program says of itself, unless it is newer than this command. One that is older is named.
fn read(text: &str) -> anyhow::Result<Inventory> {
    // The rest of another format may not be readable.
    let Format { format } = serde_json::from_str(text)?;
    let known = Inventory {
        format,
        ..Inventory::default()
    };
    known.check_format()?;
    if format < FORMAT {
        eprintln!(
            "The program was built with an older toolkit than this command: its inventory has format {format}, and {FORMAT} is \
             current. What it does not say of itself is left out; take a newer kubewright in Cargo.toml."
        );
    }
    Ok(serde_json::from_str(text)?)
}

/// The cargo that called us, or the one on the path.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
