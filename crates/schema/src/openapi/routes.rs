//! Which operations a resource has, and where: the paths of a document.

use std::borrow::Cow;

use super::names::{capitalized, custom_definition, operation_infix, tag};
use super::operation::{Answer, OBJECT, Operation, Path, Paths};
use super::parameter::{self, NAME, NAMESPACE, Parameter, REST};
use super::{Described, Source};
use crate::catalog::{Resource, Scope, Subresource, Verb};
use crate::types::Table;

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";

/// What the operations of one group and version share.
#[derive(Debug)]
pub(super) struct GroupVersion<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    /// `AppsV1` in names of operations.
    pub(super) infix: String,
    /// `apps_v1`
    pub(super) tag: String,
}

impl<'a> GroupVersion<'a> {
    pub(super) fn new(group: &'a str, version: &'a str) -> Self {
        Self {
            group,
            version,
            infix: operation_infix(group, version),
            tag: tag(group, version),
        }
    }

    /// `/api/v1` or `/apis/apps/v1`
    fn root(&self) -> String {
        match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }

    /// Adds the paths of the group and version and of each resource.
    pub(super) fn add_paths<'b>(
        &'b self,
        table: &'b Table,
        resources: &[Described<'b>],
        paths: &mut Paths<'b>,
    ) {
        let root = self.root();
        add(paths, &format!("{root}/"), self.list_resources());
        for described in resources {
            let route = Route::new(self, table, described);
            route.add_collection(&root, paths);
            route.add_object(paths);
            for subresource in &described.resource.subresources {
                route.add_subresource(subresource, paths);
            }
            route.add_watches(&root, paths);
        }
    }

    fn list_resources(&self) -> Operation<'_> {
        Operation {
            method: "get",
            id: format!("get{}APIResources", self.infix),
            description: "get available resources".to_owned(),
            tag: &self.tag,
            acts: None,
            parameters: Vec::new(),
            body: None,
            produces: OBJECT,
            answer: Answer::Definition(RESOURCE_LIST.into()),
            statuses: &[200],
        }
    }
}

/// One resource on its way into the paths.
pub(super) struct Route<'a> {
    pub(super) gv: &'a GroupVersion<'a>,
    pub(super) table: &'a Table,
    pub(super) resource: &'a Resource,
    pub(super) custom: bool,
    /// `Namespaced` or nothing, in names of operations.
    pub(super) scoped: &'static str,
    /// Path of the collection, within a namespace if there is one.
    pub(super) collection: String,
}

impl<'a> Route<'a> {
    fn new(gv: &'a GroupVersion<'a>, table: &'a Table, described: &Described<'a>) -> Self {
        let resource = described.resource;
        let root = gv.root();
        let (scoped, collection) = match resource.scope {
            Scope::Namespaced => (
                "Namespaced",
                format!("{root}/namespaces/{{namespace}}/{}", resource.plural),
            ),
            Scope::Cluster => ("", format!("{root}/{}", resource.plural)),
        };
        Self {
            gv,
            table,
            resource,
            custom: matches!(described.source, Source::Custom(_)),
            scoped,
            collection,
        }
    }

