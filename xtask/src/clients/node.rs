//! Node: the packages that package.json pins, under target/lanes beside a copy of our program.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::lanes::{self, Missing};

/// The command that runs one of our programs.
pub(super) fn command(program: &str) -> Result<Result<Command, Missing>> {
    for tool in ["node", "npm"] {
        if !lanes::is_there(tool) {
            return Ok(Err(Missing(format!("{tool} is not installed"))));
        }
    }
    let sources = lanes::sources("node");
    let directory = lanes::installed("node")?;
    // Packages are looked for above the file that imports them.
    for file in ["package.json", program] {
        fs::copy(sources.join(file), directory.join(file))?;
    }
    let text = fs::read_to_string(sources.join("package.json"))?;
    let installed = lanes::once(&directory, &text, || {
        let mut npm = Command::new("npm");
        npm.current_dir(&directory)
            .args(["install", "--silent", "--no-fund", "--no-audit"]);
        Ok(lanes::tool(&mut npm, "npm cannot install it")?.map(|_| ()))
    })?;
    Ok(installed.map(|()| {
        let mut command = Command::new("node");
        command.arg(directory.join(program));
        command
    }))
}
