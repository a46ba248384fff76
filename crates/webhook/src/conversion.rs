//! Conversion: objects of a kind in another of its versions, by way of one version that all others know: the hub.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

type Convert = Arc<dyn Fn(Value) -> Result<Value, ObjectConversionError> + Send + Sync>;

/// Why an object cannot be converted; the text is shown to whoever sent the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectConversionError {
    #[error("nobody converts objects of kind {0}")]
    UnknownKind(Value),
    #[error("{kind} does not become one of group {group:?}")]
    OtherGroup { kind: String, group: String },
    #[error("{kind} has no version {version:?} that can be converted")]
    UnknownVersion { kind: String, version: String },
    #[error("the object does not decode: {0}")]
    Decode(serde_json::Error),
    #[error("the object does not encode: {0}")]
    Encode(serde_json::Error),
    /// The [`Spoke`] cannot express the object.
    #[error("{0}")]
    Refused(String),
    #[error("the conversion panicked")]
    Panicked,
}

/// A version of a kind that can become the hub's and be made of it.
///
/// Metadata is taken over: what is converted is everything else. Labels and annotations that a conversion sets are added to
/// those of the object; an annotation is the place for what the other version has no field for, so that nothing gets lost.
/// A conversion that returns the object's own metadata, with its uid, can remove labels and annotations as well.
pub trait Spoke<H>: Sized {
    /// The same object in the version of the hub.
    ///
    /// # Errors
    /// When the object cannot be expressed in that version; the text is shown to whoever sent the request.
    fn to_hub(self) -> Result<H, String>;

    /// The same object in this version.
    ///
    /// # Errors
    /// When the object cannot be expressed in this version; the text is shown to whoever sent the request.
    fn from_hub(hub: H) -> Result<Self, String>;
}

/// Converts the objects of a kind. `H` is the hub, to and from which every other version, a [`Spoke`], is converted.
///
/// ```
/// # use kube::CustomResource;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
/// # #[kube(group = "example.com", version = "v1", kind = "Job", namespaced, schema = "disabled")]
/// # struct JobSpec { at: String }
/// # mod v2 {
/// #     use kube::CustomResource;
/// #     use serde::{Deserialize, Serialize};
/// #     #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
/// #     #[kube(group = "example.com", version = "v2", kind = "Job", namespaced, schema = "disabled")]
/// #     pub struct JobSpec { pub minute: String, pub hour: String }
/// # }
/// use kubewright_webhook::{Converter, Spoke, Webhooks};
///
/// impl Spoke<Job> for v2::Job {
///     fn to_hub(self) -> Result<Job, String> {
///         let at = format!("{} {}", self.spec.minute, self.spec.hour);
///         Ok(Job::new("", JobSpec { at }))
///     }
///
///     fn from_hub(hub: Job) -> Result<Self, String> {
///         let at = hub.spec.at;
///         let (minute, hour) = at.split_once(' ').ok_or(format!("{at:?} is not a time"))?;
///         Ok(v2::Job::new("", v2::JobSpec { minute: minute.into(), hour: hour.into() }))
///     }
/// }
///
/// let converter = Converter::<Job>::hub().spoke::<v2::Job>();
/// let webhooks = Webhooks::new().converting("/convert", converter);
/// # drop(webhooks);
/// ```
#[must_use]
pub struct Converter<H> {
    group: String,
    kind: String,
    hub: String,
    spokes: BTreeMap<String, Way>,
    type_of_hub: PhantomData<fn() -> H>,
}

#[derive(Clone)]
struct Way {
    to_hub: Convert,
    from_hub: Convert,
}

impl<H> Converter<H>
where
    H: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
{
    /// A converter that knows the hub alone.
    pub fn hub() -> Self {
        Self {
            group: H::group(&()).into_owned(),
            kind: H::kind(&()).into_owned(),
            hub: H::version(&()).into_owned(),
            spokes: BTreeMap::new(),
            type_of_hub: PhantomData,
        }
    }

    /// Adds another version, which converts to the hub.
    pub fn spoke<S>(mut self) -> Self
    where
        S: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Spoke<H> + 'static,
    {
        let way = Way {
            to_hub: Arc::new(|object| typed(object, S::to_hub)),
            from_hub: Arc::new(|object| typed(object, S::from_hub)),
        };
        self.spokes.insert(S::version(&()).into_owned(), way);
        self
    }

    /// The erased converter, which needs no type.
    pub(crate) fn erase(self) -> Ways {
        Ways {
            group: self.group,
            kind: self.kind,
            hub: self.hub,
            spokes: self.spokes,
        }
    }
}

impl<H> std::fmt::Debug for Converter<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Converter({}, {} and {:?})",
            self.kind,
            self.hub,
            self.spokes.keys()
        )
    }
}

