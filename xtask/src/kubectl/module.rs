//! kubectl of any version, built from the Go module `k8s.io/kubectl`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// What the kubectl of a release does beside setting its version.
const MAIN: &str = r#"package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
"#;

/// Builds kubectl 1.`minor`.`patch`, unless it was built before, and gives its path.
///
/// # Errors
/// When Go is missing, or the module cannot be had.
pub(crate) fn build(version: &str) -> Result<PathBuf> {
    let Some(rest) = version.strip_prefix("1.") else {
        bail!("{version:?} is not a version of kubectl such as 1.37.2");
    };
    let folder = workspace::target().join("kubectl").join(version);
    let program = folder.join("kubectl");
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    // Without a version of Go the graph of modules is read whole: thousands of files over the network.
    let modules = format!(
        "module kubectl\n\ngo 1.24\n\nrequire (\n\tk8s.io/component-base v0.{rest}\n\tk8s.io/kubectl v0.{rest}\n)\n"
    );
    for (file, text) in [("main.go", MAIN), ("go.mod", &modules)] {
        fs::write(folder.join(file), text).with_context(|| format!("writing {file}"))?;
    }
    let minor = rest.split('.').next().unwrap_or_default();
    let set = |name: &str, value: &str| format!("-X k8s.io/component-base/version.{name}={value}");
    let flags = [
        set("gitVersion", &format!("v{version}")),
        set("gitMajor", "1"),
        set("gitMinor", minor),
    ];
    let flags = format!("-s -w {}", flags.join(" "));
    // Not `go mod tidy`: it fetches what the tests of all dependencies need as well, for many minutes.
    let status = Command::new("go")
        .args(["build", "-mod=mod", "-ldflags", &flags, "-o", "kubectl"])
        .arg(".")
        .current_dir(&folder)
        .status()
        .context("running go, which builds kubectl; install it, or leave out --build")?;
    if !status.success() {
        bail!("go build failed in {}", folder.display());
    }
    Ok(program)
}
