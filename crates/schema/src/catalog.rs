//! The catalog: which resources an API group and version serves, built in or from a CRD.

mod builtin;
mod parse;

pub use builtin::builtin;
pub use parse::{LineError, ParseError};

/// One resource at one version, as discovery shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: Box<str>,
    /// API version within the group.
    pub version: Box<str>,
    /// Plural, as in the path.
    pub plural: Box<str>,
    /// The singular name in lower case, which `kubectl` accepts too.
    pub singular: Box<str>,
    /// Kind of one object.
    pub kind: Box<str>,
    /// Kind of a list.
    pub list_kind: Box<str>,
    /// Whether objects live in a namespace.
    pub scope: Scope,
    /// Abbreviations such as `deploy`.
    pub short_names: Vec<Box<str>>,
    /// Groups of resources such as `all`.
    pub categories: Vec<Box<str>>,
    /// What can be done with it.
    pub verbs: Vec<Verb>,
    /// Parts of it with an address of their own.
    pub subresources: Vec<Subresource>,
}

/// A part of a resource with an address of its own, such as `deployments/scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// Last part of the path.
    pub name: Box<str>,
    /// Group of the kind it speaks, which may differ from its parent's.
    pub group: Box<str>,
    /// Version of the kind it speaks.
    pub version: Box<str>,
    /// The kind of the objects that it takes and returns.
    pub kind: Box<str>,
    /// What can be done with it.
    pub verbs: Vec<Verb>,
}

/// Where the objects of a resource live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects live in a namespace.
    Namespaced,
    /// In the cluster as a whole.
    Cluster,
}

/// What can be done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// POST to the collection.
    Create,
    /// DELETE of one object.
    Delete,
    /// DELETE of the collection.
    DeleteCollection,
    /// GET of one object.
    Get,
    /// GET of the collection.
    List,
    /// PATCH of one object.
    Patch,
    /// PUT of one object.
    Update,
    /// GET of the collection with `watch`.
    Watch,
}

impl Verb {
    /// All verbs, in the order discovery lists them.
    pub const ALL: [Verb; 8] = [
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ];

    /// The verb that discovery and RBAC write so.
    pub fn named(name: &str) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.as_str() == name)
    }

    /// The verb as discovery and RBAC write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
}

impl Resource {
    /// Returns the `apiVersion` of its objects: `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Whether the verb is offered.
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// Whether a delete that is done at once answers the deleted object; all other resources answer a `Status`.
    pub fn answers_deleted_object(&self) -> bool {
        let plurals: &[&str] = match &*self.group {
            "" => &[
                "persistentvolumeclaims",
                "persistentvolumes",
                "pods",
                "podtemplates",
                "resourcequotas",
                "serviceaccounts",
                "services",
            ],
            "resource.k8s.io" => &[
                "deviceclasses",
                "resourceclaims",
                "resourceclaimtemplates",
                "resourceslices",
            ],
            "storage.k8s.io" => &[
                "csidrivers",
                "csinodes",
                "storageclasses",
                "volumeattachments",
                "volumeattributesclasses",
            ],
            _ => &[],
        };
        plurals.contains(&&*self.plural)
    }

    /// Finds a subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| &*s.name == name)
    }
}

/// Joins group and version to an `apiVersion`: `v1` for the core group, otherwise `apps/v1`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}
