//! What the server does with the objects of one kind beyond storing them: a table of facts and functions.
//!
//! The order of calls is the caller's: on create `default`, `prepare_for_create`, admission, `validate`,
//! `warnings`; on update `default`, `prepare_for_update`, admission, `validate_update`. Nothing here reads the
//! clock or randomness; what a new object needs of them comes in a [`CreateContext`].

use crate::object;
use kubewright_schema::catalog::Scope;
use kubewright_schema::names;
use serde_json::{Value, json};

use super::checks::Errors;
use super::meta;
use super::name_rule::NameRule;
use super::value::{alike, copy, ensure, remove, set, text};

/// The facts about a new object that its kind may use. Its name is in its metadata already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CreateContext<'a> {
    /// The object's `uid`.
    pub(crate) uid: &'a str,
    /// The present moment as objects carry it.
    pub(crate) now: &'a str,
}

/// Whether `metadata.generation` counts the changes of a kind's objects, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// There is no generation.
    Absent,
    /// Changes of this field, such as `spec`.
    Field(&'static str),
    /// Changes of `spec` or of annotations: Deployments hand their annotations down.
    SpecAndAnnotations,
    /// Changes of anything outside metadata, or of labels.
    ContentAndLabels,
    /// Changes of anything outside metadata and status, as custom resources have it.
    Content,
    /// Set once and never changed.
    Fixed,
}

/// What happens to dependents when the request does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are collected later.
    Background,
    /// They lose their owner and stay.
    Orphan,
    /// The kind takes no part in garbage collection.
    Unsupported,
}

/// How objects of a kind go away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// At once, unless finalizers hold them.
    Immediate,
    /// After a grace period; see [`Strategy::grace_period`].
    Graceful,
    /// Through a phase `Terminating` until `spec.finalizers` is empty.
    Terminating,
}

/// What a write of the status subresource may change besides the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusMeta {
    /// All of the metadata that an update may change.
    Open,
    /// All metadata except labels.
    KeepLabels,
    /// All but owner references.
    KeepOwners,
    /// Nothing but managed fields.
    Closed,
}

/// Which of its two questions about an update a kind asks first; the causes of an error stand in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateOrder {
    /// Is the object good, then may it change so.
    ObjectFirst,
    /// May it change so, then is the object good.
    ChangeFirst,
}

/// Which field selectors a kind knows, and how it refuses others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldLabels {
    /// Only `metadata.name` and `metadata.namespace`.
    Generic,
    /// Exactly these field labels.
    Listed(&'static [&'static str]),
    /// Exactly these, refused in the words of Jobs.
    ListedForJob(&'static [&'static str]),
}

