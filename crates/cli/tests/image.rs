//! `image build` with a stand-in for docker: what it is asked to do, and with which files.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

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
fn image_is_built_with_its_name_and_platforms_in_the_folder_of_the_project() {
    let desk = Desk::new("version=1.2.3");
    desk.tool("podman", "");
    for (line, arguments) in [
        ("image build", "build --tag guestbook:0.1.0 ."),
        (
            "image build --image r.io/a:1 --platform linux/amd64,linux/arm64",
            "build --tag r.io/a:1 --platform linux/amd64,linux/arm64 .",
        ),
    ] {
        let said = desk.call(line).works();
        assert!(said.contains("Next: podman push"), "{said}");
        let (place, tool, given) = desk.record();
        let same = place.canonicalize().ok() == desk.place.canonicalize().ok();
        assert!(same && tool == "podman", "{}", place.display());
        assert_eq!(given.join(" "), arguments, "{line}");
    }
    desk.tool("docker", "");
    kubewright(&desk.place, &["edit", "--image", "r.io/b:2"]).works();
    desk.call("image build --project .").works();
    let (_, tool, given) = desk.record();
    assert_eq!((&*tool, &*given[2]), ("docker", "r.io/b:2"));
    desk.call("image build --container-tool podman").works();
    assert_eq!(desk.record().1, "podman");
}

#[test]
fn checkout_of_the_toolkit_is_given_to_the_build() {
    let desk = Desk::new("path=/a/checkout");
    desk.tool("docker", "");
    desk.call("image build").works();
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
fn image_is_a_static_program_that_does_not_run_as_root() {
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
fn without_a_tool_people_are_told_what_to_run() {
    let desk = Desk::new("version=1.2.3");
    let said = desk.call("image build --image r.io/a:1").fails();
    assert!(
        said.contains("neither docker nor podman")
            && said.contains("docker build --tag r.io/a:1 ."),
        "{said}"
    );
    let said = desk.call("image build --container-tool buildah").fails();
    assert!(said.contains("buildah cannot be run"), "{said}");
    desk.tool("docker", "echo 'no space left' >&2; exit 1");
    let said = desk.call("image build").fails();
    assert!(
        said.contains("no space left") && said.contains("docker failed"),
        "{said}"
    );
    fs::remove_file(desk.path.join("record")).expect("it is there");
    let said = desk.call("image build --dry-run").works();
    assert!(
        said.contains("docker build --tag guestbook:0.1.0 ."),
        "{said}"
    );
    assert!(!desk.path.join("record").exists(), "nothing was run");
    fs::remove_file(desk.place.join("Dockerfile")).expect("it is there");
    let said = desk.call("image build").fails();
    assert!(said.contains("there is no Dockerfile"), "{said}");
}
