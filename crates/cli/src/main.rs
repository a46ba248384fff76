//! The `kubewright` command.

mod alpha;
mod completion;
mod console;
mod create;
mod delete;
mod demo;
mod deploy;
mod dev;
mod doctor;
mod edit;
mod envtest;
mod etcd;
mod flags;
mod folder;
mod generate;
mod image;
mod init;
mod kube_apiserver;
mod lint;
mod man;
mod masquerade;
mod notes;
mod page;
mod picture;
mod program;
mod remote;
mod rename;
mod run;
mod scaffold;
mod sdk;
mod simulate;
mod top;
mod up;
mod version;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use masquerade::Role;
use tracing_subscriber::EnvFilter;

/// A cluster lives of small objects that come and go. With the system's allocator each takes longer the more of them stay.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Build, run and prove Kubernetes operators.
#[derive(Debug, Parser)]
#[command(
    name = "kubewright",
    version,
    after_help = "First steps:\n  \
    mkdir guestbook && cd guestbook\n  \
    kubewright init --domain example.com\n  \
    kubewright create api --group webapp --version v1 --kind Guestbook\n  \
    kubewright dev              a cluster and the program on it, built again when a source changes\n  \
    cargo test                  the same, inside the tests\n  \
    kubewright simulate         the program through every single fault\n\n\
    `kubewright COMMAND --help` says more, with examples. `kubewright demo` shows an operator at work."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Create(create::Create),
    Delete(delete::Delete),
    Rename(rename::Rename),
    Edit(edit::Edit),
    Alpha(alpha::Alpha),
    Generate(generate::Generate),
    /// The same as generate
    Manifests(generate::Generate),
    Lint(lint::Lint),
    Run(run::Run),
    Dev(dev::Dev),
    Simulate(simulate::Simulate),
    Up(up::Up),
    Console(console::Console),
    Top(top::Top),
    Install(deploy::Install),
    Uninstall(deploy::Uninstall),
    Deploy(deploy::Deploy),
    Undeploy(deploy::Undeploy),
    Image(image::Image),
    Demo(demo::Demo),
    Envtest(envtest::Envtest),
    Doctor(doctor::Doctor),
    Completion(completion::Completion),
    Man(man::Man),
    Version(version::Version),
}

fn main() -> ExitCode {
    // The helper of containers comes before everything: it may not have a thread, and starts often.
    let mut arguments = std::env::args_os().skip(1);
    if arguments
        .next()
        .is_some_and(|first| first == kubewright_process::HELPER_COMMAND)
    {
        return kubewright_process::helper_main(arguments);
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, a line each. What people did wrong has no backtrace, whatever the environment says.
fn with_causes(error: &anyhow::Error) -> String {
    let causes = error
        .chain()
        .skip(1)
        .map(|cause| format!("\n  because: {cause}"));
    format!("Error: {error}{}", causes.collect::<String>())
}

fn run() -> anyhow::Result<()> {
    // What a user may not list is said by the page and the tree; as lines of the log it would be one for each kind.
    let usual = || EnvFilter::new("warn,kubewright_cache::report=error");
    let filter = EnvFilter::try_from_env("KUBEWRIGHT_LOG").unwrap_or_else(|_| usual());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let called = std::env::args_os().next().map(PathBuf::from);
    if let Some(role) = called.as_deref().and_then(Role::of) {
        let arguments = std::env::args_os().skip(1);
        return role.play(arguments.map(|argument| argument.to_string_lossy().into_owned()));
    }
    Arguments::parse().command.run()
}

impl Command {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Init(init) => init.run(),
            Self::Create(create) => create.run(),
            Self::Delete(delete) => delete.run(),
            Self::Rename(rename) => rename.run(),
            Self::Edit(edit) => edit.run(),
            Self::Alpha(alpha) => alpha.run(),
            Self::Generate(generate) | Self::Manifests(generate) => generate.run(),
            Self::Lint(lint) => lint.run(),
            Self::Run(run) => run.run(),
            Self::Dev(dev) => dev.run(),
            Self::Simulate(simulate) => simulate.run(),
            Self::Up(up) => up.run(),
            Self::Console(console) => console.run(),
            Self::Top(top) => top.run(),
            Self::Install(install) => install.run(),
            Self::Uninstall(uninstall) => uninstall.run(),
            Self::Deploy(deploy) => deploy.run(),
            Self::Undeploy(undeploy) => undeploy.run(),
            Self::Image(image) => image.run(),
            Self::Demo(demo) => demo.run(),
            Self::Envtest(envtest) => envtest.run(),
            Self::Doctor(doctor) => doctor.run(),
            Self::Completion(completion) => {
                completion.run();
                Ok(())
            }
            Self::Man(man) => man.run(),
            Self::Version(version) => {
                version.run();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn errors_are_printed_with_their_causes_and_without_a_backtrace() {
        let error = anyhow::anyhow!("no such file").context("PROJECT cannot be used");
        let text = with_causes(&error);
        assert_eq!(
            text,
            "Error: PROJECT cannot be used\n  because: no such file"
        );
    }

    #[test]
    fn flags_of_all_commands_fit_together() {
        Arguments::command().debug_assert();
    }
}
