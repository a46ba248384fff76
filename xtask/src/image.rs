//! `cargo xtask image`: the image of an operator, built twice, unpacked, pushed to a real registry and inspected by a foreign tool.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::deploy::project::Project;
use crate::lanes::{self, AllowMissing, Missing};
use crate::process::{End, Output, Running};
use crate::processes::report::Report;
use crate::workspace::{self, Profile};

/// Programs that are needed, each in a package of Debian's of that name.
const NEEDED: [&str; 3] = ["docker-registry", "skopeo", "tar"];
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes that the files of an image may have.
const LARGEST: u64 = 20_000_000;
const USER: &str = "65532:65532";

/// Build the image of an operator twice, unpack it, push it to docker-registry and inspect it with skopeo
///
/// The operator is the one of `cargo xtask deploy`, scaffolded in an empty folder. Where the Rust target for arm64 and a C compiler
/// for it are installed, the index has two programs of Rust; else the sentence that says what is missing is checked, and the second
/// program is one that Go compiles. The command fails if a step does, and if a step is left out because a tool is missing, unless
/// --allow-missing is passed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Use this command instead of building one
    #[arg(long, value_name = "FILE")]
    kubewright: Option<PathBuf>,
    #[command(flatten)]
    missing: AllowMissing,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut missing = NEEDED.to_vec();
    missing.retain(|program| !lanes::is_there(program));
    if !missing.is_empty()
        && let Err(why) = lanes::install_packages(&missing)?
    {
        return Ok(arguments.missing.end(&[why]));
    }
    let kubewright = match &arguments.kubewright {
        Some(file) => file.clone(),
        None => workspace::build("kubewright-cli", "kubewright", Profile::Debug)?,
    };
    let place = tempfile::tempdir().context("making a folder")?;
    let folder = place.path().join("library");
    fs::create_dir(&folder).context("making the folder of the project")?;
    let project = Project::new(&kubewright, &folder, place.path());
    let mut report = Report::default();
    report.begin("the image of an operator");
    report.step("init, create api, version, webhook", project.scaffold());
    let address = free_address()?;
    let _registry = registry(place.path(), &address)?;
    let lane = Lane {
        project,
        name: format!("{address}/library:1"),
    };
    report.step("built twice, the same digest", lane.built_twice());
    report.step("user, entry point, layers, size", lane.unpacked());
    report.step("pushed, inspected by skopeo", lane.pushed());
    report.step("pulled by skopeo, the same digest", lane.pulled());
    report.step("another platform", lane.other_platform());
    report.step("two platforms in one index", lane.two_platforms());
    Ok(report.end(arguments.missing))
}

/// A project, and what its image is called in the registry.
struct Lane {
    project: Project,
    name: String,
}

impl Lane {
    fn layout(&self) -> PathBuf {
        self.project.around.join("layout")
    }

    /// Builds, has cargo compile the program again, and builds a second time.
    fn built_twice(&self) -> Result<String> {
        let build = format!(
            "image build --image {} --layout {}",
            self.name,
            self.layout().display()
        );
        let first = self.project.call(&build)?;
        let main = self.project.folder.join("src/main.rs");
        fs::write(&main, fs::read(&main)?).context("touching src/main.rs")?;
        let second = self.project.call(&build)?;
        ensure!(
            second.shows("Compiling library"),
            "nothing was compiled again"
        );
        let (first, second) = (digest(&first)?, digest(&second)?);
        ensure!(first == second, "{first} and {second}");
        let how = second_line(&self.project.call(&build)?);
        Ok(format!("{first}{how}"))
    }

    /// A blob of the layout.
    fn blob(&self, descriptor: &Value) -> Result<PathBuf> {
        let digest = descriptor["digest"].as_str().context("a digest")?;
        Ok(self.layout().join("blobs").join(digest.replace(':', "/")))
    }

    fn document(&self, descriptor: &Value) -> Result<Value> {
        let bytes = fs::read(self.blob(descriptor)?)?;
        serde_json::from_slice(&bytes).context("a blob that is not JSON")
    }

    /// Unpacks every layer of the layout, and looks at what a container engine would.
    fn unpacked(&self) -> Result<String> {
        let index: Value = serde_json::from_slice(&fs::read(self.layout().join("index.json"))?)?;
        let manifest = self.document(&index["manifests"][0])?;
        let config = self.document(&manifest["config"])?["config"].clone();
        ensure!(config["User"] == USER, "the user is {}", config["User"]);
        ensure!(
            config["Entrypoint"][0] == "/manager",
            "{}",
            config["Entrypoint"]
        );
        let layers = manifest["layers"].as_array().context("layers")?;
        ensure!(layers.len() == 2, "{} layers", layers.len());
        let root = self.project.around.join("unpacked");
        fs::create_dir_all(&root)?;
        let mut packed = 0;
        for layer in layers {
            packed += layer["size"].as_u64().unwrap_or_default();
            let mut tar = Command::new("tar");
            tar.arg("-xzf").arg(self.blob(layer)?).arg("-C").arg(&root);
            must(&mut tar, "tar")?;
        }
        let program = fs::metadata(root.join("manager"))?.len();
        let roots = fs::metadata(root.join("etc/ssl/certs/ca-certificates.crt"))?.len();
        ensure!(program + roots < LARGEST, "the program has {program} bytes");
        ensure!(root.join("tmp").is_dir(), "there is no /tmp");
        let inventory = must(
            Command::new(root.join("manager")).arg("inventory"),
            "/manager inventory",
        )?;
        ensure!(
            inventory.shows("shelf.my.domain"),
            "another program is in the image"
        );
        Ok(format!(
            "{USER}, /manager, 2 layers, {:.1} MB packed, program {:.1} MB",
            packed as f64 / 1e6,
            program as f64 / 1e6
        ))
    }

