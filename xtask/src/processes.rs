//! `cargo xtask processes`: pods that are processes, through kubectl, as root and as an ordinary user.

pub(crate) mod cluster;
mod image;
mod life;
mod load;
pub(crate) mod report;
mod timing;
pub(crate) mod tree;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::kubectl::{debian, discover};
use crate::lanes::{self, AllowMissing, Missing};
use crate::workspace::{self, Profile};
use cluster::{Mode, Namespaces};
use report::Report;

/// The user that stands for everybody who is not root.
const NOBODY: u32 = 65534;

/// Run pods as processes of this machine and check what kubectl says of them
///
/// Starts `kubewright up --runtime process` with busybox as the server behind an image: a Deployment, scaled and exposed, a rolling update
/// under load, logs, exec, cp, port-forward, top, probes, limits, volumes, and what is left after Ctrl-C, SIGKILL and the removal of
/// a node; then the time until pods are ready. As root it does so in every way that the kernel allows: as root and as nobody, with
/// namespaces and without, and where the kernel forbids them. Otherwise it does so as whoever calls it. busybox and kubectl come from Debian's packages, unpacked and not
/// installed. What failed is the exit code.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask processes\n  \
    cargo xtask processes --release --only root\n  \
    cargo xtask processes --only nobody-plain")]
pub(crate) struct Arguments {
    /// Build and use the command in release, which figures need
    #[arg(long)]
    release: bool,
    /// Use this command instead of building one
    #[arg(long, value_name = "FILE", conflicts_with = "release")]
    kubewright: Option<PathBuf>,
    /// One way alone: root, root-plain, nobody, nobody-plain, nobody-forbidden
    #[arg(long, value_name = "WAY")]
    only: Option<String>,
    /// How many pods are started at once
    #[arg(long, default_value_t = 200)]
    pods: usize,
    /// How often the time until one pod is ready is measured
    #[arg(long, default_value_t = 20)]
    times: usize,
}

/// What the lane runs with.
pub(crate) struct Tools {
    kubewright: PathBuf,
    kubectl: PathBuf,
    busybox: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let profile = if arguments.release {
        Profile::Release
    } else {
        Profile::Debug
    };
    // Not in /tmp, of which containers have their own.
    let around = if is_root()? {
        PathBuf::from("/var/lib")
    } else {
        workspace::target()
    };
    let place = tempfile::Builder::new()
        .prefix("kubewright-lane-")
        .tempdir_in(around)
        .context("making a directory for programs")?;
    let kubewright = match &arguments.kubewright {
        Some(file) => file.clone(),
        None => workspace::build("kubewright-cli", "kubewright", profile)?,
    };
    let tools = Tools::gather(&kubewright, place.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = Report::default();
    let modes = modes(arguments.only.as_deref())?;
    for mode in modes {
        report.begin(&mode.to_string());
        runtime.block_on(async {
            web::run(&tools, mode, &mut report).await?;
            image::run(&tools, mode, &mut report).await?;
            life::run(&tools, mode, &mut report).await?;
            timing::run(&tools, mode, arguments, &mut report).await
        })?;
    }
    Ok(report.end(AllowMissing::default()))
}

/// The ways to run that there are for whoever calls.
fn modes(only: Option<&str>) -> Result<Vec<Mode>> {
    let all = if is_root()? {
        vec![
            Mode::new(None, Namespaces::Auto),
            Mode::new(None, Namespaces::Off),
            Mode::new(Some(NOBODY), Namespaces::Auto),
            Mode::new(Some(NOBODY), Namespaces::Off),
            Mode::new(Some(NOBODY), Namespaces::Forbidden),
        ]
    } else {
        vec![
            Mode::new(None, Namespaces::Auto),
            Mode::new(None, Namespaces::Off),
        ]
    };
    let Some(only) = only else {
        return Ok(all);
    };
    let chosen: Vec<Mode> = all.into_iter().filter(|mode| mode.name() == only).collect();
    if chosen.is_empty() {
        bail!("{only:?} is none of root, root-plain, nobody, nobody-plain and nobody-forbidden");
    }
    Ok(chosen)
}

pub(crate) fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output().context("id -u")?;
    Ok(output.stdout == b"0\n")
}

impl Tools {
    /// Finds or unpacks what is missing, and copies all to a place that any user may read.
    fn gather(kubewright: &Path, place: &Path) -> Result<Self> {
        let found = discover::on_this_machine().kubectls.into_iter().next_back();
        let kubectl = match found {
            Some(found) => found.path,
            None => debian::unpack()?,
        };
        open_to_all(place)?;
        let here = |from: &Path| -> Result<PathBuf> {
            let name = from.file_name().context("a program has a name")?;
            let to = place.join(name);
            fs::copy(from, &to).with_context(|| format!("copying {}", from.display()))?;
            Ok(to)
        };
        Ok(Self {
            kubewright: here(kubewright)?,
            kubectl: here(&kubectl)?,
            busybox: here(&busybox()?)?,
        })
    }
}

/// Lets everybody read a directory.
fn open_to_all(directory: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory, open).context("opening a directory")
}

/// Debian's static busybox, unpacked under the target directory.
fn busybox() -> Result<PathBuf> {
    let folder = lanes::installed("busybox")?;
    let program = folder.join("bin/busybox");
    if program.exists() {
        return Ok(program);
    }
    let script = "apt-get download busybox-static && dpkg -x busybox-static*.deb .";
    let mut unpack = Command::new("sh");
    unpack.current_dir(&folder).args(["-ec", script]);
    match lanes::tool(&mut unpack, "apt-get download busybox-static")? {
        Ok(_) => Ok(program),
        Err(Missing(why)) => bail!("busybox is missing: {why}"),
    }
}
