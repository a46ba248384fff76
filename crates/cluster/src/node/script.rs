//! How the containers of a pod behave: what its annotations say, and defaults for the rest.
//!
//! `sim.kubewright.dev/SETTING` speaks of all containers of a pod but its init containers,
//! `sim.kubewright.dev/CONTAINER.SETTING` of one. Annotations are read at every step, so that changing one changes a pod
//! that runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod, Probe};
use kubewright_schema::quantity::Quantity;

use super::behaviour::{Behaviour, Probes};
use super::kubelet::hooks::{self, Hook};
use super::kubelet::plain_probes::{Trouble, hopeless};
use super::kubelet::prober::KINDS;
use super::runtime::{Life, Plan, ProbeKind, Stops};

/// What annotations of the simulation begin with.
pub(crate) const PREFIX: &str = "sim.kubewright.dev/";
/// What a container is declared to use, for autoscalers.
const MEASURED: [&str; 2] = ["cpu", "memory"];
/// Longest delay that is taken.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Most lines of a log that an annotation gives.
const MOST_LINES: usize = 1_000;

/// The part that a container plays in its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs once before the others.
    Init,
    /// An init container that stays.
    Sidecar,
    /// What the pod is for.
    Main,
    /// Added to a pod that runs, to look into it.
    Ephemeral,
}

/// When containers of a pod are started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    Always,
    OnFailure,
    Never,
}

/// How one container behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) start_delay: Duration,
    pub(crate) pull: Pull,
    /// From start to ready; never, where there is nothing.
    pub(crate) ready: Option<Duration>,
    /// How a run ends by itself, if it does.
    exit: Option<Exit>,
    /// How the first runs end, and how many of them.
    failing: Option<(u32, Exit)>,
    /// From SIGTERM to the end; nothing when it has to be killed.
    pub(crate) stop_delay: Option<Duration>,
    /// What the container writes to its termination log.
    pub(crate) message: Option<String>,
    /// What it writes, and when after its start.
    pub(crate) log: Vec<(Duration, String)>,
    /// Whether the command says what it writes, so that the log has nothing else.
    pub(crate) spoken: bool,
    /// The probes that fail because somebody says so.
    pub(crate) unhealthy: Vec<ProbeKind>,
    /// The probes that cannot succeed, and of which nobody says anything.
    pub(crate) hopeless: Vec<(ProbeKind, Trouble)>,
    /// What its hooks do, as far as that is plain.
    pub(crate) post_start: Option<Hook>,
    pub(crate) pre_stop: Option<Hook>,
    /// How much memory it is declared to use, in bytes.
    pub(crate) memory: Option<i64>,
    pub(crate) life: Life,
}

/// Whether an image can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pull {
    Works,
    Fails,
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) after: Duration,
    pub(crate) code: i32,
    pub(crate) reason: Option<String>,
}

impl Script {
    /// Whether a probe does not succeed.
    pub(crate) fn is_unwell(&self, kind: ProbeKind) -> bool {
        self.unhealthy.contains(&kind) || self.trouble(kind).is_some()
    }

    /// Why a probe cannot succeed, if it cannot.
    pub(crate) fn trouble(&self, kind: ProbeKind) -> Option<&Trouble> {
        let mut all = self.hopeless.iter();
        all.find(|(other, _)| *other == kind)
            .map(|(_, trouble)| trouble)
    }

    /// How the run ends that follows this many restarts; nothing if it goes on until it is stopped.
    pub(crate) fn exit(&self, restarts: u32) -> Option<&Exit> {
        match &self.failing {
            Some((times, exit)) if restarts < *times => Some(exit),
            _ => self.exit.as_ref(),
        }
    }
}

