//! One webhook, read from its configuration.

use std::time::Duration;

use serde_json::Value;

use crate::admission::PolicyError;
use crate::admission::expression::Conditions;
use crate::admission::matching::Criteria;
use crate::callout::{InvalidTarget, Target};
use crate::kinds::scope::NAMES;
use crate::kinds::value::{items, strings, text};
use crate::object;

/// The webhooks of one configuration, in its order.
#[derive(Debug)]
pub(super) struct Configuration {
    pub(super) hooks: Vec<Hook>,
}

/// A webhook.
#[derive(Debug)]
pub(super) struct Hook {
    /// Names it among all webhooks.
    pub(super) identity: String,
    pub(super) name: String,
    pub(super) criteria: Result<Criteria, PolicyError>,
    pub(super) conditions: Conditions,
    pub(super) target: Result<Target, InvalidTarget>,
    pub(super) on_failure: OnFailure,
    pub(super) timeout: Duration,
    /// Whether it may be called for a request that is not to be stored.
    pub(super) side_effects: SideEffects,
    /// The first version of reviews that it and this server speak.
    pub(super) review: Option<ReviewVersion>,
    pub(super) again: Again,
}

/// What a webhook that cannot be asked means for the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnFailure {
    Fail,
    Ignore,
}

/// Whether a webhook leaves traces when nothing is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideEffects {
    None,
    Some,
}

/// Versions of `AdmissionReview`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1beta1,
}

/// Whether a webhook wants to see what others changed after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    IfNeeded,
}

impl Configuration {
    pub(super) fn read(configuration: &Value) -> Self {
        let name = object::name(configuration);
        let hooks = items(&configuration["webhooks"]).iter();
        Self {
            hooks: hooks.map(|hook| Hook::read(name, hook)).collect(),
        }
    }
}

impl Hook {
    fn read(configuration: &str, hook: &Value) -> Self {
        let name = text(&hook["name"]);
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30);
        let mut versions = strings(&hook["admissionReviewVersions"]);
        Self {
            identity: format!("{configuration}/{name}"),
            name: name.to_owned(),
            criteria: Criteria::read(hook),
            conditions: Conditions::read(&hook["matchConditions"], &NAMES[..3]),
            target: Target::read(&hook["clientConfig"]),
            on_failure: match text(&hook["failurePolicy"]) {
                "Ignore" => OnFailure::Ignore,
                _ => OnFailure::Fail,
            },
            timeout: Duration::from_secs(seconds),
            side_effects: match text(&hook["sideEffects"]) {
                "None" | "NoneOnDryRun" => SideEffects::None,
                _ => SideEffects::Some,
            },
            review: versions.find_map(|version| match version {
                "v1" => Some(ReviewVersion::V1),
                "v1beta1" => Some(ReviewVersion::V1beta1),
                _ => None,
            }),
            again: match text(&hook["reinvocationPolicy"]) {
                "IfNeeded" => Again::IfNeeded,
                _ => Again::Never,
            },
        }
    }
}
