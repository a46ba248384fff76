//! Python: virtual environments under target/lanes, one for each file that pins packages.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::lanes::{self, Missing};

/// Interpreters, the best first; older ones than 3.10 cannot run what is pinned.
const INTERPRETERS: &[&str] = &[
    "python3.12",
    "python3.11",
    "python3.13",
    "python3.10",
    "python3",
];

/// The command that runs one of our programs, with what the file `pins` names.
pub(super) fn command(program: &str, pins: &str) -> Result<Result<Command, Missing>> {
    let Some(python) = INTERPRETERS.iter().find(|name| works(name)) else {
        return Ok(Err(Missing("no Python since 3.10 is installed".to_owned())));
    };
    let sources = lanes::sources("python");
    let environment = lanes::installed(match pins {
        "requirements.txt" => "python",
        _ => "ansible",
    })?;
    let requirements = sources.join(pins);
    let text = fs::read_to_string(&requirements)?;
    let installed = lanes::once(&environment, &text, || {
        let mut venv = Command::new(python);
        venv.args(["-m", "venv"]).arg(&environment);
        if let Err(missing) = lanes::tool(&mut venv, "a virtual environment cannot be made")? {
            return Ok(Err(missing));
        }
        let mut pip = Command::new(environment.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(&requirements);
        Ok(lanes::tool(&mut pip, "pip cannot install it")?.map(|_| ()))
    })?;
    Ok(installed.map(|()| {
        let mut command = Command::new(environment.join("bin/python"));
        command.arg(sources.join(program));
        command
    }))
}

/// Whether an interpreter is there and new enough: a name on PATH may only be a promise.
fn works(python: &str) -> bool {
    let ask = "import sys, venv; sys.exit(sys.version_info < (3, 10))";
    let mut command = Command::new(python);
    let asked = command.args(["-c", ask]).output();
    asked.is_ok_and(|output| output.status.success())
}