impl Restart {
    /// Reads the policy of a pod.
    pub(crate) fn of(pod: &Pod) -> Self {
        let policy = pod.spec.as_ref().and_then(|s| s.restart_policy.as_deref());
        match policy {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// A container with what is known of it besides its spec.
pub(crate) struct Known<'a> {
    pub(crate) role: Role,
    pub(crate) container: &'a Container,
    /// What its command says, if that is plain.
    pub(crate) plan: Option<Plan>,
    pub(crate) life: Life,
}

/// The scripts of the containers of a pod, and what is wrong with its annotations.
pub(crate) fn scripts(
    pod: &Pod,
    known: Vec<Known<'_>>,
    behaviour: &Behaviour,
) -> (Vec<Script>, Vec<String>) {
    let mut settings = Settings::of(pod);
    let restart = Restart::of(pod);
    let scripts = known
        .into_iter()
        .map(|known| settings.script(known, restart, behaviour))
        .collect();
    (scripts, settings.problems)
}

/// The containers of a pod with their roles: init containers, the main ones, ephemeral ones.
pub(crate) fn containers(pod: &Pod) -> impl Iterator<Item = (Role, Cow<'_, Container>)> {
    let spec = pod.spec.as_ref();
    let init = spec
        .into_iter()
        .flat_map(|s| s.init_containers.iter().flatten());
    let init = init.map(|container| match container.restart_policy.as_deref() {
        Some("Always") => (Role::Sidecar, Cow::Borrowed(container)),
        _ => (Role::Init, Cow::Borrowed(container)),
    });
    let main = spec.into_iter().flat_map(|s| &s.containers);
    let ephemeral = spec
        .into_iter()
        .flat_map(|s| s.ephemeral_containers.iter().flatten());
    init.chain(main.map(|container| (Role::Main, Cow::Borrowed(container))))
        .chain(ephemeral.map(|container| (Role::Ephemeral, Cow::Owned(plain(container)))))
}

/// An ephemeral container as any other: what it has in common with them.
fn plain(container: &EphemeralContainer) -> Container {
    let container = container.clone();
    Container {
        name: container.name,
        image: container.image,
        image_pull_policy: container.image_pull_policy,
        command: container.command,
        args: container.args,
        env: container.env,
        env_from: container.env_from,
        stdin: container.stdin,
        stdin_once: container.stdin_once,
        tty: container.tty,
        volume_mounts: container.volume_mounts,
        working_dir: container.working_dir,
        resources: container.resources,
        ..Container::default()
    }
}

/// The annotations of one pod that speak to the simulation.
struct Settings<'a> {
    /// By what follows the prefix.
    given: BTreeMap<&'a str, &'a str>,
    problems: Vec<String>,
}

impl<'a> Settings<'a> {
    fn of(pod: &'a Pod) -> Self {
        let annotations = pod.metadata.annotations.iter().flatten();
        let given = annotations
            .filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str())));
        Self {
            given: given.collect(),
            problems: Vec::new(),
        }
    }

    fn script(&mut self, known: Known<'_>, restart: Restart, behaviour: &Behaviour) -> Script {
        let Known {
            role,
            container,
            plan,
            life,
        } = known;
        let of = |setting: &str| self.get(role, &container.name, setting);
        let probes = match of("probes") {
            Some("honour") => Probes::Honoured,
            Some("ignore") => Probes::Ignored,
            _ => behaviour.probes,
        };
        let never_ready = of("never-ready").is_some_and(is_yes);
        let pull = match of("pull") {
            Some("fail") => Pull::Fails,
            _ => Pull::Works,
        };
        for setting in MEASURED {
            let given = self.get(role, &container.name, setting);
            if let Some(text) = given.filter(|text| !is_amount(text)) {
                self.complain(setting, text, "a quantity such as 200m or 1Gi");
            }
        }
        let of = |setting: &str| self.get(role, &container.name, setting);
        let memory = of("memory").and_then(|text| Quantity::parse(text).ok()?.value());
        let message = of("termination-message").map(str::to_owned);
        let annotated = |kind: ProbeKind| of(&kind.name().to_lowercase());
        let fails = |kind: &ProbeKind| annotated(*kind) == Some("fail");
        let unhealthy = KINDS.into_iter().filter(fails).collect();
        let mut hopeless = match life {
            Life::Scripted => hopeless(container),
            Life::Live => Vec::new(),
        };
        hopeless.retain(|(kind, _)| annotated(*kind).is_none());
        let mut log = of("log").map(lines).unwrap_or_default();
        let spoken = plan.as_ref().is_some_and(|plan| !plan.output.is_empty());
        log.extend(plan.iter().flat_map(|plan| plan.output.iter().cloned()));
        let mut delay = |setting: &str, default: Duration| {
            let given = self.get(role, &container.name, setting)?;
            Some(self.duration(setting, given).unwrap_or(default))
        };
        let start_delay = delay("start-delay", behaviour.start_delay);
        let ready_delay = delay("ready-delay", behaviour.ready_delay);
        let stop_delay = delay("stop-delay", behaviour.stop_delay);
        let ready = ready_delay.unwrap_or(behaviour.ready_delay) + probe_delay(container, probes);
        Script {
            // Init containers have no delays unless they are spoken of by name.
            start_delay: start_delay.unwrap_or(match role {
                Role::Init | Role::Ephemeral => Duration::ZERO,
                Role::Sidecar | Role::Main => behaviour.start_delay,
            }),
            pull,
            ready: (!never_ready).then_some(ready),
            exit: self.exit((role, &container.name), restart, behaviour, plan.as_ref()),
            failing: self.failing(role, &container.name),
            stop_delay: match (stop_delay, plan.as_ref().map(|plan| plan.stops)) {
                (Some(delay), _) => Some(delay),
                (None, Some(Stops::WhenKilled)) => None,
                (None, _) => Some(behaviour.stop_delay),
            },
            message,
            log,
            spoken,
            unhealthy,
            hopeless,
            post_start: hooks::post_start(container).filter(|_| life == Life::Scripted),
            pre_stop: hooks::pre_stop(container).filter(|_| life == Life::Scripted),
            memory,
            life,
        }
    }

    /// How runs end when they do not fail.
    fn exit(
        &mut self,
        (role, container): (Role, &str),
        restart: Restart,
        behaviour: &Behaviour,
        plan: Option<&Plan>,
    ) -> Option<Exit> {
        let after = self.get(role, container, "exit-after");
        let code = self.code(role, container);
        if let (None, None, Some(plan)) = (after, code, plan) {
            let (after, code) = plan.exit?;
            let reason = self.reason(role, container);
            return Some(Exit {
                after,
                code,
                reason,
            });
        }
        let finishes = match role {
            Role::Init => true,
            Role::Sidecar | Role::Ephemeral => false,
            Role::Main => restart != Restart::Always,
        };
        let default = match role {
            Role::Init => Duration::ZERO,
            Role::Sidecar | Role::Main | Role::Ephemeral => behaviour.run_time,
        };
        let after = match after {
            Some("never") => return None,
            Some(text) => self.duration("exit-after", text).unwrap_or(default),
            None if finishes || code.is_some() => default,
            None => return None,
        };
        Some(Exit {
            after,
            code: code.unwrap_or(0),
            reason: self.reason(role, container),
        })
    }

    /// How the first runs end, if they are to fail.
    fn failing(&mut self, role: Role, container: &str) -> Option<(u32, Exit)> {
        let looping = self.get(role, container, "crash-loop").is_some_and(is_yes);
        let times = match self.get(role, container, "fail") {
            _ if looping => u32::MAX,
            None => return None,
            Some("once") => 1,
            Some("always") => u32::MAX,
            Some(text) => match text.parse() {
                Ok(times) => times,
                Err(_) => {
                    self.complain("fail", text, "once, always or a number");
                    return None;
                }
            },
        };
        let after = self.get(role, container, "exit-after");
        let after = after.and_then(|text| self.duration("exit-after", text));
        let code = self.code(role, container).filter(|code| *code != 0);
        let exit = Exit {
            after: after.unwrap_or(Duration::ZERO),
            code: code.unwrap_or(1),
            reason: self.reason(role, container),
        };
        Some((times, exit))
    }

    fn reason(&self, role: Role, container: &str) -> Option<String> {
        let reason = self.get(role, container, "exit-reason");
        reason.map(str::to_owned)
    }

    fn code(&mut self, role: Role, container: &str) -> Option<i32> {
        let text = self.get(role, container, "exit-code")?;
        match text.trim().parse::<u8>() {
            Ok(code) => Some(i32::from(code)),
            Err(_) => {
                self.complain("exit-code", text, "a number from 0 to 255");
                None
            }
        }
    }

    fn get(&self, role: Role, container: &str, setting: &str) -> Option<&'a str> {
        let own = format!("{container}.{setting}");
        let own = self.given.get(own.as_str()).copied();
        own.or_else(|| match role {
            Role::Init | Role::Ephemeral => None,
            Role::Sidecar | Role::Main => self.given.get(setting).copied(),
        })
    }

    fn duration(&mut self, setting: &str, text: &str) -> Option<Duration> {
        let parsed = parse_duration(text);
        if parsed.is_none() {
            self.complain(setting, text, "a duration such as 500ms, 5s or 1m30s");
        }
        parsed
    }

    fn complain(&mut self, setting: &str, text: &str, wanted: &str) {
        let problem = format!("annotation {PREFIX}{setting}: {text:?} is not {wanted}");
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Reads `1h2m3s4ms`, each part at most once and in any order.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "" if number == "0" => 0.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * scale).ok()?;
        total = total.checked_add(part)?;
        rest = next;
    }
    Some(total.min(LONGEST))
}

fn is_amount(text: &str) -> bool {
    Quantity::parse(text).is_ok_and(|amount| !amount.is_negative())
}

fn is_yes(text: &str) -> bool {
    !matches!(text, "" | "false" | "no" | "0")
}

fn lines(text: &str) -> Vec<(Duration, String)> {
    let lines = text.lines().take(MOST_LINES);
    lines
        .map(|line| (Duration::ZERO, line.to_owned()))
        .collect()
}

/// What the probes of a container add before it is ready.
fn probe_delay(container: &Container, probes: Probes) -> Duration {
    let one = |probe: &Option<Probe>| {
        let Some(probe) = probe else {
            return Duration::ZERO;
        };
        let seconds = |value: Option<i32>| u64::try_from(value.unwrap_or(0)).unwrap_or(0);
        let more = seconds(probe.success_threshold).saturating_sub(1);
        let period = seconds(probe.period_seconds);
        let total =
            seconds(probe.initial_delay_seconds).saturating_add(more.saturating_mul(period));
        Duration::from_secs(total).min(LONGEST)
    };
    match probes {
        Probes::Ignored => Duration::ZERO,
        Probes::Honoured => one(&container.startup_probe) + one(&container.readiness_probe),
    }
}
