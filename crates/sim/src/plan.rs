//! Plans: which faults a run has, and where. A plan is a line of text, so that a run can be repeated from it.

use std::fmt;
use std::str::FromStr;

use crate::identity::{EventId, TokenError, WriteId, escape, unescape};

/// One fault at one point of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// The operator's process dies before this write is sent.
    CrashBefore(WriteId),
    /// The operator's process dies when the server has done this write, before the answer arrives.
    CrashAfter(WriteId),
    /// The server does this write, and the connection breaks before the answer arrives.
    LoseAnswer(WriteId),
    /// The server answers this write with an error: 409, 429, 500, 503.
    Refuse(u16, WriteId),
    /// The write never arrives, and nobody answers until the client gives up.
    Silence(WriteId),
    /// The process is cut off from the network for 40 s before this write is sent. Another replica takes over if there is
    /// one.
    Partition(WriteId),
    /// The watch ends cleanly after this event.
    Cut(EventId),
    /// The watch expires after this event: the operator has to list again.
    Expire(EventId),
    /// The watch delivers this event and all later ones 20 s late.
    Lag(EventId),
    /// The operator does not see this event: its watch breaks, and when it lists again, the object has changed further or
    /// ten seconds have passed.
    Skip(EventId),
    /// After the step of this name the process is restarted, and comes up with a view of the past: of the moment of this
    /// event. Its API server catches up 20 s later.
    StaleRestart(String, EventId),
    /// The watch expires after this event, and the process goes on with an API server that has not seen the event and catches
    /// up 20 s later.
    StaleReconnect(EventId),
    /// The process is restarted while nothing happens, after the step of this name.
    Restart(String),
    /// Another process takes the operator's lease after the step of this name.
    LoseLease(String),
    /// Somebody deletes an object of the operator's after the step of this name.
    HumanDelete(String, String, String),
    /// Somebody edits an object of the operator's after the step of this name.
    HumanEdit(String, String, String),
    /// For five minutes from the beginning of the step of this name, no call of the operator reaches the API server.
    Outage(String),
    /// For five minutes from the beginning of the step of this name, the API server answers every write of the operator with 503.
    ReadOnly(String),
    /// Calls and events take random times from this seed, so that things happen in another order.
    Jitter(u64),
}

/// What a fault does, without where: to choose among plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// The kind of [`Fault::CrashBefore`].
    CrashBefore,
    /// The kind of [`Fault::CrashAfter`].
    CrashAfter,
    /// The kind of [`Fault::LoseAnswer`].
    LoseAnswer,
    /// The kind of [`Fault::Refuse`].
    Refuse,
    /// The kind of [`Fault::Silence`].
    Silence,
    /// The kind of [`Fault::Partition`].
    Partition,
    /// The kind of [`Fault::Cut`].
    Cut,
    /// The kind of [`Fault::Expire`].
    Expire,
    /// The kind of [`Fault::Lag`].
    Lag,
    /// The kind of [`Fault::Skip`].
    Skip,
    /// The kind of [`Fault::StaleRestart`].
    StaleRestart,
    /// The kind of [`Fault::StaleReconnect`].
    StaleReconnect,
    /// The kind of [`Fault::Restart`].
    Restart,
    /// The kind of [`Fault::LoseLease`].
    LoseLease,
    /// The kind of [`Fault::HumanDelete`].
    HumanDelete,
    /// The kind of [`Fault::HumanEdit`].
    HumanEdit,
    /// The kind of [`Fault::Outage`].
    Outage,
    /// The kind of [`Fault::ReadOnly`].
    ReadOnly,
    /// The kind of [`Fault::Jitter`].
    Jitter,
}

/// The words of replay tokens.
const WORDS: [(FaultKind, &str); 19] = [
    (FaultKind::CrashBefore, "crash-before"),
    (FaultKind::CrashAfter, "crash-after"),
    (FaultKind::LoseAnswer, "lose-answer"),
    (FaultKind::Refuse, "refuse"),
    (FaultKind::Silence, "silence"),
    (FaultKind::Partition, "partition-before"),
    (FaultKind::Cut, "cut-watch-after"),
    (FaultKind::Expire, "expire-watch-after"),
    (FaultKind::Lag, "lag-from"),
    (FaultKind::Skip, "skip"),
    (FaultKind::StaleRestart, "stale-restart"),
    (FaultKind::StaleReconnect, "stale-reconnect"),
    (FaultKind::Restart, "restart-after"),
    (FaultKind::LoseLease, "lose-lease-after"),
    (FaultKind::HumanDelete, "human-delete"),
    (FaultKind::HumanEdit, "human-edit"),
    (FaultKind::Outage, "outage-during"),
    (FaultKind::ReadOnly, "read-only-during"),
    (FaultKind::Jitter, "jitter"),
];

