//! Programs that stand in for slow ones: small scripts that say what they were asked for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{copy, repository};

/// Writes a script of the shell that can be run.
pub(crate) fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
    fs::write(path, format!("#!/bin/sh\n{text}")).expect("it can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be changed");
}

/// A golden project whose program is there without being built: cargo is a script, and so is what it makes.
pub(crate) struct Project {
    pub(crate) place: PathBuf,
    pub(crate) cargo: PathBuf,
    /// While this file is there, cargo fails.
    pub(crate) broken: PathBuf,
    _around: tempfile::TempDir,
}

impl Project {
    pub(crate) fn new(name: &str) -> Self {
        let (around, place) = super::folder(name);
        copy(&repository().join("testdata/projects").join(name), &place);
        let beside = |file: &str| around.path().join("tools").join(file);
        let (cargo, program, broken) = (beside("cargo"), beside("program"), beside("broken"));
        let made = serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": place.join("Cargo.toml"),
            "executable": program,
        });
        let broken_text = broken.display();
        script(
            &cargo,
            &format!(
                "if [ -e '{broken_text}' ]; then echo 'error: this is wrong' >&2; exit 101; fi\n\
                 echo '{made}'\n"
            ),
        );
        let inventory = repository().join(format!("testdata/inventories/{name}.json"));
        script(&program, &operator(&inventory));
        Self {
            place,
            cargo,
            broken,
            _around: around,
        }
    }
}

/// Answers as an operator does: what it consists of, or it runs until it is asked to end. It waits for its input to close,
/// which a signal interrupts.
fn operator(inventory: &Path) -> String {
    format!(
        "if [ \"$1\" = inventory ]; then exec cat '{}'; fi\n\
         exec 3<&0\n\
         cat <&3 & waiter=$!\n\
         trap 'kill $waiter; echo \"$$ was asked to end\"; exit 0' TERM INT\n\
         echo \"$$ started with KUBECONFIG=$KUBECONFIG $*\"\n\
         wait $waiter\n",
        inventory.display()
    )
}
