//! What a command plainly says: a small shell of a few dozen commands, enough for `kubectl exec`, `cp` and `debug`, and to
//! tell that `sleep 5` ends after five seconds.
//!
//! Nothing is executed: a command becomes a list of [`Effect`]s. Whatever is not known here is not plain, and the node
//! falls back to what it does for any image.

mod commands;
mod outcome;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::core::v1::Container;

use super::files::{Files, ROOT};
use super::image::repository;
use commands::run_command;
pub(crate) use outcome::outcome;
use words::{Joint, Words, parse};

/// Longest list of effects; a script that has more is cut off.
const MOST_EFFECTS: usize = 10_000;
/// How deep scripts may call scripts.
const DEEPEST: usize = 8;

/// Something that a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Print(Bytes),
    PrintError(String),
    Sleep(Duration),
    /// It goes on until it is ended.
    Forever,
}

/// Why the rest of a script is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// The script has ended.
    Exit(i32),
    /// It contains something that is not known.
    NotPlain,
}

/// One script and its surroundings.
pub(super) struct Shell<'a> {
    pub(super) env: BTreeMap<String, String>,
    pub(super) files: &'a mut Files,
    pub(super) directory: String,
    pub(super) stdin: Bytes,
    pub(super) effects: Vec<Effect>,
    pub(super) status: i32,
    pub(super) hostname: String,
    /// Whether a trap for SIGTERM was set.
    pub(super) traps: bool,
    /// Whether nothing was looked at that depends on the image.
    pub(super) certain: bool,
    depth: usize,
}

impl<'a> Shell<'a> {
    pub(super) fn new(env: &[(String, String)], hostname: &str, files: &'a mut Files) -> Self {
        let mut env: BTreeMap<String, String> = env.iter().cloned().collect();
        for (name, value) in [
            (
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ),
            ("HOME", "/root"),
            ("HOSTNAME", hostname),
        ] {
            env.entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
        Self {
            env,
            files,
            directory: ROOT.to_owned(),
            stdin: Bytes::new(),
            effects: Vec::new(),
            status: 0,
            hostname: hostname.to_owned(),
            traps: false,
            certain: true,
            depth: 0,
        }
    }

    /// Carries out a command with its arguments; the exit code is in `status` afterwards.
    ///
    /// # Errors
    /// Why nothing after it is carried out.
    pub(super) fn run(&mut self, argv: &[String]) -> Result<(), Halt> {
        run_command(self, argv)
    }

    /// Carries out a script.
    pub(super) fn script(&mut self, text: &str) -> Result<(), Halt> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Halt::NotPlain);
        }
        let done = self.lines(text);
        self.depth -= 1;
        done
    }

    fn lines(&mut self, text: &str) -> Result<(), Halt> {
        let text = text.trim();
        if let Some(body) = endless_loop(text) {
            self.script(body)?;
            self.effects.push(Effect::Forever);
            return Err(Halt::Exit(0));
        }
        for Words {
            joint,
            words,
            redirect,
        } in parse(text, &self.env).ok_or(Halt::NotPlain)?
        {
            let run = match joint {
                Joint::Always => true,
                Joint::IfGood => self.status == 0,
                Joint::IfBad => self.status != 0,
            };
            if !run {
                continue;
            }
            // A loop that follows other commands is found when it is its turn.
            if words
                .first()
                .is_some_and(|word| word == "while" || word == "until")
            {
                let rest = &text[text.find(words[0].as_str()).unwrap_or(0)..];
                let body = endless_loop(rest).ok_or(Halt::NotPlain)?;
                self.script(body)?;
                self.effects.push(Effect::Forever);
                return Err(Halt::Exit(0));
            }
            let before = self.effects.len();
            self.run(&words)?;
            if let Some((path, append)) = redirect {
                self.redirect(before, &path, append);
            }
            if self.effects.len() > MOST_EFFECTS || self.effects.last() == Some(&Effect::Forever) {
                return Err(Halt::Exit(0));
            }
        }
        Ok(())
    }

    /// What was printed goes into a file instead.
    fn redirect(&mut self, before: usize, path: &str, append: bool) {
        let path = super::files::absolute(&self.directory, path);
        let mut content = if append {
            self.files
                .read(&path)
                .map(|b| b.to_vec())
                .unwrap_or_default()
        } else {
            Vec::new()
        };
        let new = self.effects.split_off(before);
        for effect in new {
            match effect {
                Effect::Print(bytes) => content.extend_from_slice(&bytes),
                other => self.effects.push(other),
            }
        }
        if path != "/dev/null" && !self.files.write(&path, content.into()) {
            self.fail(&format!("{path}: No space left on device"));
        }
    }

    pub(super) fn print(&mut self, text: impl Into<Bytes>) {
        self.status = 0;
        self.effects.push(Effect::Print(text.into()));
    }

    pub(super) fn fail(&mut self, text: &str) {
        self.status = 1;
        self.effects.push(Effect::PrintError(format!("{text}\n")));
    }
}

/// The body of `while true; do BODY; done` at the beginning of a script.
fn endless_loop(text: &str) -> Option<&str> {
    let rest = ["while true", "while :", "while [ 1 ]", "until false"]
        .iter()
        .find_map(|head| text.strip_prefix(head))?;
    let rest = rest
        .trim_start()
        .strip_prefix(';')
        .unwrap_or(rest)
        .trim_start();
    let rest = rest.strip_prefix("do")?;
    let body = rest.trim().strip_suffix("done")?;
    Some(body.trim().trim_end_matches(';'))
}