impl FaultKind {
    /// Returns all kinds of faults.
    pub fn all() -> impl Iterator<Item = Self> {
        WORDS.into_iter().map(|(kind, _)| kind)
    }

    /// Returns the kinds of faults that campaigns have unless they say otherwise: all but outages, which last longer
    /// than most steps wait for what they expect.
    pub fn usual() -> impl Iterator<Item = Self> {
        Self::all().filter(|kind| !matches!(kind, Self::Outage | Self::ReadOnly))
    }

    /// The word for it in replay tokens.
    pub fn as_str(self) -> &'static str {
        let mut words = WORDS.into_iter();
        let found = words.find(|(kind, _)| *kind == self);
        found.map_or("", |(_, word)| word)
    }
}

impl Fault {
    /// Returns the kind of the fault.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::CrashBefore(_) => FaultKind::CrashBefore,
            Self::CrashAfter(_) => FaultKind::CrashAfter,
            Self::LoseAnswer(_) => FaultKind::LoseAnswer,
            Self::Refuse(..) => FaultKind::Refuse,
            Self::Silence(_) => FaultKind::Silence,
            Self::Partition(_) => FaultKind::Partition,
            Self::Cut(_) => FaultKind::Cut,
            Self::Expire(_) => FaultKind::Expire,
            Self::Lag(_) => FaultKind::Lag,
            Self::Skip(_) => FaultKind::Skip,
            Self::StaleRestart(..) => FaultKind::StaleRestart,
            Self::StaleReconnect(_) => FaultKind::StaleReconnect,
            Self::Restart(_) => FaultKind::Restart,
            Self::LoseLease(_) => FaultKind::LoseLease,
            Self::HumanDelete(..) => FaultKind::HumanDelete,
            Self::HumanEdit(..) => FaultKind::HumanEdit,
            Self::Outage(_) => FaultKind::Outage,
            Self::ReadOnly(_) => FaultKind::ReadOnly,
            Self::Jitter(_) => FaultKind::Jitter,
        }
    }

    /// The write at which it happens.
    pub fn write(&self) -> Option<&WriteId> {
        match self {
            Self::CrashBefore(write)
            | Self::CrashAfter(write)
            | Self::LoseAnswer(write)
            | Self::Refuse(_, write)
            | Self::Silence(write)
            | Self::Partition(write) => Some(write),
            _ => None,
        }
    }

    /// The step after which it happens.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::StaleRestart(step, _)
            | Self::Restart(step)
            | Self::LoseLease(step)
            | Self::HumanDelete(step, ..)
            | Self::HumanEdit(step, ..) => Some(step),
            _ => None,
        }
    }

    /// The step with which it begins.
    pub fn during(&self) -> Option<&str> {
        match self {
            Self::Outage(step) | Self::ReadOnly(step) => Some(step),
            _ => None,
        }
    }

    /// The event at which it happens.
    pub fn event(&self) -> Option<&EventId> {
        match self {
            Self::Cut(event)
            | Self::Expire(event)
            | Self::Lag(event)
            | Self::Skip(event)
            | Self::StaleReconnect(event) => Some(event),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.kind().as_str();
        match self {
            Self::CrashBefore(write)
            | Self::CrashAfter(write)
            | Self::LoseAnswer(write)
            | Self::Silence(write)
            | Self::Partition(write) => write!(f, "{word}:{write}"),
            Self::Refuse(code, write) => write!(f, "{word}:{code}:{write}"),
            Self::Cut(event)
            | Self::Expire(event)
            | Self::Lag(event)
            | Self::Skip(event)
            | Self::StaleReconnect(event) => write!(f, "{word}:{event}"),
            Self::StaleRestart(step, event) => write!(f, "{word}:{}:{event}", escape(step)),
            Self::Restart(step)
            | Self::LoseLease(step)
            | Self::Outage(step)
            | Self::ReadOnly(step) => write!(f, "{word}:{}", escape(step)),
            Self::HumanDelete(step, resource, key) | Self::HumanEdit(step, resource, key) => {
                write!(f, "{word}:{}:{resource}:{}", escape(step), escape(key))
            }
            Self::Jitter(seed) => write!(f, "{word}:{seed}"),
        }
    }
}

