//! `kubewright image`: the program as a container image, without docker or with it, and images for pods that are processes.

mod credentials;
mod dockerfile;
mod oci;
mod output;
mod program;
mod reference;
mod registry;
mod roots;
mod stored;
mod tar;
mod toolchain;

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::folder::{Folder, Place};
use crate::program::{Profile, Target, build_for};
use crate::remote::block_on;
use dockerfile::{Dockerfile, Mode};
use oci::{Base, Image as Made};
use program::{Linking, Machine, Program};
use reference::Reference;
use registry::{Access, Repository};
use toolchain::Toolchain;

pub(crate) use stored::StorePlace;

/// Build the image of the manager, and load images for pods that are processes
#[derive(Debug, Args)]
pub(crate) struct Image {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Build(Build),
    #[command(flatten)]
    Stored(stored::Stored),
}

/// Build the image of the manager, without docker
///
/// Compiles a static program and writes an image of it: the program, the authorities that Mozilla trusts, and user 65532. The same
/// sources in the same place give the same digest. With --container-tool the Dockerfile is built instead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright image build --image registry.example.com/guestbook:1.0 --push\n  \
    kubewright image build --platform linux/amd64,linux/arm64 --layout target/image\n  \
    kubewright image build --tar guestbook.tar && docker load --input guestbook.tar\n  \
    kubewright image build --container-tool podman --dry-run")]
struct Build {
    /// The name of the image; without it the project's
    #[arg(long)]
    image: Option<String>,

    /// What machines it is for, such as linux/arm64; without it this one
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    platform: Vec<String>,

    /// Push it to the registry in its name, with what ~/.docker/config.json has for it
    #[arg(long)]
    push: bool,

    /// Write it as an OCI layout into this folder; without any other place, target/image
    #[arg(long, value_name = "FOLDER")]
    layout: Option<PathBuf>,

    /// Write it as an archive for docker load into this file
    #[arg(long, value_name = "FILE")]
    tar: Option<PathBuf>,

    /// Put the program on top of this image, from its registry; without it on nothing
    #[arg(long, value_name = "IMAGE")]
    base: Option<Reference>,

    /// Use this program instead of compiling one; once for each machine
    #[arg(long, value_name = "FILE", conflicts_with = "platform")]
    program: Vec<PathBuf>,

    /// Build the Dockerfile with this program: docker or podman
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["push", "layout", "tar", "base", "program"])]
    container_tool: Option<String>,

    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    place: Place,
}

impl Image {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Build(build) => build.run(),
            What::Stored(stored) => stored.run(),
        }
    }
}

impl Build {
    fn run(self) -> anyhow::Result<()> {
        let folder = self.place.open()?;
        let image = self.name(&folder);
        if let Some(tool) = &self.container_tool {
            let dockerfile = Dockerfile {
                tool,
                image: &image,
                platforms: &self.platform,
            };
            let mode = if self.dry_run {
                Mode::DryRun
            } else {
                Mode::Run
            };
            return dockerfile.build(&folder, mode);
        }
        let reference: Reference = image.parse()?;
        if self.dry_run {
            return self.tell(&reference);
        }
        block_on(async {
            let programs = self.programs(&folder).await?;
            let made = self.make(programs).await?;
            let (digest, size) = (made.digest(), made.size().div_ceil(1 << 10));
            println!("{reference}\n  {digest}, {size} KiB");
            self.deliver(&made, &image, &reference, &folder).await
        })
    }

    fn name(&self, folder: &Folder) -> String {
        let given = self.image.clone();
        let given = given.or_else(|| folder.project.options().image);
        given.unwrap_or_else(|| format!("{}:0.1.0", folder.project.project_name))
    }

    /// The machines that are asked for.
    fn machines(&self) -> anyhow::Result<Vec<Machine>> {
        if self.platform.is_empty() {
            let here = Machine::here();
            let here = here.context("say what machine it is for, with --platform linux/amd64")?;
            return Ok(vec![here]);
        }
        let mut machines = Vec::new();
        for platform in &self.platform {
            let machine = Machine::of_platform(platform)?;
            if !machines.contains(&machine) {
                machines.push(machine);
            }
        }
        Ok(machines)
    }

    fn tell(&self, reference: &Reference) -> anyhow::Result<()> {
        for path in &self.program {
            let platform = Program::read(path)?.machine.platform();
            let path = path.display();
            println!("  would build {reference} for {platform} ({path})");
        }
        if !self.program.is_empty() {
            return Ok(());
        }
        for machine in self.machines()? {
            let target = self.target(machine)?.triple;
            let target = target.unwrap_or("the target of this machine");
            println!(
                "  would build {reference} for {} ({target})",
                machine.platform(),
            );
        }
        Ok(())
    }

