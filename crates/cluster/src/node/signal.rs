//! What happens to a pod from outside of its machine, and what its machine asks of the runtime.

use std::time::Duration;

use super::kubelet::resize::Verdict;
use super::runtime::{Exit, Health, ProbeKind};

/// Something that happened to a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Signal {
    /// The node does not take it.
    Rejected { reason: String, message: String },
    /// The node needs what it uses.
    Evicted { message: String },
    /// The node has looked whether the pod can have what it wants.
    Resized(Verdict),
    /// The node shuts down: everything has to end within this time.
    ShutDown { grace: Duration },
    /// The machine of the node was started again: nothing runs any more.
    Rebooted,
    /// A container, or the first one that runs, ends now.
    Crash {
        container: Option<String>,
        exit: Exit,
    },
    /// A container, or the first one that runs, does nothing any more.
    Hang { container: Option<String> },
    /// The runtime reports about a run of a container.
    Reported {
        container: String,
        run: u32,
        report: Report,
    },
}

/// What a runtime reports about a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Report {
    /// A volume of the pod cannot be mounted.
    MountFailed(String),
    PullFailed(String),
    StartFailed(String),
    Started,
    Exited(Exit),
    Probed(ProbeKind, Health),
}

/// What a runtime is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) container: String,
    pub(crate) run: u32,
    pub(crate) what: What,
}

/// What is asked of a run of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Start,
    Stop { grace: Duration },
    Probe(ProbeKind),
}
