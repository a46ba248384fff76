//! How a container starts: its image, what it refers to, and then itself.
//!
//! Mirrors `kubeGenericRuntimeManager.startContainer`, `imageManager.EnsureImageExists` and the texts of both.

use std::time::Duration;

use kubewright_runtime::EventKind;

use super::super::kubelet::sources::pull_secrets;
use super::super::kubelet::{environment, sub_path};
use super::super::run::{Blocked, FIRST_PAUSE, LAST_PAUSE, Live, State};
use super::super::runtime::{Exit, ImagePull, Life, PullError};
use super::super::script::Pull;
use super::super::signal::What;
use super::super::step::Written;
use super::{PodMachine, place};

/// When a container that lacks something is tried again: `backOffPeriod` of a kubelet.
const SYNC_BACK_OFF: Duration = Duration::from_secs(10);
/// How long a failed pull is shown before the back-off is: a kubelet looks at a pod again when its status has changed.
const PULL_SHOWN: Duration = Duration::from_secs(1);

impl PodMachine<'_> {
    /// The turn of a container has come.
    pub(super) fn prepare(&mut self, index: usize) {
        if self.shows_pull_failure(index) {
            return self.back_off_pull(index);
        }
        if let Err(blocked) = self.name_of_image(index) {
            return self.block(index, blocked, SYNC_BACK_OFF);
        }
        let (credentials, missing) = pull_secrets(self.pod, self.around.sources);
        if !missing.is_empty() && self.run.containers[index].pull_pause.is_none() {
            let text = format!(
                "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                missing.join(", ")
            );
            self.note(
                EventKind::Warning,
                "FailedToRetrieveImagePullSecret",
                text,
                None,
            );
        }
        let spec = &self.specs[index];
        let pull = ImagePull {
            image: self.image(index),
            policy: spec
                .image_pull_policy
                .clone()
                .unwrap_or_else(|| "IfNotPresent".to_owned()),
            credentials,
        };
        if self.life(index) == Life::Scripted
            && let Err(error) = self.pull(index, &pull)
        {
            return self.pull_failed_or_never(index, &pull, error);
        }
        if let Err(blocked) = self.configuration(index) {
            return self.block(index, blocked, SYNC_BACK_OFF);
        }
        let again = self.run.containers[index].last.is_some();
        let delay = if again {
            Duration::ZERO
        } else {
            self.scripts[index].start_delay
        };
        let container = &mut self.run.containers[index];
        container.state = match self.scripts[index].life {
            Life::Scripted => State::Creating {
                until: self.now + delay,
            },
            Life::Live => State::Starting,
        };
        if self.life(index) == Life::Live {
            self.run.containers[index].live = Live::Started;
            self.order(index, What::Start);
        }
    }

    /// Whether the image of a container has a name that can be read. Mirrors `applyDefaultImageTag`.
    fn name_of_image(&self, index: usize) -> Result<(), Blocked> {
        let image = self.image(index);
        let repository = image.split(['@', ':']).next().unwrap_or("");
        let broken = repository
            .chars()
            .any(|c| c.is_uppercase() || c.is_whitespace());
        if !broken {
            return Ok(());
        }
        Err(Blocked {
            reason: "InvalidImageName",
            message: format!(
                "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: invalid reference format: \
                 repository name must be lowercase"
            ),
        })
    }

    fn pull(&self, index: usize, pull: &ImagePull) -> Result<(), PullError> {
        if self.scripts[index].pull == Pull::Fails {
            return Err(PullError::missing(&pull.image));
        }
        self.around.engine.check_image(pull)
    }

    fn pull_failed_or_never(&mut self, index: usize, pull: &ImagePull, error: PullError) {
        if pull.policy != "Never" {
            return self.pull_failed(index, error.0);
        }
        let message = format!(
            "Container image {:?} is not present with pull policy of Never",
            pull.image
        );
        let blocked = Blocked {
            reason: "ErrImageNeverPull",
            message: message.clone(),
        };
        if self.is_news(index, &blocked) {
            self.container_note(index, EventKind::Warning, "ErrImageNeverPull", message);
        }
        self.block(index, blocked, SYNC_BACK_OFF);
    }

    /// An image could not be pulled: `ErrImagePull`, and after a moment `ImagePullBackOff` until it is tried again.
    pub(super) fn pull_failed(&mut self, index: usize, why: String) {
        let image = self.image(index);
        self.container_note(
            index,
            EventKind::Normal,
            "Pulling",
            format!("Pulling image {image:?}"),
        );
        let text = format!("Failed to pull image {image:?}: {why}");
        self.container_note(index, EventKind::Warning, "Failed", text);
        let text = "Error: ErrImagePull".to_owned();
        self.container_note(index, EventKind::Warning, "Failed", text);
        let container = &mut self.run.containers[index];
        let pause = container
            .pull_pause
            .map_or(FIRST_PAUSE, |pause| (pause * 2).min(LAST_PAUSE));
        container.pull_pause = Some(pause);
        container.live = Live::Unknown;
        let blocked = Blocked {
            reason: "ErrImagePull",
            message: why,
        };
        self.run.containers[index].state = State::Blocked {
            why: blocked,
            until: self.now + PULL_SHOWN,
        };
    }

    fn shows_pull_failure(&self, index: usize) -> bool {
        let state = &self.run.containers[index].state;
        matches!(state, State::Blocked { why, .. } if why.reason == "ErrImagePull")
    }

    fn back_off_pull(&mut self, index: usize) {
        let image = self.image(index);
        let State::Blocked { why, .. } = &self.run.containers[index].state else {
            return;
        };
        let text = format!("Back-off pulling image {image:?}");
        let blocked = Blocked {
            reason: "ImagePullBackOff",
            message: format!("{text}: ErrImagePull: {}", why.message),
        };
        self.container_note(index, EventKind::Normal, "BackOff", text);
        let error = "Error: ImagePullBackOff".to_owned();
        self.container_note(index, EventKind::Warning, "Failed", error);
        let pause = self.run.containers[index].pull_pause.unwrap_or(FIRST_PAUSE);
        self.run.containers[index].state = State::Blocked {
            why: blocked,
            until: self.now + pause.saturating_sub(PULL_SHOWN),
        };
    }

    /// Whether all that a container refers to is there. Mirrors `generateContainerConfig`.
    fn configuration(&self, index: usize) -> Result<(), Blocked> {
        let spec = &self.specs[index];
        if !environment::has_references(spec) && !sub_path::is_expanded(spec) {
            return Ok(());
        }
        let place = place(self.pod, self.run, self.around);
        let made = environment::environment(self.pod, spec, &place, self.around.sources);
        let made = made.and_then(|env| sub_path::check(spec, &env));
        made.map_err(|error| Blocked {
            reason: "CreateContainerConfigError",
            message: error.0,
        })
    }

    fn is_news(&self, index: usize, blocked: &Blocked) -> bool {
        let state = &self.run.containers[index].state;
        !matches!(state, State::Blocked { why, .. } if why == blocked)
    }

    fn block(&mut self, index: usize, blocked: Blocked, pause: Duration) {
        let text = match blocked.reason {
            "CreateContainerConfigError" => format!("Error: {}", blocked.message),
            reason => format!("Error: {reason}"),
        };
        self.container_note(index, EventKind::Warning, "Failed", text);
        self.run.containers[index].state = State::Blocked {
            why: blocked,
            until: self.now + pause,
        };
    }

    /// The runtime could not start a container: a run that failed at once.
    pub(super) fn start_failed(&mut self, index: usize, why: String) {
        let text = format!("Error: {why}");
        self.container_note(index, EventKind::Warning, "Failed", text);
        self.run.containers[index].begin_run(self.now);
        let exit = Exit {
            code: 128,
            reason: Some("StartError".to_owned()),
            message: Some(why),
        };
        self.exited(index, &exit);
    }

    /// A container runs from now on.
    pub(super) fn start(&mut self, index: usize) {
        let policy = self.specs[index].image_pull_policy.as_deref();
        let pulls = policy == Some("Always") || self.run.containers[index].pull_pause.is_some();
        self.run.containers[index].begin_run(self.now);
        let image = self.image(index);
        let pulled = if pulls {
            let text = format!("Pulling image {image:?}");
            self.container_note(index, EventKind::Normal, "Pulling", text);
            format!(
                "Successfully pulled image {image:?} in 0s (0s including waiting). Image size: 0 bytes."
            )
        } else {
            format!("Container image {image:?} already present on machine")
        };
        for (reason, text) in [
            ("Pulled", pulled),
            ("Created", "Container created".to_owned()),
            ("Started", "Container started".to_owned()),
        ] {
            self.container_note(index, EventKind::Normal, reason, text);
        }
        if self.life(index) == Life::Live {
            // Its log began when the runtime was asked to start it, and has something already.
            return;
        }
        self.begin_hook(index);
        self.write(index, Written::Begin);
        if !self.scripts[index].spoken {
            let first = self.first_line(index);
            self.write(index, Written::Line(first));
        }
    }

    /// What a scripted container writes when it has started.
    pub(super) fn first_line(&self, index: usize) -> String {
        let container = &self.run.containers[index];
        let (name, restarts, image) = (&container.name, container.restarts, self.image(index));
        format!("container {name} started, image {image}, restarts {restarts}")
    }

    /// Writes the next line of the log.
    pub(super) fn print(&mut self, index: usize) {
        let printed = self.run.containers[index].printed;
        let line = self.scripts[index]
            .log
            .get(printed)
            .map(|(_, line)| line.clone());
        self.run.containers[index].printed = printed.saturating_add(1);
        if let Some(line) = line {
            self.write(index, Written::Line(line));
        }
    }
}
