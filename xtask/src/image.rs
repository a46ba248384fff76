//! `cargo xtask image`: an image for two machines, pushed to a real registry and looked at with a foreign tool.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::lanes::{self, Missing};
use crate::process::{Output, Running};
use crate::workspace::{self, Profile};

/// Programs of Debian that are needed, and a compiler that makes static programs for any machine.
const NEEDED: [&str; 3] = ["docker-registry", "skopeo", "go"];
const PATIENCE: Duration = Duration::from_secs(60);

/// Push an image for two machines to docker-registry twice, and inspect it with skopeo
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> Result<ExitCode> {
    if let Some(missing) = NEEDED.iter().find(|program| !lanes::is_there(program)) {
        println!("left out: {missing} is not there");
        return Ok(ExitCode::SUCCESS);
    }
    let folder = tempfile::tempdir().context("making a folder")?;
    let place = folder.path();
    programs(place)?;
    let address = free_address()?;
    let mut registry = registry(place, &address)?;
    if !registry.read_until(PATIENCE, |output| output.shows("listening on")) {
        bail!("the registry did not start");
    }
    let kubewright = workspace::build("kubewright-cli", "kubewright", Profile::Debug)?;
    let root = workspace::root().join("testdata/projects/single");
    let name = format!("{address}/single:1");
    let mut digests = Vec::new();
    for _ in 0..2 {
        let mut build = Command::new(&kubewright);
        build
            .current_dir(&root)
            .args(["image", "build", "--push", "--image", &name]);
        for machine in ["amd64", "arm64"] {
            build.arg("--program").arg(place.join(machine));
        }
        let said = must(&mut build, "image build")?.stdout;
        let line = said.lines().find(|line| line.contains("sha256:"));
        digests.push(line.unwrap_or_default().to_owned());
    }
    if digests[0] != digests[1] {
        bail!("two builds gave {digests:?}");
    }
    println!("ok  built twice:{}", digests[0]);
    let reference = format!("docker://{name}");
    inspect(
        &["inspect", "--raw", "--tls-verify=false", &reference],
        &["amd64", "arm64"],
    )?;
    let config = ["inspect", "--config", "--tls-verify=false", &reference];
    inspect(&config, &["\"User\": \"65532:65532\"", "/manager"])?;
    let copy = format!("oci:{}:1", place.join("pulled").display());
    let pull = [
        "--insecure-policy",
        "copy",
        "--all",
        "--src-tls-verify=false",
        &reference,
        &copy,
    ];
    inspect(&pull, &["Storing"])?;
    Ok(ExitCode::SUCCESS)
}

/// Two programs that do nothing, one for each machine.
fn programs(place: &Path) -> Result<()> {
    fs::write(place.join("main.go"), "package main\n\nfunc main() {}\n")
        .context("writing a program")?;
    for machine in ["amd64", "arm64"] {
        let mut go = Command::new("go");
        go.current_dir(place)
            .args(["build", "-o", machine, "main.go"])
            .env("GOARCH", machine)
            .env("CGO_ENABLED", "0");
        must(&mut go, "go build")?;
    }
    Ok(())
}

/// An address of this machine that nobody listens at.
fn free_address() -> Result<String> {
    let socket = TcpListener::bind("127.0.0.1:0").context("finding a port")?;
    Ok(socket.local_addr().context("finding a port")?.to_string())
}

fn registry(place: &Path, address: &str) -> Result<Running> {
    let data = place.join("registry");
    let config = format!(
        "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: {address:?}}}\n",
        data.display()
    );
    let file = place.join("registry.yml");
    fs::write(&file, config).context("writing the configuration of the registry")?;
    Running::start(Command::new("docker-registry").arg("serve").arg(&file), "")
}

/// Calls skopeo, which has to say all of this.
fn inspect(arguments: &[&str], wanted: &[&str]) -> Result<()> {
    let output = must(Command::new("skopeo").args(arguments), "skopeo")?;
    if let Some(missing) = wanted.iter().find(|text| !output.shows(text)) {
        bail!(
            "skopeo {}: {missing} is not in {}",
            arguments.join(" "),
            output.stdout
        );
    }
    println!("ok  skopeo {}", arguments.join(" "));
    Ok(())
}

fn must(command: &mut Command, what: &str) -> Result<Output> {
    let done = lanes::tool(command, what)?;
    done.map_err(|Missing(why)| anyhow::anyhow!(why))
}
