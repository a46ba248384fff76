//! What the kernel allows: how much of a container a process can have here.

use std::fmt;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::helper::message::{self, Launch, Report, Root};
use crate::helper_program::Helper;

/// How long the kernel may take to say what it allows.
const TRIED_WITHIN: Duration = Duration::from_secs(10);

/// How containers are kept apart from the machine and from each other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// Namespaces made by root: own files, processes, host name; any user.
    Root,
    /// Namespaces within a user namespace: the same, with one user.
    User,
    /// Plain processes, and why there are no namespaces.
    None(String),
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("namespaces, made as root"),
            Self::User => f.write_str("namespaces of an ordinary user"),
            Self::None(why) => write!(f, "plain processes without namespaces ({why})"),
        }
    }
}

impl Isolation {
    /// Tries what the kernel allows, by making a container that runs nothing. `place` is an empty directory.
    pub(crate) fn tried(helper: &Helper, place: &Path) -> Self {
        let root = nix::unistd::geteuid().is_root();
        let first = if root { Self::Root } else { Self::User };
        match attempt(helper, &first, place) {
            Ok(()) => first,
            Err(why) => Self::None(why.to_string()),
        }
    }

    /// The role of the helper that starts a container.
    pub(crate) fn role(&self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Root => &["contain"],
            Self::User => &["contain", "--user"],
            Self::None(_) => &["supervise"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// Why a container cannot be made here.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error("the helper cannot be asked: {0}")]
    Ask(io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("the helper did not answer: {0}")]
    NoAnswer(String),
}

fn attempt(helper: &Helper, isolation: &Isolation, place: &Path) -> Result<(), AttemptError> {
    let (ours, theirs) = UnixStream::pair().map_err(AttemptError::Ask)?;
    ours.set_read_timeout(Some(TRIED_WITHIN))
        .map_err(AttemptError::Ask)?;
    let mut child = Command::new(&helper.path)
        .args(helper.subcommand)
        .args(isolation.role())
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(AttemptError::Ask)?;
    let launch = Launch {
        directory: "/".to_owned(),
        root: Some(Root {
            place: place.to_owned(),
            lower: vec!["/".into()],
            machine: true,
            user_namespace: *isolation == Isolation::User,
            hostname: "try".to_owned(),
            ..Root::default()
        }),
        ..Launch::default()
    };
    let sent = message::send_descriptors(&ours, &[]).and_then(|()| message::write(&ours, &launch));
    let mut last = None;
    let ended = loop {
        match message::read::<Report>(&ours) {
            // Which of the two processes reports first is up to the kernel.
            Ok(Some(Report::Contained(_))) => {}
            Ok(Some(report)) => last = Some(report),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    drop(ours);
    let mut output = String::new();
    if let Some(stderr) = child.stderr.take() {
        // Its output has the reason where it could not answer.
        let _ = stderr.take(1 << 10).read_to_string(&mut output);
    }
    child.wait().map_err(AttemptError::Ask)?;
    // One that cannot make namespaces reports why and hangs up, whether it was written to or not.
    match (last, sent.and(ended)) {
        (Some(Report::Exited(0)), _) => Ok(()),
        (Some(Report::Failed(why)), _) => Err(AttemptError::Refused(why)),
        (_, Err(error)) if output.trim().is_empty() => Err(AttemptError::Ask(error)),
        _ => Err(AttemptError::NoAnswer(output.trim().to_owned())),
    }
}
