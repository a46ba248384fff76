//! The versions of a kind in one definition.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Why definitions do not make one kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Two types are the same version.
    #[error("{name}: there are two types of version {version}")]
    Twice {
        /// The kind's name.
        name: String,
        /// The version.
        version: String,
    },
    /// They differ in what a kind has once.
    #[error("{name}: versions {first} and {second} differ in {what}, which a kind has once")]
    Differ {
        /// The kind's name.
        name: String,
        /// A version.
        first: String,
        /// Another.
        second: String,
        /// In what.
        what: &'static str,
    },
    /// No version or more than one is stored.
    #[error("{name}: {found} versions are stored, and it must be one: write `storage = false` in `#[kube(..)]` of all but one of {}", .versions.join(", "))]
    Storage {
        /// The kind's name.
        name: String,
        /// How many.
        found: usize,
        /// Its versions.
        versions: Vec<String>,
    },
    /// No version is served.
    #[error("{name}: no version is served")]
    NotServed {
        /// The kind's name.
        name: String,
    },
}

/// One definition for each kind, with all versions that are there, sorted by name.
///
/// Versions are sorted as text, as controller-gen sorts them. A kind with one version stores it.
///
/// # Errors
/// When versions contradict each other, or not exactly one of several is stored.
pub fn merge(
    definitions: Vec<CustomResourceDefinition>,
) -> Result<Vec<CustomResourceDefinition>, MergeError> {
    let mut kinds: BTreeMap<String, Vec<CustomResourceDefinition>> = BTreeMap::new();
    for definition in definitions {
        let name = definition.metadata.name.clone().unwrap_or_default();
        kinds.entry(name).or_default().push(definition);
    }
    kinds
        .into_iter()
        .map(|(name, versions)| one(name, versions))
        .collect()
}

fn one(
    name: String,
    definitions: Vec<CustomResourceDefinition>,
) -> Result<CustomResourceDefinition, MergeError> {
    let mut definitions = definitions.into_iter();
    let first = definitions.next().expect("a kind has a definition");
    let mut merged = first;
    for definition in definitions {
        agree(&name, &merged, &definition)?;
        absorb(&mut merged, definition);
    }
    let versions = &mut merged.spec.versions;
    versions.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = versions
        .windows(2)
        .find(|pair| pair[0].name == pair[1].name)
    {
        let version = pair[0].name.clone();
        return Err(MergeError::Twice { name, version });
    }
    if let [only] = versions.as_mut_slice() {
        only.storage = true;
    }
    let stored = versions.iter().filter(|version| version.storage).count();
    if stored != 1 {
        let versions = versions
            .iter()
            .map(|version| version.name.clone())
            .collect();
        return Err(MergeError::Storage {
            name,
            found: stored,
            versions,
        });
    }
    if versions.iter().any(|version| version.served) {
        Ok(merged)
    } else {
        Err(MergeError::NotServed { name })
    }
}

/// What a kind has once has to be the same.
fn agree(
    name: &str,
    left: &CustomResourceDefinition,
    right: &CustomResourceDefinition,
) -> Result<(), MergeError> {
    let (a, b) = (&left.spec.names, &right.spec.names);
    let differs = [
        ("the kind", a.kind != b.kind),
        ("the scope", left.spec.scope != right.spec.scope),
        ("the singular", a.singular != b.singular),
        ("the short names", a.short_names != b.short_names),
        ("the categories", a.categories != b.categories),
    ];
    let version = |definition: &CustomResourceDefinition| {
        let last = definition.spec.versions.last();
        last.map(|version| version.name.clone()).unwrap_or_default()
    };
    match differs.iter().find(|(_, differs)| *differs) {
        None => Ok(()),
        Some((what, _)) => Err(MergeError::Differ {
            name: name.to_owned(),
            first: version(left),
            second: version(right),
            what,
        }),
    }
}

fn absorb(merged: &mut CustomResourceDefinition, other: CustomResourceDefinition) {
    for (own, more) in [
        (&mut merged.metadata.annotations, other.metadata.annotations),
        (&mut merged.metadata.labels, other.metadata.labels),
    ] {
        if let Some(more) = more {
            own.get_or_insert_default().extend(more);
        }
    }
    if merged.spec.conversion.is_none() {
        merged.spec.conversion = other.spec.conversion;
    }
    merged.spec.versions.extend(other.spec.versions);
}
