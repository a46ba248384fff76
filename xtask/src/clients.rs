//! `cargo xtask clients`: clients not written here, against our server, with what they get checked.

mod catalog;
pub(crate) mod go;
mod java;
mod node;
mod python;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use http::Method;

use crate::kubectl::server::Server;
use crate::lanes::{AllowMissing, Missing};
use crate::process::{self, Output};
use crate::workspace::{self, Profile};
use catalog::{CLIENTS, Client, Language};

/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(180);
const FRUIT: &str = include_str!("../../examples/fruit/crd.yaml");

/// Drive clients not written here against the server, and check what they get
///
/// Each client is installed from its registry under target/lanes, gets a fresh server, and creates, lists, watches,
/// patches, applies and deletes objects of a built-in kind and of the Fruit CRD of examples/fruit; ansible and the Java
/// clients, which get a whole cluster, read logs, taint and drain nodes, and run informers and an operator. The programs are in
/// xtask/lanes. A client that cannot be installed on this machine is left out with the reason. The command fails if a step does,
/// and if a client is left out, unless --allow-missing is passed.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Only clients with this in their name
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Build and use the server in release
    #[arg(long)]
    release: bool,
    /// Print every step
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    missing: AllowMissing,
}

/// What became of a client.
enum Outcome {
    /// Its steps: name, and what went wrong.
    Ran(Vec<(String, Option<String>)>),
    LeftOut(Missing),
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let is_meant = |client: &&Client| {
        let only = arguments.only.as_deref();
        only.is_none_or(|text| client.name.contains(text) || client.language.name().contains(text))
    };
    let chosen: Vec<&Client> = CLIENTS.iter().filter(is_meant).collect();
    ensure!(!chosen.is_empty(), "no client has that in its name");
    let profile = if arguments.release {
        Profile::Release
    } else {
        Profile::Debug
    };
    let binary = workspace::build("kubewright-cli", "kubewright", profile)?;
    let (mut failed, mut left_out) = (false, Vec::new());
    println!("{:<40}{:<8}steps", "client", "in");
    for client in chosen {
        let outcome = drive(client, &binary)?;
        failed |= show(client, &outcome, arguments.verbose)?;
        if let Outcome::LeftOut(missing) = outcome {
            left_out.push(format!("{}: {missing}", client.name));
        }
    }
    let end = arguments.missing.end(&left_out);
    Ok(if failed { ExitCode::FAILURE } else { end })
}

fn drive(client: &Client, binary: &Path) -> Result<Outcome> {
    let prepared = match client.language {
        Language::Python | Language::Ansible => {
            python::command(client.program, client.language.pins())?
        }
        Language::Java => java::command(client.program)?,
        Language::Node => node::command(client.program)?,
        Language::Go => go::command(client.program)?,
    };
    let mut command = match prepared {
        Ok(command) => command,
        Err(missing) => return Ok(Outcome::LeftOut(missing)),
    };
    let server = Server::start(binary, client.world)?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let reply = server.send(Method::POST, path, "application/yaml", FRUIT)?;
    if !reply.status.is_success() {
        bail!("the CRD was not taken: {}", reply.status);
    }
    let output = process::run(isolate(&mut command, &server), "", PATIENCE)?;
    Ok(Outcome::Ran(steps(&output)))
}

/// Clients see this server and nothing of the user's.
fn isolate<'a>(command: &'a mut Command, server: &Server) -> &'a mut Command {
    command
        .env("KUBECONFIG", server.kubeconfig())
        .env("HOME", server.folder())
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

/// The lines `ok name` and `not ok name: why`. A client that says nothing at all has failed.
fn steps(output: &Output) -> Vec<(String, Option<String>)> {
    let mut steps = Vec::new();
    for line in output.stdout.lines() {
        if let Some(name) = line.strip_prefix("ok ") {
            steps.push((name.to_owned(), None));
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            let (name, why) = rest.split_once(": ").unwrap_or((rest, ""));
            steps.push((name.to_owned(), Some(why.to_owned())));
        }
    }
    let well = output.end == process::End::Exited(0);
    let failed = steps.iter().any(|(_, why)| why.is_some());
    if (!well && !failed) || steps.is_empty() {
        let last = output.stderr.lines().last().unwrap_or("").to_owned();
        steps.push(("end".to_owned(), Some(format!("{:?}: {last}", output.end))));
    }
    steps
}

/// Shows a client and tells whether a step failed.
fn show(client: &Client, outcome: &Outcome, verbose: bool) -> Result<bool> {
    let name = format!("{} {}", client.name, client.version()?);
    let language = client.language.name();
    let steps = match outcome {
        Outcome::LeftOut(why) => {
            println!("{name:<40}{language:<8}– left out: {why}");
            return Ok(false);
        }
        Outcome::Ran(steps) => steps,
    };
    let failed = steps.iter().filter(|(_, why)| why.is_some()).count();
    match failed {
        0 => println!("{name:<40}{language:<8}✓ {}", steps.len()),
        failed => println!("{name:<40}{language:<8}✗ {failed} of {}", steps.len()),
    }
    for (step, why) in steps {
        match why {
            Some(why) => println!("    ✗ {step}: {why}"),
            None if verbose => println!("    ✓ {step}"),
            None => {}
        }
    }
    Ok(failed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::End;

    #[test]
    fn a_client_that_ends_without_a_word_has_failed() {
        let output = |stdout: &str, code| Output {
            stdout: stdout.to_owned(),
            stderr: "Traceback\nKeyError".to_owned(),
            end: End::Exited(code),
        };
        let failures = |output: &Output| {
            steps(output)
                .iter()
                .filter(|(_, why)| why.is_some())
                .count()
        };
        for (text, code, expected) in [
            ("ok a\nnoise\nok b\n", 0, 0),
            ("ok a\nnot ok b: c: d\n", 1, 1),
            ("ok a\n", 1, 1),
            ("", 0, 1),
        ] {
            assert_eq!(failures(&output(text, code)), expected, "{text:?}");
        }
    }
}
