//! What comes of a command that a node runs in a container: for a probe or a hook.

use std::time::Duration;

use super::super::files::Files;
use super::{Effect, Halt, Shell};

/// Commands whose end is the same in every image, and in whatever state that is.
const SAME_EVERYWHERE: [&str; 6] = ["true", ":", "false", "echo", "printf", "set"];

/// What a command does, as far as it says it plainly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What it writes.
    pub(crate) output: String,
    /// When it ends and with which code; nothing if it goes on.
    pub(crate) end: Option<(Duration, i32)>,
    /// Whether nothing in the container can change that: no file or variable is looked at.
    pub(crate) certain: bool,
}

impl Outcome {
    /// Whether the command fails whatever is in the container.
    pub(crate) fn surely_fails(&self) -> bool {
        self.certain && self.end.is_some_and(|(_, code)| code != 0)
    }
}

/// What comes of a command; nothing when it is not plain. What an image has of files and variables is not known here, so a
/// command that names a variable is not plain, and one that looks at files is not certain.
pub(crate) fn outcome(command: &[String]) -> Option<Outcome> {
    if command.is_empty() || command.iter().any(|word| word.contains(['$', '`'])) {
        return None;
    }
    let mut files = Files::default();
    let mut shell = Shell::new(&[], "", &mut files);
    let code = match shell.run(command) {
        Err(Halt::NotPlain) => return None,
        Err(Halt::Exit(code)) => code,
        Ok(()) => shell.status,
    };
    let (mut output, mut after, mut goes_on) = (String::new(), Duration::ZERO, false);
    for effect in &shell.effects {
        match effect {
            Effect::Print(bytes) => output += &String::from_utf8_lossy(bytes),
            Effect::PrintError(text) => output += text,
            Effect::Sleep(pause) => after = after.saturating_add(*pause),
            Effect::Forever => goes_on = true,
        }
    }
    Some(Outcome {
        output,
        end: (!goes_on).then_some((after, code)),
        certain: shell.certain,
    })
}

/// Whether a command has the same end everywhere.
pub(super) fn is_same_everywhere(name: &str) -> bool {
    SAME_EVERYWHERE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(command: &[&str]) -> Option<String> {
        let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
        let outcome = outcome(&command)?;
        let end = match outcome.end {
            Some((after, code)) => format!("{code} after {}", after.as_secs()),
            None => "goes on".to_owned(),
        };
        let certain = if outcome.certain { "" } else { ", perhaps" };
        Some(format!("{}{end}{certain}", outcome.output))
    }

    #[test]
    fn only_what_no_image_can_change_is_certain() {
        for (command, expected) in [
            (&["false"][..], Some("1 after 0")),
            (&["/bin/true"], Some("0 after 0")),
            (&["sh", "-c", "exit 3"], Some("3 after 0")),
            (&["sh", "-c", "echo no; exit 1"], Some("no\n1 after 0")),
            (&["sh", "-c", "sleep 5; true"], Some("0 after 5")),
            (&["sleep", "infinity"], Some("goes on")),
            (
                &["cat", "/tmp/healthy"],
                Some(
                    "cat: can't open '/tmp/healthy': No such file or directory\n1 after 0, perhaps",
                ),
            ),
            (&["test", "-f", "/ready"], Some("1 after 0, perhaps")),
            (
                &["sh", "-c", "test -f /ready || exit 4"],
                Some("4 after 0, perhaps"),
            ),
            (&["sh", "-c", "exit $CODE"], None),
            (&["pg_isready"], None),
            (&[], None),
        ] {
            assert_eq!(shown(command).as_deref(), expected, "{command:?}");
        }
    }
}
