//! OpenAPI documents: version 3 with one document per group and version, version 2 with one for everything.
//!
//! Documents are pure functions of the type table and the resources that are served. Built-in schemas are written
//! straight from the [`Table`](crate::Table); a custom resource brings the schema of its CRD. What clients need of
//! them: `kubectl explain` finds a kind by its path and reads the schema, `kubectl apply` finds the PATCH operation
//! of a kind, its `fieldValidation` parameter, its content types and the merge keys of the schema.
//!
//! Descriptions of built-in fields are in version 3 alone, which is what `kubectl explain` reads.

mod custom;
mod definitions;
mod descriptions;
pub mod gnostic;
mod names;
mod operation;
mod parameter;
mod routes;
mod schema;
#[cfg(test)]
mod tests;
pub mod v2;
pub mod v3;
mod verbs;

use serde_json::Value;

use crate::catalog::Resource;

/// The version of Kubernetes that the documents tell of.
const KUBERNETES_VERSION: &str = "v1.37.0";

/// One resource to describe, and where its schema comes from.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// The resource that paths and operations are made for.
    pub resource: &'a Resource,
    /// Where its schema comes from.
    pub source: Source<'a>,
}

/// Where the schema of a resource comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A built-in kind of the type table.
    Table,
    /// The `openAPIV3Schema` of a CRD's version.
    Custom(&'a Value),
}

/// Version of OpenAPI that a part of a document is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// Where definitions live, as the start of a `$ref`.
    fn prefix(self) -> &'static str {
        match self {
            Dialect::V2 => "#/definitions/",
            Dialect::V3 => "#/components/schemas/",
        }
    }
}
