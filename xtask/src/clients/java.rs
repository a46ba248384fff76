//! Java: our programs, compiled against what pom.xml pins, under target/lanes.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::lanes::{self, Missing};

/// The command that runs one of our programs, a class of package `lane`.
pub(super) fn command(program: &str) -> Result<Result<Command, Missing>> {
    for tool in ["java", "mvn"] {
        if !lanes::is_there(tool) {
            return Ok(Err(Missing(format!("{tool} is not installed"))));
        }
    }
    let sources = lanes::sources("java");
    let directory = lanes::installed("java")?;
    let pom = sources.join("pom.xml");
    let installed = lanes::once(&directory, &fs::read_to_string(&pom)?, || {
        let mut maven = Command::new("mvn");
        maven
            .args(["-q", "-B", "dependency:copy-dependencies", "-f"])
            .arg(&pom)
            .arg(format!(
                "-DoutputDirectory={}",
                directory.join("lib").display()
            ));
        Ok(lanes::tool(&mut maven, "maven cannot fetch it")?.map(|_| ()))
    })?;
    if let Err(missing) = installed {
        return Ok(Err(missing));
    }
    let (classes, libraries) = (directory.join("classes"), directory.join("lib/*"));
    let mut compiler = Command::new("javac");
    compiler
        .arg("-d")
        .arg(&classes)
        .arg("-cp")
        .arg(&libraries)
        .args(programs(&sources.join("src/main/java/lane"))?);
    let compiled = lanes::tool(&mut compiler, "javac cannot compile it")?;
    Ok(compiled.map(|_| {
        let mut command = Command::new("java");
        let path = format!("{}:{}", classes.display(), libraries.display());
        command.args(["-cp", &path]).arg(format!("lane.{program}"));
        command
    }))
}

fn programs(directory: &std::path::Path) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        found.push(entry?.path());
    }
    found.sort();
    Ok(found)
}
