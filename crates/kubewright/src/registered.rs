//! What attributes registered at link time: kinds, controllers, permissions, webhooks, conversions.
//!
//! Everything that is linked into a program is registered, in whatever module it is. A library whose items nothing else
//! refers to is not linked: refer to it, if only with `use my_library as _;`.

mod controllers;
mod permissions;

use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kubewright_manifests::definition::MergeError;
use kubewright_manifests::webhook::service as webhook_service;
use kubewright_manifests::{Converted, FORMAT, Inventory, Rule, Webhook, WebhookKind, definition};
use kubewright_runtime::States;
use kubewright_runtime::webhook::Webhooks;

pub use controllers::{ControllerEntry, RegisteredController, controllers};

/// A kind. Made by `#[kubewright::api]`.
#[derive(Debug)]
#[doc(hidden)]
pub struct KindEntry {
    pub definition: fn() -> CustomResourceDefinition,
    pub conversion: Conversion,
}

/// How objects become those of another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
#[non_exhaustive]
pub enum Conversion {
    None,
    Webhook,
}

/// A permission. Made by `#[kubewright::rbac]`.
#[derive(Debug)]
#[doc(hidden)]
pub struct RuleEntry {
    pub groups: &'static [&'static str],
    pub resources: &'static [&'static str],
    pub resource_names: &'static [&'static str],
    pub urls: &'static [&'static str],
    pub verbs: &'static [&'static str],
    pub namespace: Option<&'static str>,
    pub role: Option<&'static str>,
}

/// A webhook. Made by `#[kubewright::webhook]`.
#[derive(Debug)]
#[doc(hidden)]
pub struct WebhookEntry {
    pub kind: WebhookKind,
    pub name: Option<&'static str>,
    pub path: Option<&'static str>,
    pub url: Option<&'static str>,
    pub groups: &'static [&'static str],
    pub versions: &'static [&'static str],
    pub resources: &'static [&'static str],
    pub verbs: &'static [&'static str],
    pub failure_policy: Option<&'static str>,
    pub match_policy: Option<&'static str>,
    pub side_effects: Option<&'static str>,
    pub timeout_seconds: Option<i32>,
    pub reinvocation_policy: Option<&'static str>,
    pub admission_review_versions: &'static [&'static str],
    pub service_name: Option<&'static str>,
    pub service_namespace: Option<&'static str>,
    pub service_port: Option<i32>,
    pub namespace_selector: Option<Requirements>,
    pub object_selector: Option<Requirements>,
    /// The name and the expression of each condition.
    pub match_conditions: &'static [(&'static str, &'static str)],
    pub serve: Option<fn(Webhooks, &str) -> Webhooks>,
    /// The names of the kind that it is about, where its function says so.
    pub object: Option<fn() -> ObjectNames>,
}

/// The names of a kind, as far as a webhook needs them.
#[derive(Debug)]
#[doc(hidden)]
pub struct ObjectNames {
    group: String,
    version: String,
    kind: String,
    plural: String,
}

impl ObjectNames {
    pub fn of<K: kube::Resource<DynamicType = ()>>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).to_lowercase(),
            plural: K::plural(&()).into_owned(),
        }
    }
}

/// A conversion. Made by `#[kubewright::conversion]`.
#[derive(Debug)]
#[doc(hidden)]
pub struct ConversionEntry(fn(Webhooks) -> Webhooks);

impl ConversionEntry {
    pub const fn new(serve: fn(Webhooks) -> Webhooks) -> Self {
        Self(serve)
    }
}

/// A label selector: keys, operators, values. `=` is an operator here.
type Requirements = &'static [(&'static str, &'static str, &'static [&'static str])];

inventory::collect!(KindEntry);
inventory::collect!(RuleEntry);
inventory::collect!(WebhookEntry);
inventory::collect!(ConversionEntry);

/// Every registered function that answers API servers.
///
/// # Panics
/// When two answer at one path.
pub fn webhooks() -> Webhooks {
    let mut paths: Vec<String> = served().map(|(path, _)| path).collect();
    paths.sort_unstable();
    if let Some(pair) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
        panic!("two webhooks answer at {}", pair[0]);
    }
    let hooks = served().fold(Webhooks::new(), |hooks, (path, serve)| serve(hooks, &path));
    let conversions = inventory::iter::<ConversionEntry>.into_iter();
    conversions.fold(hooks, |hooks, entry| (entry.0)(hooks))
}

fn served() -> impl Iterator<Item = (String, fn(Webhooks, &str) -> Webhooks)> {
    let entries = inventory::iter::<WebhookEntry>.into_iter();
    entries.filter_map(|entry| Some((path(entry), entry.serve?)))
}

/// Where a webhook answers: as it says, else as kubebuilder has it.
fn path(entry: &WebhookEntry) -> String {
    if let Some(path) = entry.path {
        return path.to_owned();
    }
    let Some(names) = entry.object.filter(|_| entry.url.is_none()) else {
        return String::new();
    };
    let ObjectNames {
        group,
        version,
        kind,
        ..
    } = names();
    let what = match entry.kind {
        WebhookKind::Mutating => "mutate",
        WebhookKind::Validating => "validate",
    };
    format!("/{what}-{}-{version}-{kind}", group.replace('.', "-"))
}

