//! The image by docker or podman, from the Dockerfile of the project.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::folder::Folder;

/// What is asked of the tool.
#[derive(Debug)]
pub(super) struct Dockerfile<'a> {
    pub(super) tool: &'a str,
    pub(super) image: &'a str,
    pub(super) platforms: &'a [String],
}

impl Dockerfile<'_> {
    /// Says what is run; then runs it, unless it is a dry run.
    ///
    /// # Errors
    /// When there is no Dockerfile, or the tool fails.
    pub(super) fn build(&self, folder: &Folder, mode: Mode) -> anyhow::Result<()> {
        if !folder.root.join("Dockerfile").is_file() {
            bail!("there is no Dockerfile; `kubewright init` writes one");
        }
        let (tool, arguments) = (self.tool, self.arguments(folder)?);
        println!("{tool} {}", arguments.join(" "));
        if mode == Mode::DryRun {
            return Ok(());
        }
        let mut command = Command::new(tool);
        let status = command.args(&arguments).current_dir(&folder.root).status();
        let status = status.with_context(|| format!("{tool} cannot be run"))?;
        if !status.success() {
            bail!("{tool} failed; it says why above");
        }
        let image = self.image;
        println!("\nNext: {tool} push {image} && kubewright deploy --image {image}");
        Ok(())
    }

    fn arguments(&self, folder: &Folder) -> anyhow::Result<Vec<String>> {
        let mut arguments = vec![
            "build".to_owned(),
            "--tag".to_owned(),
            self.image.to_owned(),
        ];
        if !self.platforms.is_empty() {
            arguments.extend(["--platform".to_owned(), self.platforms.join(",")]);
        }
        if let Some(root) = sdk_root(&folder.root)? {
            arguments.push("--build-context".to_owned());
            arguments.push(format!("sdk={}", root.display()));
        }
        arguments.push(".".to_owned());
        Ok(arguments)
    }
}

/// Whether the build runs, or is only printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Run,
    DryRun,
}

/// The checkout of the toolkit that the Dockerfile wants as a context, if it wants one.
fn sdk_root(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    let file = root.join("Dockerfile");
    let text = std::fs::read_to_string(&file).context("the Dockerfile cannot be read")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("COPY --from=sdk . "));
    Ok(line.map(|path| root.join(path.trim())))
}
