//! The helper: a small process of its own for each container, which does what the runtime cannot do from within itself.
//!
//! It is the same binary as the runtime's (`kubewright`, with a hidden subcommand) or a small one beside it. A helper
//! hears from the runtime over a socket. When that closes, for whatever reason, it ends everything that it started: a
//! runtime that was killed leaves nothing behind.

mod contain;
mod descendants;
pub(crate) mod message;
mod root;
mod supervise;

use std::ffi::OsString;
use std::process::ExitCode;

use contain::Users;
use supervise::Scope;

/// The hidden subcommand of `kubewright` that is the helper.
pub const HELPER_COMMAND: &str = "process-helper";

/// Runs the helper with the arguments after the name of the program, or after [`HELPER_COMMAND`].
///
/// It must be called before anything starts a thread.
pub fn helper_main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let own = std::env::args_os().nth(1);
    let subcommand = own
        .is_some_and(|first| first == HELPER_COMMAND)
        .then_some(HELPER_COMMAND);
    let done = match words.as_slice() {
        ["supervise"] => supervise::run(Scope::Container),
        ["contain"] => contain::contain(Users::Machine, subcommand),
        ["contain", "--user"] => contain::contain(Users::Own, subcommand),
        ["command"] => supervise::run(Scope::Command),
        ["command", outside, init] => match (outside.parse(), init.parse()) {
            (Ok(outside), Ok(init)) => supervise::run(Scope::Within { outside, init }),
            _ => Err(std::io::Error::other("two numbers of processes are needed")),
        },
        _ => {
            eprintln!("this is the helper of kubewright's process runtime; it is not for people");
            return ExitCode::FAILURE;
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the container's: whoever reads its log sees why.
            eprintln!("kubewright: {error}");
            ExitCode::FAILURE
        }
    }
}
