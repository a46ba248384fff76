//! `kubewright image`: the program as a container image.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use crate::folder::{Folder, Place};

/// Build the image of the manager
#[derive(Debug, Args)]
pub(crate) struct Image {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Build(Build),
}

/// Build the image with docker or podman
///
/// The Dockerfile builds a static program and puts it alone into an empty image, to run as user 65532.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright image build --image registry.example.com/guestbook:1.0\n  \
    kubewright image build --platform linux/amd64,linux/arm64\n  \
    kubewright image build --container-tool podman --dry-run")]
struct Build {
    /// The name of the image; without it the project's
    #[arg(long)]
    image: Option<String>,

    /// What machines it is for, such as linux/arm64; without it this one
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    platform: Vec<String>,

    /// docker or podman; without it the first that is there
    #[arg(long, value_name = "PROGRAM")]
    container_tool: Option<String>,

    /// Say what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    place: Place,
}

impl Image {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let What::Build(build) = self.what;
        build.run()
    }
}

impl Build {
    fn run(self) -> anyhow::Result<()> {
        let folder = self.place.open()?;
        if !folder.root.join("Dockerfile").is_file() {
            bail!("there is no Dockerfile; `kubewright init` writes one");
        }
        let arguments = self.arguments(&folder)?;
        let Some(tool) = self.container_tool.clone().or_else(find_tool) else {
            bail!(
                "neither docker nor podman is there. On a machine that has one of them, run in this folder:\n  \
                 docker {}",
                arguments.join(" ")
            );
        };
        println!("{tool} {}", arguments.join(" "));
        if self.dry_run {
            return Ok(());
        }
        let mut command = Command::new(&tool);
        let status = command.args(&arguments).current_dir(&folder.root).status();
        let status = status.with_context(|| format!("{tool} cannot be run"))?;
        if !status.success() {
            bail!("{tool} failed; it says why above");
        }
        let image = self.name(&folder);
        println!("\nNext: {tool} push {image} && kubewright deploy --image {image}");
        Ok(())
    }

    fn name(&self, folder: &Folder) -> String {
        let given = self
            .image
            .clone()
            .or_else(|| folder.project.options().image);
        given.unwrap_or_else(|| format!("{}:0.1.0", folder.project.project_name))
    }

    fn arguments(&self, folder: &Folder) -> anyhow::Result<Vec<String>> {
        let mut arguments = vec!["build".to_owned(), "--tag".to_owned(), self.name(folder)];
        if !self.platform.is_empty() {
            arguments.extend(["--platform".to_owned(), self.platform.join(",")]);
        }
        if let Some(root) = sdk_root(&folder.root)? {
            arguments.push("--build-context".to_owned());
            arguments.push(format!("sdk={}", root.display()));
        }
        arguments.push(".".to_owned());
        Ok(arguments)
    }
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

fn find_tool() -> Option<String> {
    let tools = ["docker", "podman"].into_iter();
    let mut there = tools.filter(|tool| find_program(tool).is_some());
    there.next().map(str::to_owned)
}

/// A program on the path.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}