/// What a container does, as far as its command says it plainly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What it writes, and when.
    pub(crate) output: Vec<(Duration, String)>,
    /// When it ends by itself and with which code.
    pub(crate) exit: Option<(Duration, i32)>,
    pub(crate) stops: Stops,
}

/// What a container does when it is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stops {
    /// It ends as soon as it gets SIGTERM.
    WhenAsked,
    /// It has no handler for SIGTERM, which the first process of a container needs: it is killed when its grace period is
    /// over.
    WhenKilled,
}

/// Images that are servers: they run on, whatever the restart policy of their pod.
const SERVERS: [&str; 18] = [
    "nginx",
    "httpd",
    "caddy",
    "traefik",
    "redis",
    "valkey",
    "memcached",
    "postgres",
    "mysql",
    "mariadb",
    "mongo",
    "rabbitmq",
    "etcd",
    "cassandra",
    "elasticsearch",
    "registry",
    "agnhost",
    "pause",
];

/// What the command of a container says; nothing when it is not plain.
pub(crate) fn interpret(container: &Container, env: &[(String, String)]) -> Option<Plan> {
    let command = container.command.iter().flatten();
    let argv: Vec<String> = command
        .chain(container.args.iter().flatten())
        .cloned()
        .collect();
    if argv.is_empty() {
        let image = repository(container.image.as_deref().unwrap_or(""));
        let name = image.rsplit('/').next().unwrap_or(image);
        return SERVERS.contains(&name).then_some(Plan {
            output: Vec::new(),
            exit: None,
            stops: Stops::WhenAsked,
        });
    }
    // Arguments without a command go to whatever the image runs, unless they name a command that is plain.
    let mut files = Files::default();
    let mut shell = Shell::new(env, "", &mut files);
    let end = shell.run(&argv);
    if end == Err(Halt::NotPlain) {
        return None;
    }
    let stops = if shell.traps || argv[0].ends_with("pause") {
        Stops::WhenAsked
    } else {
        Stops::WhenKilled
    };
    let code = match end {
        Err(Halt::Exit(code)) => code,
        _ => shell.status,
    };
    Some(plan(&shell.effects, code, stops))
}

fn plan(effects: &[Effect], code: i32, stops: Stops) -> Plan {
    let (mut now, mut output) = (Duration::ZERO, Vec::new());
    for effect in effects {
        match effect {
            Effect::Print(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                output.extend(text.lines().map(|line| (now, line.to_owned())));
            }
            Effect::PrintError(text) => {
                output.extend(text.lines().map(|line| (now, line.to_owned())));
            }
            Effect::Sleep(pause) => now = now.saturating_add(*pause),
            Effect::Forever => {
                return Plan {
                    output,
                    exit: None,
                    stops,
                };
            }
        }
    }
    Plan {
        output,
        exit: Some((now, code)),
        stops,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn planned(command: &[&str]) -> Option<String> {
        let container = json!({"name": "c", "image": "busybox", "command": command});
        let container = serde_json::from_value(container).expect("a container");
        let env = [("NAME".to_owned(), "world".to_owned())];
        let plan = interpret(&container, &env)?;
        let lines: Vec<String> = plan
            .output
            .iter()
            .map(|(at, line)| format!("{}:{line}", at.as_secs()))
            .collect();
        let end = match plan.exit {
            Some((after, code)) => format!("exit {code} after {}", after.as_secs()),
            None => format!("runs on, stops {:?}", plan.stops),
        };
        Some(format!("{} {end}", lines.join(" ")).trim().to_owned())
    }

    #[test]
    fn commands_do_what_they_plainly_say() {
        for (command, expect) in [
            (&["true"][..], Some("exit 0 after 0")),
            (&["/bin/false"], Some("exit 1 after 0")),
            (&["sleep", "5"], Some("exit 0 after 5")),
            (&["sleep", "1m"], Some("exit 0 after 60")),
            (&["sleep", "infinity"], Some("runs on, stops WhenKilled")),
            (&["/pause"], Some("runs on, stops WhenAsked")),
            (
                &["tail", "-f", "/dev/null"],
                Some("runs on, stops WhenKilled"),
            ),
            (&["sh", "-c", "exit 7"], Some("exit 7 after 0")),
            (
                &["sh", "-c", "echo hello $NAME; sleep 2; echo 'a  b'; exit 3"],
                Some("0:hello world 2:a  b exit 3 after 2"),
            ),
            (
                &["sh", "-c", "false || echo no && echo yes"],
                Some("0:no 0:yes exit 0 after 0"),
            ),
            (
                &["sh", "-c", "false && echo no; echo $?"],
                Some("0:1 exit 0 after 0"),
            ),
            (
                &["/bin/sh", "-c", "while true; do echo tick; sleep 1; done"],
                Some("0:tick runs on, stops WhenKilled"),
            ),
            (
                &["sh", "-c", "trap 'exit 0' TERM; sleep infinity"],
                Some("runs on, stops WhenAsked"),
            ),
            (
                &["sh", "-ec", "echo ${NAME} > /tmp/x\ncat /tmp/x"],
                Some("0:world exit 0 after 0"),
            ),
            (
                &["sh", "-c", "test -f /nowhere || exit 4"],
                Some("exit 4 after 0"),
            ),
            (&["perl", "-e", "print 1"], None),
            (&["sh", "-c", "echo $(date)"], None),
            (&["sh", "-c", "echo a | grep a"], None),
            (&["sh", "-c", "frobnicate; exit 1"], None),
        ] {
            assert_eq!(planned(command).as_deref(), expect, "{command:?}");
        }
    }
}
