//! A CustomResourceDefinition, read from its JSON.

use serde_json::Value;

use crate::catalog::Scope;

/// What a CRD declares. Absent strings are empty: the checks of `validation` tell what must be there.
#[derive(Debug, Clone, Default)]
pub struct Definition {
    /// The API group, such as `example.com`.
    pub group: String,
    /// The names in `spec.names`, as requested.
    pub names: Names,
    /// `Namespaced` or `Cluster`, as written.
    pub scope: String,
    /// Versions in the order written.
    pub versions: Vec<Version>,
    /// How objects change between versions.
    pub conversion: Conversion,
    /// Names that the server has accepted, from `status`.
    pub accepted_names: Names,
    /// Versions that may be in storage, from `status`.
    pub stored_versions: Vec<String>,
}

/// The names of a custom resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Plural, as in the path.
    pub plural: String,
    /// The singular name in lower case, which `kubectl` accepts too.
    pub singular: String,
    /// Abbreviations that `kubectl` accepts, such as `po`.
    pub short_names: Vec<String>,
    /// Kind of one object.
    pub kind: String,
    /// Kind of a list.
    pub list_kind: String,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
}

/// One version of a custom resource.
#[derive(Debug, Clone, Default)]
pub struct Version {
    /// Name, such as `v1`.
    pub name: String,
    /// Reachable over the API.
    pub served: bool,
    /// The version in storage; exactly one is.
    pub storage: bool,
    /// Requests get a warning.
    pub deprecated: bool,
    /// The text of the warning, when it is not the usual one.
    pub deprecation_warning: Option<String>,
    /// The schema as written in `schema.openAPIV3Schema`.
    pub schema: Option<Value>,
    /// Whether there is a `status` subresource.
    pub status: bool,
    /// The `scale` subresource, if the version has one.
    pub scale: Option<Scale>,
    /// Columns of `kubectl get`.
    pub columns: Vec<Column>,
    /// JSON paths that field selectors may use.
    pub selectable_fields: Vec<String>,
}

/// Where the parts of a `Scale` are in an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scale {
    /// Path of the desired number of replicas, under `.spec`.
    pub spec_replicas_path: String,
    /// Path of the observed number of replicas, under `.status`.
    pub status_replicas_path: String,
    /// Path of the label selector as text.
    pub label_selector_path: Option<String>,
}

/// One entry of `additionalPrinterColumns`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column {
    /// The heading of the column.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub column_type: String,
    /// OpenAPI format, a hint for clients.
    pub format: String,
    /// The help text of the column.
    pub description: String,
    /// Columns above 0 are shown by `-o wide` only.
    pub priority: i64,
    /// Where the value is.
    pub json_path: String,
}

/// How objects change between versions.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum Conversion {
    /// Nothing but `apiVersion` changes.
    #[default]
    None,
    /// A webhook converts; its configuration as written.
    Webhook(Value),
}

impl Definition {
    /// Reads a CRD. The object has passed the type table; what is absent or of another type reads as empty.
    pub fn parse(crd: &Value) -> Self {
        let spec = &crd["spec"];
        let status = &crd["status"];
        let conversion = &spec["conversion"];
        Self {
            group: text(spec, "group"),
            names: Names::parse(&spec["names"]),
            scope: text(spec, "scope"),
            versions: list(spec, "versions").iter().map(Version::parse).collect(),
            conversion: match conversion["strategy"].as_str() {
                Some("Webhook") => Conversion::Webhook(conversion["webhook"].clone()),
                _ => Conversion::None,
            },
            accepted_names: Names::parse(&status["acceptedNames"]),
            stored_versions: texts(status, "storedVersions"),
        }
    }

    /// The scope as the catalog knows it.
    pub fn catalog_scope(&self) -> Scope {
        match self.scope.as_str() {
            "Cluster" => Scope::Cluster,
            _ => Scope::Namespaced,
        }
    }

    /// Finds a version by name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| v.name == name)
    }

    /// The version in storage.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|v| v.storage)
    }
}

impl Names {
    pub(super) fn parse(names: &Value) -> Self {
        Self {
            plural: text(names, "plural"),
            singular: text(names, "singular"),
            short_names: texts(names, "shortNames"),
            kind: text(names, "kind"),
            list_kind: text(names, "listKind"),
            categories: texts(names, "categories"),
        }
    }
}

impl Version {
    fn parse(version: &Value) -> Self {
        let subresources = &version["subresources"];
        Self {
            name: text(version, "name"),
            served: flag(version, "served"),
            storage: flag(version, "storage"),
            deprecated: flag(version, "deprecated"),
            deprecation_warning: version["deprecationWarning"].as_str().map(str::to_owned),
            schema: Some(&version["schema"]["openAPIV3Schema"])
                .filter(|s| s.is_object())
                .cloned(),
            status: subresources["status"].is_object(),
            scale: Some(&subresources["scale"])
                .filter(|s| s.is_object())
                .map(Scale::parse),
            columns: list(version, "additionalPrinterColumns")
                .iter()
                .map(Column::parse)
                .collect(),
            selectable_fields: list(version, "selectableFields")
                .iter()
                .map(|f| text(f, "jsonPath"))
                .collect(),
        }
    }
}

impl Scale {
    fn parse(scale: &Value) -> Self {
        Self {
            spec_replicas_path: text(scale, "specReplicasPath"),
            status_replicas_path: text(scale, "statusReplicasPath"),
            label_selector_path: scale["labelSelectorPath"].as_str().map(str::to_owned),
        }
    }
}

impl Column {
    fn parse(column: &Value) -> Self {
        Self {
            name: text(column, "name"),
            column_type: text(column, "type"),
            format: text(column, "format"),
            description: text(column, "description"),
            priority: column["priority"].as_i64().unwrap_or(0),
            json_path: text(column, "jsonPath"),
        }
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("").to_owned()
}

fn flag(value: &Value, key: &str) -> bool {
    value[key].as_bool().unwrap_or(false)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let items = list(value, key).iter();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
