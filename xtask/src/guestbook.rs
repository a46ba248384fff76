//! `cargo xtask guestbook`: from an empty folder to a deployed operator, and how long each step takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::{Output, Running};
use crate::workspace::{self, Profile};

/// How long nothing may come from a step.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The field that `create api` writes, and what a newcomer makes of it.
const SCAFFOLDED: &str = "    pub size: Option<i32>,\n";
const EDITED: &str = "    pub size: Option<i32>,
    /// The name of the ConfigMap with the settings.
    #[schemars(length(min = 1, max = 15))]
    pub config_map_name: String,
    /// What is noted down.
    #[serde(rename = \"type\")]
    pub kind: Option<Entry>,
";
const ENTRY: &str = "
/// What a guest leaves.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub enum Entry {
    /// A phone number.
    Phone,
    /// An address.
    Address,
    /// A name.
    Name,
}
";

/// Walk from an empty folder to a deployed operator with nothing but our program, and print the time of each step
///
/// init, create api, edit the types, manifests, install, run, a sample, its status, tests, deploy, undeploy; on a cluster
/// of `kubewright up`. Then the size of the optimised program.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask guestbook            dependencies as they were built the last time\n  \
    cargo xtask guestbook --cold     everything built anew, as on a newcomer's machine")]
pub(crate) struct Arguments {
    /// Forget what was built before
    #[arg(long)]
    cold: bool,
    /// Leave out the optimised build
    #[arg(long)]
    no_release: bool,
}

/// A walk: the program, the folder, and what was measured.
struct Walk {
    program: PathBuf,
    project: PathBuf,
    target: PathBuf,
    kubeconfig: PathBuf,
    steps: Vec<(String, Duration)>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Outside of the repository, or cargo takes it for a part of the workspace.
    let around = tempfile::tempdir().context("there is no place for temporary files")?;
    let program = workspace::build("kubewright-cli", "kubewright", Profile::Debug)?;
    let mut walk = Walk {
        program,
        project: around.path().join("guestbook"),
        target: workspace::target().join("guestbook"),
        kubeconfig: around.path().join("kubeconfig"),
        steps: Vec::new(),
    };
    if arguments.cold {
        remove(&walk.target)?;
    }
    fs::create_dir_all(&walk.project)?;
    walk.write()?;
    walk.try_out()?;
    if !arguments.no_release {
        walk.optimise()?;
    }
    walk.report();
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("{} is in the way", folder.display()))
        }
        _ => Ok(()),
    }
}

impl Walk {
    /// The project, its types as a newcomer writes them, and what is generated from them.
    fn write(&mut self) -> Result<()> {
        self.call("init --domain my.domain")?;
        self.call("create api --group webapp --version v1 --kind Guestbook --make=false")?;
        let file = self.project.join("src/api/v1/guestbook.rs");
        let text = fs::read_to_string(&file)?;
        if !text.contains(SCAFFOLDED) {
            bail!("the scaffolded type is not what this script knows");
        }
        fs::write(&file, text.replace(SCAFFOLDED, EDITED) + ENTRY)?;
        self.call("manifests")?;
        self.call("manifests --check")?;
        self.call("lint")
    }

    /// The operator on a cluster: run from here, then deployed.
    fn try_out(&mut self) -> Result<()> {
        let kubeconfig = self.kubeconfig.display().to_string();
        let mut up = self.start(&format!("up --port 0 --kubeconfig {kubeconfig}"))?;
        self.until("up", &mut up, |output| output.shows("Ctrl-C stops it"))?;
        let on = format!("--kubeconfig {kubeconfig}");
        self.call(&format!("install {on}"))?;
        let sample = self.project.join("config/samples/webapp_v1_guestbook.yaml");
        let sample = sample.display().to_string();
        let run = format!("run {on} -- --health-probe-bind-address=0");
        let mut running = self.start(&run)?;
        self.until(&run, &mut running, |output| output.shows("Ctrl-C stops it"))?;
        self.call(&format!("deploy --manifests {sample} {on}"))?;
        self.status()?;
        drop(running);
        self.cargo("cargo test", &["test", "--quiet"])?;
        self.call(&format!("deploy --image example.com/guestbook:0.1.0 {on}"))?;
        // The deployed manager is a simulated pod: nobody is there to finish the sample, so it is done from here.
        let mut running = self.start(&run)?;
        self.until(&run, &mut running, |output| output.shows("Ctrl-C stops it"))?;
        self.call(&format!("undeploy {on}"))
    }

    /// Waits until the sample says that it is ready. Without kubectl nobody asks.
    fn status(&mut self) -> Result<()> {
        let began = now();
        let mut kubectl = Command::new("kubectl");
        kubectl
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args([
                "wait",
                "--for=condition=Ready",
                "--timeout=60s",
                "guestbook/guestbook-sample",
            ])
            .stdin(Stdio::null());
        match kubectl.status() {
            Err(_) => println!("  (there is no kubectl to ask for the status)"),
            Ok(status) if status.success() => {
                self.steps
                    .push(("status is reported".to_owned(), began.elapsed()));
            }
            Ok(_) => bail!("the sample does not become ready"),
        }
        Ok(())
    }

    /// The optimised program, and how large it is.
    fn optimise(&mut self) -> Result<()> {
        self.cargo("cargo build --release", &["build", "--release", "--quiet"])?;
        let file = self.target.join("release/guestbook");
        let bytes = fs::metadata(&file)?.len();
        println!("The optimised program has {:.1} MB.", bytes as f64 / 1e6);
        Ok(())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.project)
            .env("CARGO_TARGET_DIR", &self.target);
        command
    }

    fn call(&mut self, line: &str) -> Result<()> {
        let mut command = self.command(&self.program);
        command.args(line.split(' '));
        self.measure(&format!("kubewright {line}"), command)
    }

    fn cargo(&mut self, name: &str, arguments: &[&str]) -> Result<()> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = self.command(Path::new(&cargo));
        command.args(arguments);
        self.measure(name, command)
    }

    fn measure(&mut self, name: &str, mut command: Command) -> Result<()> {
        println!("$ {name}");
        let began = now();
        let status = command.stdin(Stdio::null()).status();
        let status = status.with_context(|| format!("{name} cannot be run"))?;
        if !status.success() {
            bail!("{name} failed");
        }
        self.steps.push((name.to_owned(), began.elapsed()));
        Ok(())
    }

    fn start(&self, line: &str) -> Result<Running> {
        println!("$ kubewright {line} &");
        Running::start(self.command(&self.program).args(line.split(' ')), "")
    }

    fn until(
        &mut self,
        name: &str,
        running: &mut Running,
        enough: impl Fn(&Output) -> bool,
    ) -> Result<()> {
        let began = now();
        if !running.read_until(PATIENCE, enough) {
            bail!("{name} does not say that it runs");
        }
        self.steps
            .push((format!("kubewright {name}"), began.elapsed()));
        Ok(())
    }

    fn report(&self) {
        println!();
        let around = self
            .kubeconfig
            .parent()
            .map(|path| path.display().to_string());
        let around = around.unwrap_or_default() + "/";
        for (name, time) in &self.steps {
            println!("{:>9.2?}  {}", time, name.replace(&around, ""));
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "what a newcomer waits is wall time, which nothing may inject"
)]
fn now() -> Instant {
    Instant::now()
}