    fn pushed(&self) -> Result<String> {
        let pushed = self
            .project
            .call(&format!("image build --image {} --push", self.name))?;
        let config = self.skopeo(&["inspect", "--config"])?;
        let config: Value = serde_json::from_str(&config.stdout)?;
        ensure!(config["config"]["User"] == USER, "{config}");
        let seen: Value = serde_json::from_str(&self.skopeo(&["inspect"])?.stdout)?;
        let digest = digest(&pushed)?;
        ensure!(
            seen["Digest"] == *digest,
            "skopeo sees {}, not {digest}",
            seen["Digest"]
        );
        Ok(format!("{} {}", seen["Os"], seen["Architecture"]))
    }

    fn pulled(&self) -> Result<String> {
        let folder = self.project.around.join("pulled");
        let copy = format!("oci:{}:1", folder.display());
        let source = format!("docker://{}", self.name);
        let mut skopeo = Command::new("skopeo");
        skopeo.args([
            "--insecure-policy",
            "copy",
            "--src-tls-verify=false",
            &source,
            &copy,
        ]);
        must(&mut skopeo, "skopeo copy")?;
        let read = |folder: &Path| -> Result<Value> {
            let index: Value = serde_json::from_slice(&fs::read(folder.join("index.json"))?)?;
            Ok(index["manifests"][0]["digest"].clone())
        };
        let (here, there) = (read(&self.layout())?, read(&folder)?);
        ensure!(here == there, "{here} was built, {there} pulled");
        Ok(here.to_string())
    }

    /// Asks for an image of another platform: it is built, or a sentence says what that needs.
    fn other_platform(&self) -> Result<String> {
        let output = self.try_build("linux/arm64")?;
        if output.end == End::Exited(0) {
            return Ok("linux/arm64 is built".to_owned());
        }
        let wanted = "rustup target add aarch64-unknown-linux-musl";
        let line = output.stderr.lines().find(|line| line.contains(wanted));
        let line = line.with_context(|| format!("no clear sentence: {}", output.stderr))?;
        Ok(line.trim().to_owned())
    }

    fn try_build(&self, platform: &str) -> Result<Output> {
        let mut build = self.project.command();
        build.args([
            "image",
            "build",
            "--push",
            "--image",
            &self.name,
            "--platform",
            platform,
        ]);
        crate::process::run(&mut build, "", Duration::from_secs(1800))
    }

    /// Pushes an index of two platforms, of programs of Rust or, for the second, of Go.
    fn two_platforms(&self) -> Result<String> {
        let mut how = "both programs are of Rust";
        let both = self.try_build("linux/amd64,linux/arm64")?;
        if both.end != End::Exited(0) {
            if !lanes::is_there("go") {
                bail!(Missing(
                    "neither the Rust target nor go is installed".to_owned()
                ));
            }
            how = "the one for arm64 is of Go";
            let other = go(&self.project.around)?;
            let own = self.project.around.join("unpacked/manager");
            let programs = format!("--program {} --program {}", own.display(), other.display());
            self.project.call(&format!(
                "image build --push --image {} {programs}",
                self.name
            ))?;
        }
        let raw = self.skopeo(&["inspect", "--raw"])?;
        let index: Value = serde_json::from_str(&raw.stdout)?;
        let platforms = index["manifests"].as_array().into_iter().flatten();
        let platforms: Vec<&str> = platforms
            .filter_map(|it| it["platform"]["architecture"].as_str())
            .collect();
        ensure!(
            platforms == ["amd64", "arm64"],
            "the index has {platforms:?}"
        );
        Ok(format!("{}; {how}", platforms.join(", ")))
    }

    /// Calls skopeo about the image in the registry.
    fn skopeo(&self, words: &[&str]) -> Result<Output> {
        let reference = format!("docker://{}", self.name);
        let mut skopeo = Command::new("skopeo");
        skopeo.args(words).args(["--tls-verify=false", &reference]);
        must(&mut skopeo, "skopeo")
    }
}

/// The digest that `image build` printed.
fn digest(output: &Output) -> Result<String> {
    let line = output.stdout.lines().find(|line| line.contains("sha256:"));
    let digest = line.and_then(|line| line.trim().split(',').next());
    Ok(digest.context("no digest is printed")?.to_owned())
}

/// What is said about how the program is linked, if it is not as usual.
fn second_line(output: &Output) -> String {
    let note = output
        .stderr
        .lines()
        .find(|line| line.contains("C library of this machine"));
    note.map_or(", linked with musl".to_owned(), |_| {
        ", linked with glibc, statically".to_owned()
    })
}

/// A program for arm64 that does nothing.
fn go(place: &Path) -> Result<PathBuf> {
    fs::write(place.join("main.go"), "package main\n\nfunc main() {}\n")
        .context("writing a program")?;
    let mut go = Command::new("go");
    go.current_dir(place)
        .args(["build", "-o", "arm64", "main.go"])
        .env("GOARCH", "arm64")
        .env("CGO_ENABLED", "0");
    must(&mut go, "go build")?;
    Ok(place.join("arm64"))
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
    let mut registry = Running::start(Command::new("docker-registry").arg("serve").arg(&file), "")?;
    if !registry.read_until(PATIENCE, |output| output.shows("listening on")) {
        bail!("the registry did not start: {}", registry.output().stderr);
    }
    Ok(registry)
}

fn must(command: &mut Command, what: &str) -> Result<Output> {
    let done = lanes::tool(command, what)?;
    done.map_err(|Missing(why)| anyhow::anyhow!(why))
}
