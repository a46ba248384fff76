//! Makes an object that a schema accepts, for people to begin with.
//!
//! Values come from examples, defaults, enums, bounds, formats and patterns. The object is then validated as a server
//! would validate it, expressions included; what fails is changed, one or two values at a time, until all holds.

mod branches;
mod generate;
mod literals;
mod number;
mod pattern;
mod repair;
#[cfg(test)]
mod tests;
mod text;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_schema::crd::{CompileError, CompiledVersion, Definition, Version, validate};
use kubewright_schema::{FieldError, Table};
use serde_json::{Value, json};

use self::generate::{Extent, Generator};

pub use self::repair::replaced;

/// How many branches of `oneOf` and `anyOf` are tried.
const BRANCHES: usize = 8;
/// How often objects are validated at most; large schemas take a millisecond each time.
const BUDGET: usize = 8000;
/// How often objects are validated at most in search of one that keeps a value.
const NEAR_BUDGET: usize = 500;
/// How many values of each kind are made for a field.
const VARIANTS: usize = 4;

/// Why no sample can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The definition has no such version.
    #[error("{definition} has no version {version}")]
    Version {
        /// Name of the definition.
        definition: String,
        /// The version that was asked for.
        version: String,
    },
    /// The schema makes no sense.
    #[error("the schema of version {version} is not valid")]
    Schema {
        /// The version.
        version: String,
        /// What is wrong with it.
        #[source]
        source: Box<CompileError>,
    },
    /// No object was found that all rules accept. Those that stayed are listed, as a server words them.
    #[error("no sample satisfies these rules; give the fields an example or a default: {}", .failures.join("; "))]
    Rules {
        /// What the best attempt still violates.
        failures: Vec<String>,
    },
}

/// A valid object of one version of a kind, with its name and without a namespace.
///
/// # Errors
/// When there is no such version, its schema is invalid, or no object was found that satisfies its rules.
pub fn of(definition: &CustomResourceDefinition, version: &str) -> Result<Value, SampleError> {
    let json = serde_json::to_value(definition).unwrap_or_default();
    let parsed = Definition::parse(&json);
    let checker = Checker::of(definition, version)?;
    let mut failures = Vec::new();
    let attempts = attempts(&checker.schema);
    let budget = BUDGET / attempts.len();
    for (extent, branch) in attempts {
        let object = draft(&parsed, version, &checker, Generator::new(extent, branch));
        match repair::repair(&checker, object, None, budget) {
            Ok(object) => return Ok(object),
            // The first attempt shows most fields, and fails most clearly.
            Err(errors) if failures.is_empty() => failures = errors,
            Err(_) => {}
        }
    }
    let failures = failures.iter().map(ToString::to_string).collect();
    Err(SampleError::Rules { failures })
}

fn attempts(schema: &Value) -> Vec<(Extent, usize)> {
    let branches = branches::most(schema).clamp(1, BRANCHES);
    let of_extent = |extent| (0..branches).map(move |branch| (extent, branch));
    of_extent(Extent::Generous)
        .chain(of_extent(Extent::Required))
        .collect()
}

fn draft(definition: &Definition, version: &str, checker: &Checker, generator: Generator) -> Value {
    let names = &definition.names;
    let mut object = generator.root(&checker.schema);
    object["apiVersion"] = format!("{}/{version}", definition.group).into();
    object["kind"] = names.kind.as_str().into();
    let name = format!("{}-sample", names.kind.to_lowercase());
    object["metadata"] = json!({ "name": name });
    object
}

/// Values for a field of this name that its schema allows, the likeliest first and no two equal. Expressions are not
/// evaluated, so a [`Checker`] may still refuse some of them.
pub fn values(schema: &Value, name: &str) -> Vec<Value> {
    let branches = branches::most(schema).clamp(1, BRANCHES);
    let mut values: Vec<Value> = Vec::new();
    let mut add = |value: Value| {
        if !values.contains(&value) {
            values.push(value);
        }
    };
    for branch in 0..branches {
        let taken = branches::take(schema, branch);
        for extent in [Extent::Generous, Extent::Required] {
            for variant in 0..VARIANTS {
                add(Generator::new(extent, branch).variant(&taken, name, variant));
            }
        }
        let named = taken["enum"].as_array().into_iter().flatten();
        named.for_each(|value| add(value.clone()));
    }
    values
}

/// Validates objects of one version of a kind as a server does.
#[derive(Debug)]
pub struct Checker {
    version: CompiledVersion,
    schema: Value,
}

impl Checker {
    /// Compiles the schema of a version.
    ///
    /// # Errors
    /// When there is no such version, or its schema is invalid.
    pub fn of(definition: &CustomResourceDefinition, version: &str) -> Result<Self, SampleError> {
        let json = serde_json::to_value(definition).unwrap_or_default();
        let parsed = Definition::parse(&json);
        let found = parsed.version(version);
        let found = found.ok_or_else(|| SampleError::Version {
            definition: definition.metadata.name.clone().unwrap_or_default(),
            version: version.to_owned(),
        })?;
        Self::new(found).map_err(|source| SampleError::Schema {
            version: version.to_owned(),
            source: Box::new(source),
        })
    }

    fn new(version: &Version) -> Result<Self, CompileError> {
        let builtin = Table::builtin();
        let meta = builtin.named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let schema = version.schema.clone().unwrap_or_default();
        let version = CompiledVersion::new(version, meta.map(|id| (builtin, id)))?;
        Ok(Self { version, schema })
    }

    /// The schema of the version.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// What a server would find wrong with a new object, or with an update of an old one, after it has filled in the defaults.
    pub fn errors(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut defaulted = object.clone();
        kubewright_schema::crd::default(&self.version, &mut defaulted);
        validate(&self.version, &defaulted, old, Vec::new())
    }

    /// A valid object near this one, which has the same value at this JSON pointer. None if a short search finds no such
    /// object.
    pub fn near(&self, object: Value, kept: &str) -> Option<Value> {
        repair::repair(self, object, Some(kept), NEAR_BUDGET).ok()
    }
}