impl FromStr for Fault {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let bad = || TokenError::new(text, "a fault");
        let (word, rest) = text.split_once(':').ok_or_else(bad)?;
        let mut words = WORDS.into_iter();
        let (kind, _) = words.find(|(_, known)| *known == word).ok_or_else(bad)?;
        let two = || rest.split_once(':').ok_or_else(bad);
        let object = || {
            let (step, rest) = rest.split_once(':').ok_or_else(bad)?;
            let (resource, key) = rest.split_once(':').ok_or_else(bad)?;
            Ok((unescape(step), resource.to_owned(), unescape(key)))
        };
        Ok(match kind {
            FaultKind::CrashBefore => Self::CrashBefore(rest.parse()?),
            FaultKind::CrashAfter => Self::CrashAfter(rest.parse()?),
            FaultKind::LoseAnswer => Self::LoseAnswer(rest.parse()?),
            FaultKind::Silence => Self::Silence(rest.parse()?),
            FaultKind::Partition => Self::Partition(rest.parse()?),
            FaultKind::Refuse => {
                let (code, write) = two()?;
                Self::Refuse(code.parse().map_err(|_| bad())?, write.parse()?)
            }
            FaultKind::Cut => Self::Cut(rest.parse()?),
            FaultKind::Expire => Self::Expire(rest.parse()?),
            FaultKind::Lag => Self::Lag(rest.parse()?),
            FaultKind::Skip => Self::Skip(rest.parse()?),
            FaultKind::StaleRestart => {
                let (step, event) = two()?;
                Self::StaleRestart(unescape(step), event.parse()?)
            }
            FaultKind::StaleReconnect => Self::StaleReconnect(rest.parse()?),
            FaultKind::Restart => Self::Restart(unescape(rest)),
            FaultKind::LoseLease => Self::LoseLease(unescape(rest)),
            FaultKind::HumanDelete => {
                let (step, resource, key) = object()?;
                Self::HumanDelete(step, resource, key)
            }
            FaultKind::HumanEdit => {
                let (step, resource, key) = object()?;
                Self::HumanEdit(step, resource, key)
            }
            FaultKind::Outage => Self::Outage(unescape(rest)),
            FaultKind::ReadOnly => Self::ReadOnly(unescape(rest)),
            FaultKind::Jitter => Self::Jitter(rest.parse().map_err(|_| bad())?),
        })
    }
}

/// The faults of one run. None is the reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub struct Plan {
    /// The faults, each of which happens once.
    pub faults: Vec<Fault>,
}

impl Plan {
    /// A plan with one fault.
    pub fn single(fault: Fault) -> Self {
        Self {
            faults: vec![fault],
        }
    }

    /// Whether a fault of this kind is in it.
    pub fn has(&self, kinds: &[FaultKind]) -> bool {
        let mut faults = self.faults.iter();
        faults.any(|fault| kinds.contains(&fault.kind()))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.faults.is_empty() {
            return f.write_str("none");
        }
        let faults: Vec<String> = self.faults.iter().map(Fault::to_string).collect();
        f.write_str(&faults.join(";"))
    }
}

impl FromStr for Plan {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text == "none" {
            return Ok(Self::default());
        }
        let faults = text.split(';').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { faults })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_as_they_are_written() {
        let write: WriteId = "foo,create,pods,default/a,00ff#1".parse().expect("a write");
        let event: EventId = "pods,ADDED,default/a#2".parse().expect("an event");
        let object = ("a step".to_owned(), "pods".to_owned(), "n/a:b".to_owned());
        let faults = vec![
            Fault::CrashBefore(write.clone()),
            Fault::CrashAfter(write.clone()),
            Fault::LoseAnswer(write.clone()),
            Fault::Refuse(409, write.clone()),
            Fault::Silence(write.clone()),
            Fault::Partition(write),
            Fault::Cut(event.clone()),
            Fault::Expire(event.clone()),
            Fault::Lag(event.clone()),
            Fault::Skip(event.clone()),
            Fault::StaleReconnect(event.clone()),
            Fault::StaleRestart("create".to_owned(), event),
            Fault::Restart("create; then wait".to_owned()),
            Fault::LoseLease("create".to_owned()),
            Fault::HumanDelete(object.0.clone(), object.1.clone(), object.2.clone()),
            Fault::HumanEdit(object.0, object.1, object.2),
            Fault::Outage("create".to_owned()),
            Fault::ReadOnly("create".to_owned()),
            Fault::Jitter(7),
        ];
        assert_eq!(faults.len(), FaultKind::all().count());
        let plan = Plan { faults };
        assert_eq!(plan.to_string().parse(), Ok(plan));
        assert_eq!("none".parse(), Ok(Plan::default()));
        assert!("crash-some-time:x".parse::<Plan>().is_err());
    }
}