/// The name of a webhook: what it says, else as kubebuilder has it.
fn name(entry: &WebhookEntry) -> String {
    let letter = match entry.kind {
        WebhookKind::Mutating => "m",
        WebhookKind::Validating => "v",
    };
    let made = || {
        let names = entry.object.map(|names| names());
        names.map(|it| format!("{letter}{}-{}.kb.io", it.kind, it.version))
    };
    let given = entry.name.map(str::to_owned);
    given.or_else(made).unwrap_or_default()
}

/// All that is registered, as manifests are made from it.
///
/// # Panics
/// When versions of a kind contradict each other. [`try_inventory`] says so instead.
pub fn inventory() -> Inventory {
    match try_inventory() {
        Ok(inventory) => inventory,
        Err(error) => panic!("{error}"),
    }
}

/// All that is registered, if it makes sense together.
///
/// # Errors
/// When versions of a kind contradict each other.
pub fn try_inventory() -> Result<Inventory, MergeError> {
    let controllers = controllers(&States::default());
    let definitions = definitions()?;
    let declared = inventory::iter::<RuleEntry>.into_iter().map(rule);
    let mut rules: Vec<Rule> = declared.collect();
    rules.extend(permissions::inferred(&controllers, &definitions));
    rules.sort();
    rules.dedup();
    let hooks = inventory::iter::<WebhookEntry>.into_iter();
    let mut webhooks: Vec<Webhook> = hooks.map(webhook).collect();
    // The linker decides the order otherwise.
    webhooks.sort_by_cached_key(|hook| (hook.kind, hook.name.clone(), format!("{hook:?}")));
    let names = controllers
        .iter()
        .map(|controller| controller.name().to_owned());
    Ok(Inventory {
        format: FORMAT,
        conversions: conversions(),
        definitions,
        rules,
        webhooks,
        controllers: names.collect(),
    })
}

/// The kinds that registered functions convert.
fn conversions() -> Vec<Converted> {
    let entries = inventory::iter::<ConversionEntry>.into_iter();
    let hooks = entries.fold(Webhooks::new(), |hooks, entry| (entry.0)(hooks));
    let converted = hooks.converted().map(|(group, kind, versions)| {
        let mut versions = texts(&versions);
        versions.sort();
        Converted {
            group: group.to_owned(),
            kind: kind.to_owned(),
            versions,
        }
    });
    let mut converted: Vec<Converted> = converted.collect();
    converted.sort();
    converted
}

/// The definitions of all registered kinds, each with all its versions.
fn definitions() -> Result<Vec<CustomResourceDefinition>, MergeError> {
    let kinds = inventory::iter::<KindEntry>.into_iter();
    let definitions = kinds.map(|entry| {
        let mut definition = (entry.definition)();
        if entry.conversion == Conversion::Webhook {
            definition.spec.conversion = Some(definition::converted_by(&webhook_service()));
        }
        definition
    });
    definition::merge(definitions.collect())
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn rule(entry: &RuleEntry) -> Rule {
    Rule {
        groups: texts(entry.groups),
        resources: texts(entry.resources),
        resource_names: texts(entry.resource_names),
        urls: texts(entry.urls),
        verbs: texts(entry.verbs),
        namespace: entry.namespace.map(str::to_owned),
        role: entry.role.map(str::to_owned),
    }
}

fn webhook(entry: &WebhookEntry) -> Webhook {
    let text = |value: Option<&str>| value.map(str::to_owned);
    let given = |list: &[&str], of: fn(ObjectNames) -> String| match (list, entry.object) {
        ([], Some(names)) => vec![of(names())],
        (list, _) => texts(list),
    };
    Webhook {
        kind: entry.kind,
        name: name(entry),
        path: path(entry),
        groups: given(entry.groups, |names| names.group),
        versions: given(entry.versions, |names| names.version),
        resources: given(entry.resources, |names| names.plural),
        verbs: match (entry.verbs, entry.object) {
            ([], Some(_)) => texts(&["create", "update"]),
            (verbs, _) => texts(verbs),
        },
        failure_policy: text(entry.failure_policy),
        match_policy: text(entry.match_policy),
        side_effects: text(entry.side_effects),
        timeout_seconds: entry.timeout_seconds,
        reinvocation_policy: text(entry.reinvocation_policy),
        admission_review_versions: texts(entry.admission_review_versions),
        url: text(entry.url),
        service_name: text(entry.service_name),
        service_namespace: text(entry.service_namespace),
        service_port: entry.service_port,
        namespace_selector: entry.namespace_selector.map(selector),
        object_selector: entry.object_selector.map(selector),
        match_conditions: entry.match_conditions.iter().map(match_condition).collect(),
    }
}

fn match_condition((name, expression): &(&str, &str)) -> MatchCondition {
    MatchCondition {
        name: (*name).to_owned(),
        expression: (*expression).to_owned(),
    }
}

fn selector(requirements: Requirements) -> LabelSelector {
    let mut selector = LabelSelector::default();
    for (key, operator, values) in requirements {
        match (*operator, *values) {
            ("=", [value]) => {
                let labels = selector.match_labels.get_or_insert_default();
                labels.insert((*key).to_owned(), (*value).to_owned());
            }
            _ => {
                let expressions = selector.match_expressions.get_or_insert_default();
                expressions.push(LabelSelectorRequirement {
                    key: (*key).to_owned(),
                    operator: (*operator).to_owned(),
                    values: (!values.is_empty()).then(|| texts(values)),
                });
            }
        }
    }
    selector
}