    /// The definition's name of a kind of the same group and version.
    pub(super) fn own(&self, kind: &str) -> Cow<'a, str> {
        self.definition(self.gv.group, self.gv.version, kind)
    }

    /// The definition's name of a kind. The table knows the built-in ones; a custom resource's own are its CRD's,
    /// even if the table has kinds of that name.
    pub(super) fn definition(&self, group: &str, version: &str, kind: &str) -> Cow<'a, str> {
        let table: &'a Table = self.table;
        let own = group == self.gv.group && version == self.gv.version;
        let known = table.kind(group, version, kind);
        match known.and_then(|id| table.get(id).name.as_deref()) {
            Some(name) if !(self.custom && own) => Cow::Borrowed(name),
            _ => custom_definition(group, version, kind).into(),
        }
    }

    fn add_collection(&self, root: &str, paths: &mut Paths<'a>) {
        let kind = &*self.resource.kind;
        let list = self.own(&self.resource.list_kind);
        let named = format!("{}{kind}", self.scoped);
        if self.resource.allows(Verb::List) {
            if self.resource.scope == Scope::Namespaced {
                let all = self.list(format!("{kind}ForAllNamespaces"), list.clone());
                let path = format!("{root}/{}", self.resource.plural);
                add(paths, &path, without(all, NAMESPACE));
            }
            add(paths, &self.collection, self.list(named.clone(), list));
        }
        if self.resource.allows(Verb::Create) {
            add(paths, &self.collection, self.create(&named, None));
        }
        if self.resource.allows(Verb::DeleteCollection) {
            let mut delete = self.delete(
                &format!("Collection{named}"),
                parameter::DELETE_COLLECTION,
                STATUS.into(),
            );
            delete.description = format!("delete collection of {kind}");
            delete.acts = self.acts("deletecollection", None);
            delete.statuses = &[200];
            add(paths, &self.collection, delete);
        }
    }

    fn add_object(&self, paths: &mut Paths<'a>) {
        let path = format!("{}/{{name}}", self.collection);
        let named = format!("{}{}", self.scoped, self.resource.kind);
        for verb in &self.resource.verbs {
            let operation = match verb {
                Verb::Get => self.read(&named, None),
                Verb::Update => self.replace(&named, None),
                Verb::Patch => self.patch(&named, None),
                Verb::Delete => {
                    let answer = if self.resource.answers_deleted_object() {
                        self.own(&self.resource.kind)
                    } else {
                        STATUS.into()
                    };
                    self.delete(&named, parameter::DELETE, answer)
                }
                Verb::Create | Verb::DeleteCollection | Verb::List | Verb::Watch => continue,
            };
            add(paths, &path, with(operation, NAME));
        }
    }

    fn add_subresource(&self, sub: &'a Subresource, paths: &mut Paths<'a>) {
        let path = format!("{}/{{name}}/{}", self.collection, sub.name);
        let named = format!(
            "{}{}{}",
            self.scoped,
            self.resource.kind,
            capitalized(&sub.name)
        );
        if connects(sub) {
            return self.add_connections(sub, &path, &named, paths);
        }
        for verb in &sub.verbs {
            let operation = match verb {
                Verb::Get => self.read(&named, Some(sub)),
                Verb::Update => self.replace(&named, Some(sub)),
                Verb::Patch => self.patch(&named, Some(sub)),
                Verb::Create => self.create(&named, Some(sub)),
                Verb::Delete | Verb::DeleteCollection | Verb::List | Verb::Watch => continue,
            };
            add(paths, &path, with(operation, NAME));
        }
    }

    fn add_connections(
        &self,
        sub: &'a Subresource,
        path: &str,
        named: &str,
        paths: &mut Paths<'a>,
    ) {
        let below = format!("{path}/{{path}}");
        for method in connection_methods(sub) {
            let name = format!("{}{named}", capitalized(method));
            let connection = self.connection(method, &name, sub);
            add(paths, path, with(connection, NAME));
            if &*sub.name == "proxy" {
                let connection = self.connection(method, &format!("{name}WithPath"), sub);
                add(paths, &below, with(with(connection, NAME), REST));
            }
        }
    }

    /// The deprecated paths that watch without a parameter. Custom resources never had them in their documents.
    fn add_watches(&self, root: &str, paths: &mut Paths<'a>) {
        if self.custom || !self.resource.allows(Verb::Watch) {
            return;
        }
        let (kind, plural) = (&*self.resource.kind, &*self.resource.plural);
        let collection = self.collection.replacen(root, &format!("{root}/watch"), 1);
        if self.resource.scope == Scope::Namespaced {
            let all = self.watch("watchlist", format!("{kind}ListForAllNamespaces"));
            let path = format!("{root}/watch/{plural}");
            add(paths, &path, without(all, NAMESPACE));
        }
        let list = self.watch("watchlist", format!("{}{kind}List", self.scoped));
        add(paths, &collection, list);
        let one = self.watch("watch", format!("{}{kind}", self.scoped));
        add(paths, &format!("{collection}/{{name}}"), with(one, NAME));
    }
}

/// Subresources whose kind is a set of options take any request and open a connection.
fn connects(sub: &Subresource) -> bool {
    sub.kind.ends_with("Options")
}

fn connection_methods(sub: &Subresource) -> &'static [&'static str] {
    match &*sub.name {
        "proxy" => &["delete", "get", "head", "options", "patch", "post", "put"],
        _ => &["get", "post"],
    }
}

fn with(mut operation: Operation<'_>, parameter: Parameter) -> Operation<'_> {
    if !operation.parameters.contains(&parameter) {
        operation.parameters.push(parameter);
    }
    operation
}

fn without(mut operation: Operation<'_>, parameter: Parameter) -> Operation<'_> {
    operation.parameters.retain(|p| *p != parameter);
    operation
}

fn add<'a>(paths: &mut Paths<'a>, path: &str, operation: Operation<'a>) {
    match paths.get_mut(path) {
        Some(path) => path.operations.push(operation),
        None => {
            let operations = vec![operation];
            let new = Path {
                operations,
                ..Path::default()
            };
            paths.insert(path.to_owned(), new);
        }
    }
}