/// Facts and functions of one kind.
pub(crate) struct Strategy {
    /// Rule for names.
    pub(crate) name_rule: NameRule,
    /// What the generation counts.
    pub(crate) generation: Generation,
    /// Whether there is a status subresource.
    pub(crate) has_status: bool,
    /// Whether a new object may bring a status along, as nodes do when they register.
    pub(crate) brings_status: bool,
    /// What a status write may change besides.
    pub(crate) status_meta: StatusMeta,
    /// Whether an update without `resourceVersion` overwrites whatever is there.
    pub(crate) allow_unconditional_update: bool,
    /// Whether an update of an absent object creates it.
    pub(crate) allow_create_on_update: bool,
    /// Whether a delete answers with the object rather than with a `Status`.
    pub(crate) returns_deleted_object: bool,
    /// What happens to dependents by default.
    pub(crate) default_propagation: Propagation,
    /// The warning when a delete does not say what becomes of the dependents.
    pub(crate) orphaning_warning: Option<&'static str>,
    /// How objects go away.
    pub(crate) deletion: Deletion,
    /// Which field selectors there are.
    pub(crate) field_labels: FieldLabels,
    pub(super) update_order: UpdateOrder,
    pub(super) default: fn(&mut Value),
    pub(super) create: fn(&mut Value, &CreateContext<'_>),
    pub(super) update: fn(&mut Value, &Value),
    pub(super) status_update: fn(&mut Value, &Value),
    pub(super) validate: fn(&Value, &mut Errors),
    /// What a new object must satisfy and an old one need not.
    pub(super) validate_create_only: fn(&Value, &mut Errors),
    /// New, old.
    pub(super) validate_update: fn(&Value, &Value, &mut Errors),
    /// New, old.
    pub(super) validate_status: fn(&Value, &Value, &mut Errors),
    /// New, old: a write through a subresource that is neither the object nor its status. None is as the status.
    pub(super) validate_own: Option<fn(&Value, &Value, &mut Errors)>,
    /// Where names of objects show up and should therefore be DNS labels.
    pub(super) name_appears_in: Option<&'static str>,
    pub(super) warnings: fn(&Value) -> Vec<String>,
    pub(super) fields: fn(&Value) -> Vec<(&'static str, String)>,
}

/// A label of a field selector that a kind does not know, in the words of the API.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnknownFieldLabel(String);

impl Strategy {
    /// A kind with nothing special.
    pub(crate) const PLAIN: Strategy = Strategy {
        name_rule: NameRule::Subdomain,
        generation: Generation::Absent,
        has_status: false,
        brings_status: false,
        status_meta: StatusMeta::Open,
        allow_unconditional_update: true,
        allow_create_on_update: false,
        returns_deleted_object: false,
        default_propagation: Propagation::Background,
        orphaning_warning: None,
        deletion: Deletion::Immediate,
        field_labels: FieldLabels::Generic,
        update_order: UpdateOrder::ObjectFirst,
        default: |_| {},
        create: |_, _| {},
        update: |_, _| {},
        status_update: |_, _| {},
        validate: |_, _| {},
        validate_create_only: |_, _| {},
        validate_update: |_, _, _| {},
        validate_status: |_, _, _| {},
        validate_own: None,
        name_appears_in: None,
        warnings: |_| Vec::new(),
        fields: |_| Vec::new(),
    };

    /// Fills in what the client left out. Doing it twice changes nothing more.
    pub(crate) fn default(&self, object: &mut Value) {
        (self.default)(object);
    }

    /// Makes a new object what it is at the start: its own status, its first generation.
    pub(crate) fn prepare_for_create(&self, object: &mut Value, cx: &CreateContext<'_>) {
        let metadata = ensure(object, "metadata");
        match self.generation {
            Generation::Absent => drop(remove(metadata, "generation")),
            _ => set(metadata, "generation", 1),
        }
        if self.has_status && !self.brings_status {
            remove(object, "status");
        }
        (self.create)(object, cx);
    }

    /// Makes an updated object keep what an update may not change, and counts its generation.
    pub(crate) fn prepare_for_update(&self, new: &mut Value, old: &Value) {
        if self.has_status {
            copy(new, old, "status");
        }
        copy(ensure(new, "metadata"), &old["metadata"], "generation");
        (self.update)(new, old);
        if self.generation_changes(new, old) {
            let next = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            set(ensure(new, "metadata"), "generation", next);
        }
    }

    fn generation_changes(&self, new: &Value, old: &Value) -> bool {
        let metadata_changes =
            |field: &str| !alike(&new["metadata"][field], &old["metadata"][field]);
        match self.generation {
            Generation::Absent | Generation::Fixed => false,
            Generation::Field(field) => !alike(&new[field], &old[field]),
            Generation::SpecAndAnnotations => {
                !alike(&new["spec"], &old["spec"]) || metadata_changes("annotations")
            }
            Generation::ContentAndLabels => {
                content_changes(new, old, &["metadata"]) || metadata_changes("labels")
            }
            Generation::Content if self.has_status => {
                content_changes(new, old, &["metadata", "status"])
            }
            Generation::Content => content_changes(new, old, &["metadata"]),
        }
    }

    /// Makes a write of the status subresource change the status alone.
    pub(crate) fn prepare_for_status_update(&self, new: &mut Value, old: &Value) {
        let status = remove(new, "status");
        let metadata = remove(new, "metadata").unwrap_or_else(|| json!({}));
        let kept = old.as_object().into_iter().flatten();
        let kept = kept.filter(|(field, _)| !matches!(field.as_str(), "status" | "metadata"));
        let kept = kept.map(|(field, value)| (field.clone(), value.clone()));
        *new = Value::Object(kept.collect());
        if let Some(status) = status {
            set(new, "status", status);
        }
        set(
            new,
            "metadata",
            self.status_metadata(metadata, &old["metadata"]),
        );
        (self.status_update)(new, old);
    }

    fn status_metadata(&self, mut new: Value, old: &Value) -> Value {
        copy(&mut new, old, "generation");
        match self.status_meta {
            StatusMeta::Open => {}
            StatusMeta::KeepLabels => copy(&mut new, old, "labels"),
            StatusMeta::KeepOwners => copy(&mut new, old, "ownerReferences"),
            StatusMeta::Closed => {
                let closed = [
                    "deletionGracePeriodSeconds",
                    "deletionTimestamp",
                    "labels",
                    "annotations",
                    "ownerReferences",
                    "finalizers",
                    "selfLink",
                ];
                for field in closed {
                    copy(&mut new, old, field);
                }
            }
        }
        new
    }

    /// What is wrong with a new object, metadata first.
    pub(crate) fn validate(&self, object: &Value, scope: Scope) -> Errors {
        let mut errors = Errors::new();
        meta::validate(object, scope, self.name_rule, &mut errors);
        (self.validate)(object, &mut errors);
        (self.validate_create_only)(object, &mut errors);
        errors
    }

    /// What is wrong with an updated object. Metadata is checked by the general rules and again by the kind's, so
    /// its errors stand twice among the causes, as clients of the real server see them.
    pub(crate) fn validate_update(&self, new: &Value, old: &Value, scope: Scope) -> Errors {
        let mut errors = Errors::new();
        meta::validate_update_common(new, old, scope, &mut errors);
        meta::validate_update(new, old, &mut errors);
        match self.update_order {
            UpdateOrder::ObjectFirst => {
                (self.validate)(new, &mut errors);
                (self.validate_update)(new, old, &mut errors);
            }
            UpdateOrder::ChangeFirst => {
                (self.validate_update)(new, old, &mut errors);
                (self.validate)(new, &mut errors);
            }
        }
        errors
    }

    /// What is wrong with a write of the status subresource.
    pub(crate) fn validate_status_update(&self, new: &Value, old: &Value, scope: Scope) -> Errors {
        let mut errors = Errors::new();
        meta::validate_update_common(new, old, scope, &mut errors);
        meta::validate_update(new, old, &mut errors);
        (self.validate_status)(new, old, &mut errors);
        errors
    }

    /// What is wrong with a write of another subresource.
    pub(crate) fn validate_own_update(&self, new: &Value, old: &Value, scope: Scope) -> Errors {
        let Some(validate) = self.validate_own else {
            return self.validate_status_update(new, old, scope);
        };
        let mut errors = Errors::new();
        meta::validate_update_common(new, old, scope, &mut errors);
        meta::validate_update(new, old, &mut errors);
        validate(new, old, &mut errors);
        errors
    }

    /// What a client should know about a new object that is good enough.
    pub(crate) fn warnings(&self, object: &Value) -> Vec<String> {
        let mut out = Vec::new();
        let complaints = names::dns1123_label(object::name(object));
        if let (Some(place), false) = (self.name_appears_in, complaints.is_empty()) {
            out.push(format!(
                "metadata.name: this is used in {place}, which can result in surprising behavior; a DNS label is recommended: [{}]",
                complaints.join(" ")
            ));
        }
        out.extend((self.warnings)(object));
        out
    }

    /// What a client should know about an update. Only changes that count are worth a warning, and none of a pod:
    /// people rarely change pods by hand, and controllers do so all the time.
    pub(crate) fn update_warnings(&self, new: &Value, old: &Value) -> Vec<String> {
        let counted = new["metadata"]["generation"] != old["metadata"]["generation"];
        if counted && self.deletion != Deletion::Graceful {
            (self.warnings)(new)
        } else {
            Vec::new()
        }
    }

    /// The values that field selectors compare with, besides `metadata.name` and `metadata.namespace`.
    pub(crate) fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        (self.fields)(object)
    }

    /// Checks the label of a field selector.
    ///
    /// # Errors
    /// When the kind does not know the label.
    pub(crate) fn check_field_label(&self, label: &str) -> Result<(), UnknownFieldLabel> {
        let (known, refusal): (&[&str], String) = match self.field_labels {
            FieldLabels::Generic => (
                &["metadata.name", "metadata.namespace"],
                format!(
                    "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                ),
            ),
            FieldLabels::Listed(known) => (known, format!("field label not supported: {label}")),
            FieldLabels::ListedForJob(known) => (
                known,
                format!("field label {label:?} not supported for Job"),
            ),
        };
        if known.contains(&label) {
            Ok(())
        } else {
            Err(UnknownFieldLabel(refusal))
        }
    }

    /// How long an object may take to go away: what the client asked for or the object says, and nothing when it
    /// is not running anywhere. `None` when the kind goes at once.
    pub(crate) fn grace_period(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        if self.deletion != Deletion::Graceful {
            return None;
        }
        let spec = &object["spec"];
        let finished = matches!(text(&object["status"]["phase"]), "Failed" | "Succeeded");
        if text(&spec["nodeName"]).is_empty() || finished {
            return Some(0);
        }
        let period = requested
            .or_else(|| spec["terminationGracePeriodSeconds"].as_i64())
            .unwrap_or(0);
        Some(if period < 0 { 1 } else { period })
    }
}

fn content_changes(new: &Value, old: &Value, except: &[&str]) -> bool {
    let content = |value: &Value| {
        let mut content = value.clone();
        for field in except {
            remove(&mut content, field);
        }
        content
    };
    !alike(&content(new), &content(old))
}
