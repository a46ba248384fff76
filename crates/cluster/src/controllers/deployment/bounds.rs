//! How many pods a Deployment may have at most, and how many must serve at least.

use k8s_openapi::api::apps::v1::{Deployment, RollingUpdateDeployment};

use crate::portion::{self, Round};

/// The limits of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How many pods the user wants.
    pub(crate) replicas: i32,
    /// How many more there may be during a rollout.
    pub(crate) surge: i32,
    /// How many of them may be missing.
    pub(crate) unavailable: i32,
}

/// How old pods give way to new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// A few at a time.
    Rolling,
    /// All old ones go before the first new one comes.
    Recreate,
}

/// How many pods the user wants.
pub(crate) fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.replicas.unwrap_or(1).max(0)
}

/// How the user wants pods to be replaced.
pub(crate) fn strategy(deployment: &Deployment) -> Strategy {
    let strategy = deployment.spec.strategy.as_ref();
    match strategy.and_then(|strategy| strategy.type_.as_deref()) {
        Some("Recreate") => Strategy::Recreate,
        _ => Strategy::Rolling,
    }
}

impl Bounds {
    /// The limits that a Deployment sets. Surge rounds up and unavailability down; where both are zero one pod
    /// may be missing, or no rollout would ever start.
    pub(crate) fn of(deployment: &Deployment) -> Self {
        let replicas = replicas(deployment);
        if strategy(deployment) == Strategy::Recreate {
            return Self::fixed(replicas);
        }
        let rolling = deployment.spec.strategy.as_ref();
        let rolling = rolling.and_then(|strategy| strategy.rolling_update.as_ref());
        let (surge, unavailable) = fence_posts(rolling, replicas);
        Self {
            replicas,
            surge,
            unavailable: unavailable.min(replicas),
        }
    }

    fn fixed(replicas: i32) -> Self {
        Self {
            replicas,
            surge: 0,
            unavailable: 0,
        }
    }

    /// The most pods that there may be.
    pub(crate) fn most(&self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }

    /// The fewest pods that must be available.
    pub(crate) fn least_available(&self) -> i32 {
        self.replicas - self.unavailable
    }
}

fn fence_posts(rolling: Option<&RollingUpdateDeployment>, replicas: i32) -> (i32, i32) {
    let limit_of =
        |limit: Option<_>, round| limit.and_then(|limit| portion::of(limit, replicas, round));
    let surge = limit_of(
        rolling.and_then(|rolling| rolling.max_surge.as_ref()),
        Round::Up,
    );
    let unavailable = limit_of(
        rolling.and_then(|rolling| rolling.max_unavailable.as_ref()),
        Round::Down,
    );
    match (surge.unwrap_or(0).max(0), unavailable.unwrap_or(0).max(0)) {
        (0, 0) => (0, 1),
        limits => limits,
    }
}
