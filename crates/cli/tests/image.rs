//! `image build`: what it writes and pushes by itself; and with a stand-in for docker, what that is asked to do.

mod support;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use flate2::read::GzDecoder;
use ring::digest::SHA256;
use serde_json::Value;
use support::registry::Registry;
use support::stand_in::script;
use support::{call, command, folder, kubewright, tree};

/// A project, and a folder that is all of the path.
struct Desk {
    place: PathBuf,
    path: PathBuf,
    _around: tempfile::TempDir,
}

impl Desk {
    fn new(sdk: &str) -> Self {
        let (around, place) = folder("guestbook");
        kubewright(&place, &["init", "--domain", "my.domain", "--sdk", sdk]).works();
        let path = around.path().join("bin");
        fs::create_dir(&path).expect("it can be made");
        Self {
            place,
            path,
            _around: around,
        }
    }

    /// Puts a tool on the path that writes down where and how it is called.
    fn tool(&self, name: &str, end: &str) {
        let record = self.path.join("record").display().to_string();
        let text = format!("{{ pwd; printf '%s\\n' \"$0\" \"$@\"; }} > '{record}'\n{end}\n");
        script(&self.path.join(name), &text);
    }

    fn call(&self, line: &str) -> support::Called {
        let words: Vec<&str> = line.split(' ').collect();
        call(command(&self.place, &words).env("PATH", &self.path))
    }

    /// Where the tool was called, its name, and what with.
    fn record(&self) -> (PathBuf, String, Vec<String>) {
        let text = fs::read_to_string(self.path.join("record")).expect("the tool was called");
        let mut lines = text.lines().map(str::to_owned);
        let place = PathBuf::from(lines.next().unwrap_or_default());
        let tool = PathBuf::from(lines.next().unwrap_or_default());
        let tool = tool.file_name().unwrap_or_default().to_string_lossy();
        (place, tool.into_owned(), lines.collect())
    }
}

#[test]
fn dockerfile_is_built_with_its_name_and_platforms_in_the_folder_of_the_project() {
    let desk = Desk::new("version=1.2.3");
    desk.tool("podman", "");
    for (line, arguments) in [
        ("image build", "build --tag guestbook:0.1.0 ."),
        (
            "image build --image r.io/a:1 --platform linux/amd64,linux/arm64",
            "build --tag r.io/a:1 --platform linux/amd64,linux/arm64 .",
        ),
    ] {
        let line = format!("{line} --container-tool podman");
        let said = desk.call(&line).works();
        assert!(said.contains("Next: podman push"), "{said}");
        let (place, tool, given) = desk.record();
        let same = place.canonicalize().ok() == desk.place.canonicalize().ok();
        assert!(same && tool == "podman", "{}", place.display());
        assert_eq!(given.join(" "), arguments, "{line}");
    }
    desk.tool("docker", "");
    kubewright(&desk.place, &["edit", "--image", "r.io/b:2"]).works();
    desk.call("image build --container-tool docker --project .")
        .works();
    let (_, tool, given) = desk.record();
    assert_eq!((&*tool, &*given[2]), ("docker", "r.io/b:2"));
}

#[test]
fn checkout_of_the_toolkit_is_given_to_the_build() {
    let desk = Desk::new("path=/a/checkout");
    desk.tool("docker", "");
    desk.call("image build --container-tool docker").works();
    let given = desk.record().2.join(" ");
    assert!(given.contains("--build-context sdk=/a/checkout"), "{given}");
    let dockerfile = fs::read_to_string(desk.place.join("Dockerfile")).expect("it is there");
    assert!(dockerfile.contains("COPY --from=sdk . /a/checkout\n"));
    // What a checkout has built is not sent along.
    let ignored = support::repository().join(".dockerignore");
    let ignored = fs::read_to_string(ignored).expect("it is there");
    assert!(ignored.lines().any(|line| line == "target"), "{ignored}");
}

#[test]
fn what_is_built_is_sources_and_nothing_else() {
    let desk = Desk::new("version=1.2.3");
    for path in ["target/debug/guestbook", ".kubewright/kubeconfig", ".git/x"] {
        let path = desk.place.join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        fs::write(path, "").expect("it can be written");
    }
    let files = tree(&desk.place);
    let sent = |path: &Path| is_sent(&files[Path::new(".dockerignore")], path);
    let sent: Vec<&PathBuf> = files.keys().filter(|path| sent(path)).collect();
    let expected = [
        ".cargo/config.toml",
        "Cargo.toml",
        "src/api.rs",
        "src/controller.rs",
        "src/main.rs",
        "src/tests.rs",
    ];
    assert_eq!(sent, expected.map(PathBuf::from).iter().collect::<Vec<_>>());
}

