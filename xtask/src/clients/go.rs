//! Go: our programs, built against the modules that go.mod pins.

use std::process::Command;

use anyhow::Result;

use crate::lanes::{self, Missing};

/// The command that runs one of our programs.
pub(crate) fn command(program: &str) -> Result<Result<Command, Missing>> {
    if !lanes::is_there("go") {
        return Ok(Err(Missing("go is not installed".to_owned())));
    }
    let binary = lanes::installed("go")?.join(program);
    let mut build = Command::new("go");
    build
        .current_dir(lanes::sources("go"))
        .args(["build", "-o"])
        .arg(&binary)
        .arg(format!("./{program}"));
    let built = lanes::tool(&mut build, "go cannot build it")?;
    Ok(built.map(|_| Command::new(binary)))
}
