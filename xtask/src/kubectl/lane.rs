//! One kubectl through the whole script, on a server of its own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::process::{self, End, Output, Running};
use crate::workspace;

use super::check;
use super::discover::Kubectl;
use super::server::Server;
use super::step::{Action, Call, Group, PRINTED_BEFORE, Step, World};

/// How long a step may be silent.
const PATIENCE: Duration = Duration::from_secs(30);
/// The newest kubectl that reads the OpenAPI document only as protobuf.
const LAST_WITH_OPENAPI_V2: u32 = 28;

/// What became of a step.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed(Output),
    Failed(Vec<String>),
    LeftOut,
}

struct Lane<'a> {
    kubectl: &'a Kubectl,
    world: World,
    server: Server,
    /// Whether this kubectl can read the OpenAPI document of this server.
    openapi: bool,
    /// What the step before has printed.
    printed: String,
}

/// Runs every group; `done` hears of each as it ends.
pub(crate) fn run(
    kubectl: &Kubectl,
    binary: &Path,
    groups: &[Group],
    done: impl Fn(&Group, &[Outcome]),
) -> Result<Vec<Vec<Outcome>>> {
    let mut results = Vec::new();
    let mut lane: Option<Lane> = None;
    for group in groups {
        // Groups of one world follow each other and share it.
        let lane = match &mut lane {
            Some(lane) if lane.world == group.world => lane,
            other => other.insert(Lane::enter(kubectl, binary, group.world)?),
        };
        let outcomes = group
            .steps
            .iter()
            .map(|step| lane.step(step))
            .collect::<Result<Vec<_>>>()?;
        done(group, &outcomes);
        results.push(outcomes);
    }
    Ok(results)
}

impl<'a> Lane<'a> {
    fn enter(kubectl: &'a Kubectl, binary: &Path, world: World) -> Result<Self> {
        let server = Server::start(binary, world)?;
        let openapi = kubectl.minor > LAST_WITH_OPENAPI_V2 || server.serves_openapi_protobuf()?;
        Ok(Self {
            kubectl,
            world,
            server,
            openapi,
            printed: String::new(),
        })
    }

    fn step(&mut self, step: &Step) -> Result<Outcome> {
        if step.needs.minor > self.kubectl.minor || (step.needs.openapi && !self.openapi) {
            return Ok(Outcome::LeftOut);
        }
        let output = match &step.action {
            Action::Call(call) => {
                let stdin = call.stdin.replace(PRINTED_BEFORE, self.printed.trim());
                process::run(&mut self.command(call), &stdin, PATIENCE)?
            }
            Action::Meanwhile {
                call,
                first,
                change,
            } => self.meanwhile(step, call, first, change)?,
            Action::Http {
                method,
                path,
                content_type,
                body,
            } => {
                let reply = self.server.send(method.clone(), path, content_type, body)?;
                Output {
                    stdout: String::from_utf8_lossy(&reply.body).into_owned(),
                    stderr: String::new(),
                    end: End::Exited(reply.status.as_u16().into()),
                }
            }
        };
        self.printed.clone_from(&output.stdout);
        let failures = check::failures(step, &output);
        Ok(if failures.is_empty() {
            Outcome::Passed(output)
        } else {
            Outcome::Failed(failures)
        })
    }

    fn meanwhile(&self, step: &Step, call: &Call, first: &str, change: &Call) -> Result<Output> {
        let mut running = Running::start(&mut self.command(call), call.stdin)?;
        if running.read_until(PATIENCE, |output| output.shows(first)) {
            let changed = process::run(&mut self.command(change), change.stdin, PATIENCE)?;
            if changed.end != End::Exited(0) {
                return Ok(changed);
            }
            running.read_until(PATIENCE, |output| check::complete(step, output));
        }
        Ok(running.into_output())
    }

    fn command(&self, call: &Call) -> Command {
        let folder = self.server.folder();
        let mut command = Command::new(&self.kubectl.path);
        let mut words = call.words();
        if !self.openapi && validates(&words) {
            words.push("--validate=false".to_owned());
        }
        command
            .args(words)
            .current_dir(workspace::root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("KUBECACHEDIR", folder.join("cache"))
            .env("KUBE_EDITOR", call.editor);
        command
    }
}

/// Whether this call checks a manifest against the OpenAPI document before it sends it.
fn validates(words: &[String]) -> bool {
    let from_file = words.iter().any(|word| word == "-f");
    match words.first().map_or("", String::as_str) {
        "create" | "apply" | "replace" => from_file,
        verb => verb == "edit",
    }
}
