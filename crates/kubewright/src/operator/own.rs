//! Flags of an operator's own, beside those that every operator has.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command};
use kubewright_runtime::States;

/// The heading above them in the help.
const HEADING: &str = "Options of this operator";

/// A struct of flags, without its type.
#[derive(Clone, Copy)]
pub(super) struct OwnFlags {
    augment: fn(Command) -> Command,
    read: fn(&ArgMatches, &mut States) -> Result<(), clap::Error>,
}

impl OwnFlags {
    pub(super) fn of<A: Args + Send + Sync + 'static>() -> Self {
        Self {
            augment: A::augment_args,
            read: |matches, states| {
                states.insert(A::from_arg_matches(matches)?);
                Ok(())
            },
        }
    }

    /// Adds the flags to a command line.
    ///
    /// # Errors
    /// When it has one of this name. What the parser does then depends on how it was compiled.
    pub(super) fn add_to(self, mut command: Command) -> Result<Command, clap::Error> {
        let own = (self.augment)(Command::new("operator"));
        let taken = own.get_arguments().find(|arg| is_taken(arg, &command));
        if let Some(arg) = taken {
            let problem = format!(
                "operators have the flag --{} already: give the operator's own another name",
                arg.get_long().unwrap_or(arg.get_id().as_str())
            );
            return Err(command.error(ErrorKind::ArgumentConflict, problem));
        }
        Ok((self.augment)(command.next_help_heading(HEADING)))
    }

    /// Adds what the command line says to what the operator is given.
    pub(super) fn read(self, matches: &ArgMatches, states: &mut States) -> Result<(), clap::Error> {
        (self.read)(matches, states)
    }
}

fn is_taken(arg: &Arg, command: &Command) -> bool {
    command.get_arguments().any(|known| {
        let same_flag = arg.get_long().is_some() && arg.get_long() == known.get_long();
        same_flag || arg.get_id() == known.get_id()
    })
}