    /// The programs that go into it: given, or compiled now.
    async fn programs(&self, folder: &Folder) -> anyhow::Result<Vec<Program>> {
        if !self.program.is_empty() {
            return self
                .program
                .iter()
                .map(|path| Program::read(path))
                .collect();
        }
        let machines = self.machines()?;
        // Everything that is missing is reported before anything is compiled.
        let targets: Vec<Target> = machines
            .iter()
            .map(|machine| self.target(*machine))
            .collect::<anyhow::Result<_>>()?;
        let mut programs = Vec::new();
        for target in targets {
            let path = build_for(folder, Profile::Release, target).await?;
            programs.push(Program::read(&path)?);
        }
        Ok(programs)
    }

    /// The target that is compiled for: one whose programs are static, or that of this machine if there is a base.
    fn target(&self, machine: Machine) -> anyhow::Result<Target> {
        let toolchain = Toolchain::find(machine);
        if self.base.is_some() && toolchain != Toolchain::Musl && Machine::here() == Some(machine) {
            return Ok(Target::default());
        }
        if let Some(note) = toolchain.note(machine) {
            eprintln!("{note}");
        }
        let (platform, target) = (machine.platform(), machine.target);
        toolchain.target(machine).with_context(|| {
            format!(
                "a static program for {platform} needs the Rust target {target} and a C compiler for it; \
                 run: rustup target add {target}, and name the compiler in CC_{}",
                target.replace('-', "_")
            )
        })
    }

    async fn make(&self, programs: Vec<Program>) -> anyhow::Result<Made> {
        let base = match &self.base {
            Some(reference) => Some(Repository::open(reference, Access::Pull).await?),
            None => None,
        };
        let mut parts = Vec::new();
        for program in programs {
            let base = match &base {
                Some(base) => base.base(program.machine).await?,
                None => Base::default(),
            };
            if let (Linking::Dynamic(loader), true) = (&program.linking, base.layers.is_empty()) {
                bail!(
                    "the program is not static: it needs {loader} and the C library that belongs to it, and an empty image has \
                     neither. Compile it for {}, or give an image that has them with --base, such as \
                     gcr.io/distroless/cc-debian12:nonroot",
                    program.machine.target
                );
            }
            parts.push((program, base));
        }
        let labels = json!({"org.opencontainers.image.vendor": "kubewright"});
        Made::of(&parts, &labels).context("the image cannot be made")
    }

    /// Brings it where it is wanted.
    async fn deliver(
        &self,
        made: &Made,
        image: &str,
        reference: &Reference,
        folder: &Folder,
    ) -> anyhow::Result<()> {
        let nowhere = !self.push && self.tar.is_none();
        let layout = self.layout.clone();
        let layout = layout.or_else(|| nowhere.then(|| folder.root.join("target/image")));
        if let Some(folder) = layout {
            output::layout(made, image, &folder)?;
            println!("  written to {}", folder.display());
        }
        if let Some(file) = &self.tar {
            output::archive(made, image, file)?;
            println!(
                "  written to {}; docker load --input {0} takes it",
                file.display()
            );
        }
        if self.push {
            let repository = Repository::open(reference, Access::Push).await?;
            repository.push(made).await?;
            let by_digest = Reference {
                version: made.digest().to_owned(),
                ..reference.clone()
            };
            println!("  pushed\n\nNext: kubewright deploy --image {by_digest}");
        }
        Ok(())
    }
}

/// Whether a text is the name of an image.
///
/// # Errors
/// When it is not; the error says why.
pub(crate) fn check_reference(text: &str) -> anyhow::Result<()> {
    text.parse::<Reference>()?;
    Ok(())
}

/// What `doctor` says about building images: the target, or what to do about it.
pub(crate) fn readiness() -> anyhow::Result<String> {
    let Some(machine) = Machine::here() else {
        bail!("images are for linux/amd64 and linux/arm64; say which with --platform");
    };
    let (toolchain, target) = (Toolchain::find(machine), machine.target);
    match (toolchain, toolchain.note(machine)) {
        (Toolchain::Musl, _) => Ok(format!("{target}, and a C compiler for it")),
        (_, Some(note)) => Ok(note),
        (_, None) => {
            bail!("image build needs the Rust target {target}; run: rustup target add {target}")
        }
    }
}

/// A program on the path.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}