/// A converter without its type.
#[derive(Clone)]
pub(crate) struct Ways {
    group: String,
    kind: String,
    hub: String,
    spokes: BTreeMap<String, Way>,
}

impl Ways {
    /// The group, the kind, and the versions that are known.
    pub(crate) fn known(&self) -> (&str, &str, Vec<&str>) {
        let spokes = self.spokes.keys().map(String::as_str);
        let versions = std::iter::once(self.hub.as_str()).chain(spokes);
        (&self.group, &self.kind, versions.collect())
    }

    /// Takes the spokes of another converter in, if it is for the same kind and hub; gives it back otherwise.
    pub(crate) fn join(&mut self, other: Self) -> Option<Self> {
        let of = |ways: &Self| (ways.group.clone(), ways.kind.clone(), ways.hub.clone());
        if of(self) != of(&other) {
            return Some(other);
        }
        self.spokes.extend(other.spokes);
        None
    }

    pub(crate) fn is_for(&self, object: &Value) -> bool {
        let group = split(api_version(object)).0;
        group == self.group && object["kind"] == self.kind.as_str()
    }

    /// The object in another version.
    pub(crate) fn convert(
        &self,
        object: Value,
        desired: &str,
    ) -> Result<Value, ObjectConversionError> {
        let (group, version) = split(desired);
        if group != self.group {
            return Err(ObjectConversionError::OtherGroup {
                kind: self.kind.clone(),
                group: group.to_owned(),
            });
        }
        let current = split(api_version(&object)).1.to_owned();
        if current == version {
            return Ok(object);
        }
        let mut object = object;
        if current != self.hub {
            object = (self.spoke(&current)?.to_hub)(object)?;
        }
        if version != self.hub {
            object = (self.spoke(version)?.from_hub)(object)?;
        }
        Ok(object)
    }

    fn spoke(&self, version: &str) -> Result<&Way, ObjectConversionError> {
        let unknown = || ObjectConversionError::UnknownVersion {
            kind: self.kind.clone(),
            version: version.to_owned(),
        };
        self.spokes.get(version).ok_or_else(unknown)
    }
}

/// One conversion between types. The object says of which version it is; metadata is taken over.
fn typed<A, B>(
    object: Value,
    convert: impl Fn(A) -> Result<B, String>,
) -> Result<Value, ObjectConversionError>
where
    A: DeserializeOwned,
    B: Resource<DynamicType = ()> + Serialize,
{
    let metadata = object["metadata"].clone();
    let value: A = serde_json::from_value(object).map_err(ObjectConversionError::Decode)?;
    let converted = convert(value).map_err(ObjectConversionError::Refused)?;
    let mut converted = serde_json::to_value(converted).map_err(ObjectConversionError::Encode)?;
    converted["apiVersion"] = B::api_version(&()).into();
    converted["kind"] = B::kind(&()).into();
    converted["metadata"] = carry(metadata, &converted["metadata"]);
    Ok(converted)
}

/// The metadata of the object, with the labels and annotations that the conversion set.
///
/// A conversion that takes the metadata over, which its uid shows, says what all of them are, and may remove some. One that
/// makes new metadata only adds: it knows nothing of what others wrote there.
fn carry(mut metadata: Value, converted: &Value) -> Value {
    let uid = metadata.get("uid").filter(|uid| !uid.is_null());
    let is_taken_over = uid.is_some() && uid == converted.get("uid");
    let Some(fields) = metadata.as_object_mut() else {
        return metadata;
    };
    for name in ["labels", "annotations"] {
        let set = converted.get(name).and_then(Value::as_object);
        match (set, fields.get_mut(name)) {
            (None, _) if is_taken_over => {
                fields.remove(name);
            }
            (None, _) => {}
            (Some(set), Some(Value::Object(present))) if !is_taken_over => {
                present.extend(set.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            (Some(set), _) => {
                fields.insert(name.to_owned(), Value::Object(set.clone()));
            }
        }
    }
    metadata
}

fn api_version(object: &Value) -> &str {
    object["apiVersion"].as_str().unwrap_or_default()
}

/// Group and version.
fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// An object of another version with the fields that have the same names there: where most conversions begin.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_webhook::same_fields;
///
/// let map = ConfigMap { immutable: Some(true), ..ConfigMap::default() };
/// let copy: ConfigMap = same_fields(&map).unwrap();
/// assert_eq!(copy.immutable, Some(true));
/// ```
///
/// # Errors
/// When the other version does not take them.
pub fn same_fields<A: Serialize, B: DeserializeOwned>(object: &A) -> Result<B, String> {
    let fields = serde_json::to_value(object)
        .map_err(|error| format!("the object does not encode: {error}"))?;
    serde_json::from_value(fields).map_err(|error| format!("the fields do not fit: {error}"))
}
