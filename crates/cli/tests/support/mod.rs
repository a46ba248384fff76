//! Runs the program as people do, and looks at the folders it leaves behind.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) mod process;
pub(crate) mod registry;
pub(crate) mod stand_in;

/// What became of a call.
pub(crate) struct Called {
    pub(crate) arguments: String,
    pub(crate) output: Output,
}

/// The program in a folder, to be called.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command
        .args(arguments)
        .current_dir(folder)
        // No cluster but those that tests name.
        .env("KUBECONFIG", "/nonexistent")
        .env_remove("KUBERNETES_SERVICE_HOST");
    command
}

/// Calls the program in a folder.
pub(crate) fn kubewright(folder: &Path, arguments: &[&str]) -> Called {
    call(&mut command(folder, arguments))
}

/// Calls a program and waits for its end.
pub(crate) fn call(command: &mut Command) -> Called {
    let output = command.output().expect("the program can be run");
    let words = command.get_args().map(|word| word.to_string_lossy());
    Called {
        arguments: words.collect::<Vec<_>>().join(" "),
        output,
    }
}

impl Called {
    pub(crate) fn text(&self) -> String {
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        format!("{stdout}{stderr}")
    }

    /// What it said, if it worked.
    pub(crate) fn works(&self) -> String {
        assert!(
            self.output.status.success(),
            "{}: {}",
            self.arguments,
            self.text()
        );
        self.text()
    }

    /// What it said, if it failed.
    pub(crate) fn fails(&self) -> String {
        assert!(
            !self.output.status.success(),
            "{}: {}",
            self.arguments,
            self.text()
        );
        self.text()
    }
}

/// All files below a folder with their texts, and folders without any.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it can be read").path();
        let name = path.strip_prefix(root).expect("it is below").to_path_buf();
        if path.is_dir() {
            let before = found.len();
            walk(&path, root, found);
            if found.len() == before {
                found.insert(name, "an empty folder".to_owned());
            }
        } else {
            let text = fs::read_to_string(&path);
            found.insert(name, text.unwrap_or_else(|_| "no text".to_owned()));
        }
    }
}

/// Copies all files of a folder into another.
pub(crate) fn copy(from: &Path, to: &Path) {
    for (path, text) in tree(from) {
        let file = to.join(path);
        fs::create_dir_all(file.parent().expect("it has one")).expect("it can be made");
        fs::write(file, text).expect("it can be written");
    }
}

/// Calls git in a folder, as somebody.
pub(crate) fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    command
        .current_dir(folder)
        .args(identity)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    call(&mut command).works();
}

/// A new folder of this name.
pub(crate) fn folder(name: &str) -> (tempfile::TempDir, PathBuf) {
    let around = tempfile::tempdir().expect("a temporary directory can be made");
    let folder = around.path().join(name);
    fs::create_dir(&folder).expect("it can be made");
    (around, folder)
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("it is there")
}