/// Whether docker sends a file along: the last line that is about it decides. Only such lines as the project's are known.
fn is_sent(ignore: &str, path: &Path) -> bool {
    let lines = ignore.lines().filter(|line| !line.starts_with('#'));
    let mut sent = true;
    for line in lines {
        let (pattern, on) = match line.strip_prefix('!') {
            Some(pattern) => (pattern, true),
            None => (line, false),
        };
        let about = match pattern.strip_suffix("**") {
            Some(folder) => path.starts_with(folder),
            None => path == Path::new(pattern),
        };
        if about {
            sent = on;
        }
    }
    sent
}

#[test]
fn dockerfile_has_a_static_program_that_does_not_run_as_root() {
    let desk = Desk::new("version=1.2.3");
    let text = fs::read_to_string(desk.place.join("Dockerfile")).expect("it is there");
    // Programs for musl, which alpine is made with, are static; an empty image has nothing that others could need.
    for line in [
        "FROM rust:1-alpine AS build",
        "FROM scratch",
        "USER 65532:65532",
        "COPY --from=build /manager /manager",
        "ENTRYPOINT [\"/manager\"]",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
}

#[test]
fn failures_of_a_tool_are_reported() {
    let desk = Desk::new("version=1.2.3");
    let said = desk.call("image build --container-tool buildah").fails();
    assert!(said.contains("buildah cannot be run"), "{said}");
    desk.tool("docker", "echo 'no space left' >&2; exit 1");
    let said = desk.call("image build --container-tool docker").fails();
    assert!(
        said.contains("no space left") && said.contains("docker failed"),
        "{said}"
    );
    fs::remove_file(desk.path.join("record")).expect("it is there");
    let dry = "image build --container-tool docker --dry-run";
    let said = desk.call(dry).works();
    assert!(
        said.contains("docker build --tag guestbook:0.1.0 ."),
        "{said}"
    );
    assert!(!desk.path.join("record").exists(), "nothing was run");
    fs::remove_file(desk.place.join("Dockerfile")).expect("it is there");
    let said = desk.call(dry).fails();
    assert!(said.contains("there is no Dockerfile"), "{said}");
}

#[test]
fn dry_run_names_the_target_that_would_be_compiled_for() {
    let desk = Desk::new("version=1.2.3");
    let machine = std::env::consts::ARCH;
    let said = |rustc: &str| {
        script(&desk.path.join("rustc"), rustc);
        desk.call("image build --dry-run")
    };
    let only_gnu = "case \"$*\" in *musl*) exit 1 ;; *) echo / ;; esac\n";
    let gnu = said(only_gnu).works();
    assert!(
        gnu.contains(&format!("({machine}-unknown-linux-gnu)")),
        "{gnu}"
    );
    script(&desk.path.join("musl-gcc"), "exit 0\n");
    let musl = said("echo /\n").works();
    assert!(
        musl.contains(&format!("({machine}-unknown-linux-musl)")),
        "{musl}"
    );
    let none = said("exit 1\n").fails();
    assert!(none.contains("rustup target add"), "{none}");
}

/// A program that does nothing, for a machine (62 is amd64, 183 arm64), with a loader or without.
fn elf(machine: u8, loader: Option<&str>) -> Vec<u8> {
    let mut bytes = vec![0_u8; 120];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (bytes[18], bytes[32], bytes[54], bytes[56], bytes[64]) = (machine, 64, 56, 1, 1);
    if let Some(loader) = loader {
        (bytes[64], bytes[72], bytes[96]) = (3, 120, loader.len() as u8);
        bytes.extend(loader.as_bytes());
    }
    bytes
}

impl Desk {
    /// A project with two programs that need nothing, and one that does.
    fn with_programs() -> Self {
        let desk = Self::new("version=1.2.3");
        for (name, bytes) in [
            ("amd64", elf(62, None)),
            ("arm64", elf(183, None)),
            ("dynamic", elf(62, Some("/lib64/ld-linux-x86-64.so.2"))),
        ] {
            fs::write(desk.path.join(name), bytes).expect("it is written");
        }
        desk
    }

    /// Builds an image of these programs.
    fn build(&self, programs: &[&str], line: &str) -> support::Called {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for name in programs {
            let path = self.path.join(name).display().to_string();
            words.extend(["--program".to_owned(), path]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = command(&self.place, &words);
        call(
            command
                .env("DOCKER_CONFIG", &self.path)
                .env("PATH", &self.path),
        )
    }
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("it is JSON")
}

/// A blob of an OCI layout, which is called by its digest.
fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().expect("it has one");
    let name = digest.strip_prefix("sha256:").expect("it is one");
    let bytes = fs::read(layout.join("blobs/sha256").join(name)).expect("it is there");
    assert_eq!(
        bytes.len() as u64,
        descriptor["size"].as_u64().expect("a size")
    );
    assert_eq!(hash(&bytes), digest);
    bytes
}

fn hash(bytes: &[u8]) -> String {
    let hash = ring::digest::digest(&SHA256, bytes);
    let hex: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut reader = GzDecoder::new(bytes);
    reader.read_to_end(&mut all).expect("it is gzip");
    all
}

/// The files of an archive: name, permissions, contents.
fn entries(archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.trim_end_matches(['\0', ' ']).to_owned()
    };
    let number = |bytes: &[u8]| u32::from_str_radix(&text(bytes), 8).expect("a number");
    let (mut found, mut rest) = (Vec::new(), archive);
    while rest[0] != 0 {
        let (name, mode) = (text(&rest[..100]), number(&rest[100..108]));
        assert_eq!(
            number(&rest[108..116]) + number(&rest[116..124]),
            0,
            "root owns it"
        );
        assert_eq!(number(&rest[136..148]), 0, "it has no time");
        let size = number(&rest[124..136]) as usize;
        found.push((name, mode, rest[512..512 + size].to_vec()));
        rest = &rest[512 + size.div_ceil(512) * 512..];
    }
    found
}

#[test]
fn image_has_the_program_and_whom_to_trust_and_nobody_is_root() {
    let desk = Desk::with_programs();
    let said = desk.build(&["amd64"], "image build --layout out").works();
    let layout = desk.place.join("out");
    let index = json(&fs::read(layout.join("index.json")).expect("it is there"));
    let manifest = json(&blob(&layout, &index["manifests"][0]));
    let digest = index["manifests"][0]["digest"]
        .as_str()
        .expect("it has one");
    assert!(said.contains(digest), "{said}");
    let config = json(&blob(&layout, &manifest["config"]));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(
        config["config"]["Entrypoint"],
        serde_json::json!(["/manager"])
    );
    assert_eq!(
        (&config["os"], &config["architecture"]),
        (&"linux".into(), &"amd64".into())
    );
    let layers = manifest["layers"].as_array().expect("it has some");
    let mut files = Vec::new();
    for (layer, diff) in layers
        .iter()
        .zip(config["rootfs"]["diff_ids"].as_array().expect("ids"))
    {
        let archive = unpacked(&blob(&layout, layer));
        assert_eq!(hash(&archive), diff.as_str().expect("an id"));
        files.extend(entries(&archive));
    }
    let find = |name: &str| {
        files
            .iter()
            .find(|file| file.0 == name)
            .expect("it is there")
    };
    assert_eq!(
        (find("manager").1, &find("manager").2),
        (0o755, &elf(62, None))
    );
    assert_eq!(find("tmp/").1, 0o1777);
    let roots = String::from_utf8_lossy(&find("etc/ssl/certs/ca-certificates.crt").2).into_owned();
    assert!(roots.matches("BEGIN CERTIFICATE").count() > 50);
    assert!(String::from_utf8_lossy(&find("etc/passwd").2).contains("nonroot:x:65532"));
}

#[test]
fn same_programs_give_the_same_image_wherever_and_whenever() {
    let digest = |said: String| {
        let line = said.lines().find(|line| line.contains("sha256:"));
        line.expect("it is said").to_owned()
    };
    let built = |desk: &Desk, programs: &[&str]| {
        digest(desk.build(programs, "image build --layout out").works())
    };
    let (one, other) = (Desk::with_programs(), Desk::with_programs());
    let first = built(&one, &["amd64"]);
    assert_eq!(built(&one, &["amd64"]), first);
    assert_eq!(built(&other, &["amd64"]), first);
    assert_ne!(built(&other, &["arm64"]), first);
}

#[test]
fn several_machines_are_one_index() {
    let desk = Desk::with_programs();
    desk.build(&["amd64", "arm64"], "image build --layout out")
        .works();
    let layout = desk.place.join("out");
    let index = json(&fs::read(layout.join("index.json")).expect("it is there"));
    let inner = json(&blob(&layout, &index["manifests"][0]));
    let machines: Vec<&Value> = inner["manifests"]
        .as_array()
        .expect("it has some")
        .iter()
        .map(|manifest| &manifest["platform"]["architecture"])
        .collect();
    assert_eq!(machines, ["amd64", "arm64"]);
    for manifest in inner["manifests"].as_array().expect("it has some") {
        let config = &json(&blob(&layout, manifest))["config"];
        let config = json(&blob(&layout, config));
        assert_eq!(config["architecture"], manifest["platform"]["architecture"]);
    }
}

#[test]
fn archive_for_docker_load_names_its_parts() {
    let desk = Desk::with_programs();
    desk.build(&["amd64"], "image build --image r.io/book:1 --tar out.tar")
        .works();
    let files = entries(&fs::read(desk.place.join("out.tar")).expect("it is there"));
    let find = |name: &str| {
        &files
            .iter()
            .find(|file| file.0 == name)
            .expect("it is there")
            .2
    };
    let contents = &json(find("manifest.json"))[0];
    assert_eq!(contents["RepoTags"], serde_json::json!(["r.io/book:1"]));
    assert_eq!(
        json(find(contents["Config"].as_str().expect("a name")))["os"],
        "linux"
    );
    for layer in contents["Layers"].as_array().expect("it has some") {
        assert!(!entries(&unpacked(find(layer.as_str().expect("a name")))).is_empty());
    }
    assert!(
        !desk.place.join("target/image").exists(),
        "it was asked for nowhere else"
    );
}

#[test]
fn program_that_needs_a_library_is_refused_with_what_to_do() {
    let desk = Desk::with_programs();
    let said = desk.build(&["dynamic"], "image build --layout out").fails();
    assert!(
        said.contains("/lib64/ld-linux-x86-64.so.2") && said.contains("--base"),
        "{said}"
    );
    fs::write(desk.path.join("script"), "#!/bin/sh").expect("it is written");
    let said = desk.build(&["script"], "image build --layout out").fails();
    assert!(said.contains("is not a 64-bit program for Linux"), "{said}");
    let said = desk.call("image build --platform linux/riscv64").fails();
    assert!(said.contains("use linux/amd64 or linux/arm64"), "{said}");
    // There is no compiler on this path, so no target either.
    let said = desk.call("image build --platform linux/arm64").fails();
    assert!(
        said.contains("rustup target add aarch64-unknown-linux-musl"),
        "{said}"
    );
}

#[test]
fn image_is_pushed_with_the_password_that_docker_keeps_and_pulled_as_a_base() {
    let desk = Desk::with_programs();
    let registry = Registry::start();
    let name = format!("{}/team/book:1", registry.address);
    let push = format!("image build --push --image {name}");
    let said = desk.build(&["amd64", "arm64"], &push).fails();
    assert!(said.contains("wants a password"), "{said}");
    let auth = base64::engine::general_purpose::STANDARD.encode("me:secret");
    let config = serde_json::json!({"auths": {registry.address.to_string(): {"auth": auth}}});
    fs::write(desk.path.join("config.json"), config.to_string()).expect("it is written");
    let said = desk.build(&["amd64", "arm64"], &push).works();
    assert!(!said.contains("secret"), "{said}");
    let index = registry.manifest("1").expect("it was pushed");
    assert!(said.contains(&hash(&index)), "{said}");
    for manifest in json(&index)["manifests"].as_array().expect("it has some") {
        let digest = manifest["digest"].as_str().expect("it has one");
        let manifest = json(&registry.manifest(digest).expect("it was pushed"));
        for part in manifest["layers"]
            .as_array()
            .expect("layers")
            .iter()
            .chain([&manifest["config"]])
        {
            let digest = part["digest"].as_str().expect("it has one");
            assert_eq!(hash(&registry.blob(digest).expect("it was pushed")), digest);
        }
    }
    let uploads = registry.uploads();
    desk.build(&["amd64", "arm64"], &push).works();
    assert_eq!(
        registry.uploads(),
        uploads,
        "what is there is not sent again"
    );

    // What was pushed is what the next image begins with.
    let said = desk.build(
        &["dynamic"],
        &format!("image build --layout out --base {name}"),
    );
    said.works();
    let layout = desk.place.join("out");
    let index = json(&fs::read(layout.join("index.json")).expect("it is there"));
    let manifest = json(&blob(&layout, &index["manifests"][0]));
    assert_eq!(manifest["layers"].as_array().map(Vec::len), Some(4));
    let config = json(&blob(&layout, &manifest["config"]));
    assert_eq!(
        config["rootfs"]["diff_ids"].as_array().map(Vec::len),
        Some(4)
    );
}
