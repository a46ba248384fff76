//! Which objects of a collection a client wants to see.

use std::sync::Arc;

use bytes::Bytes;
use kubewright_schema::selector::{FieldSelector, LabelSelector};

use super::call::Call;
use super::options::ListOptions;
use crate::converter::Converter;
use crate::object::StoredLabels;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{Event, Pairs, Record};

/// So many objects at least are converted at once for a selector.
const AT_ONCE: usize = 500;

/// Which objects a client wants to see.
///
/// The store knows the selectable fields that objects have at the version they are stored at. Where a selector names
/// such a field of another version, what the store knows does not decide, and the object is converted.
pub(crate) struct Matcher {
    labels: LabelSelector,
    fields: FieldSelector,
    /// The one object that the path names.
    name: Option<String>,
    /// `namespace/`, or empty for all.
    prefix: String,
    /// The resource, when the selector names fields that depend on its version.
    of_version: Option<Arc<Served>>,
}

impl Matcher {
    /// Reads the selectors; unknown fields are refused.
    pub(crate) fn new(call: &Call, options: &ListOptions) -> Result<Self, ApiError> {
        let mut of_version = None;
        for term in options.fields.terms() {
            call.served.check_field_label(&term.field)?;
            if call.served.selects_by_version(&term.field) {
                of_version = Some(call.served.clone());
            }
        }
        let name = (!call.name.is_empty()).then(|| call.name.clone());
        let prefix = match &call.namespace {
            Some(namespace) if call.served.is_namespaced() => format!("{namespace}/"),
            _ => String::new(),
        };
        Ok(Self {
            labels: options.labels.clone(),
            fields: options.fields.clone(),
            name,
            prefix,
            of_version,
        })
    }

    /// What the keys of all objects that match begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether a client that asked so sees this object. [`Matcher::is_undecided`] says when that is not certain.
    pub(crate) fn may_match(&self, record: &Record) -> bool {
        record.key().starts_with(&self.prefix) && self.may_select(record)
    }

    /// The same of an object whose key begins as it should.
    pub(crate) fn may_select(&self, record: &Record) -> bool {
        self.name
            .as_deref()
            .is_none_or(|name| name == record.name())
            && self.labels.matches(&StoredLabels(record.labels()))
            && (self.is_undecided(record) || self.fields_match(record, record.fields()))
    }

    fn fields_match(&self, record: &Record, fields: &Pairs) -> bool {
        self.fields.matches(|name: &str| match name {
            "metadata.name" => Some(record.name()),
            "metadata.namespace" => Some(record.namespace().unwrap_or("")),
            other => fields.get(other),
        })
    }

    /// Whether an object has to be converted to see whether it matches.
    pub(crate) fn is_undecided(&self, record: &Record) -> bool {
        let served = self.of_version.as_ref();
        served.is_some_and(|served| served.must_revive(record.revision()))
    }

    /// Those of some objects that may match that do.
    pub(crate) async fn decide(
        &self,
        converter: &Converter,
        mut records: Vec<Arc<Record>>,
    ) -> Result<Vec<Arc<Record>>, ApiError> {
        let Some(served) = &self.of_version else {
            return Ok(records);
        };
        let undecided = records.iter().filter(|record| self.is_undecided(record));
        let undecided: Vec<Arc<Record>> = undecided.cloned().collect();
        let bodies = converter.bodies(served, &undecided).await?;
        let matches = |(record, body): (&Arc<Record>, &Bytes)| {
            let value = serde_json::from_slice(body).map_err(ApiError::internal)?;
            Ok(self.fields_match(record, &served.selectable_fields(&value)))
        };
        let decided: Result<Vec<bool>, ApiError> =
            undecided.iter().zip(&bodies).map(matches).collect();
        let mut decided = decided?.into_iter();
        records.retain(|record| !self.is_undecided(record) || decided.next().unwrap_or(false));
        Ok(records)
    }

    /// Whether what an event is about has to be converted to see whom it concerns.
    pub(crate) fn is_event_undecided(&self, event: &Event) -> bool {
        let records = event.previous().into_iter().chain([event.record()]);
        records
            .into_iter()
            .any(|record| self.is_undecided(record) && self.may_match(record))
    }

    /// Whether one object matches.
    pub(crate) async fn matches(
        &self,
        converter: &Converter,
        record: &Arc<Record>,
    ) -> Result<bool, ApiError> {
        if !self.is_undecided(record) || !self.may_match(record) {
            return Ok(self.may_match(record));
        }
        let decided = self.decide(converter, vec![record.clone()]).await?;
        Ok(!decided.is_empty())
    }

    /// How many objects are worth looking at together.
    pub(crate) fn least_at_once(&self) -> usize {
        match &self.of_version {
            Some(_) => AT_ONCE,
            None => 1,
        }
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && self.name.is_none()
    }

    /// The one key that can match, when the selector names an object.
    pub(crate) fn single_key(&self, namespaced: bool) -> Option<String> {
        let name = self
            .name
            .as_deref()
            .or_else(|| self.fields.exact("metadata.name"))?;
        match (namespaced, self.prefix.is_empty()) {
            (true, true) => None,
            _ => Some(format!("{}{name}", self.prefix)),
        }
    }
}
