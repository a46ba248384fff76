//! The code of a kind and its controllers, as templates write it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kubewright_manifests::project::{Project, Resource};
use serde_json::{Value, json};

use super::foreign::{self, Foreign};
use super::{article, camel, snake};
use crate::scaffold::site::Site;
use crate::scaffold::templates::render;

/// What the controller of a kind of one's own tells its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// A condition in the status, and an event.
    Status,
    /// Nothing: the status of the kind has no place for it.
    Nothing,
}

/// What the template of a type is filled in with.
pub(super) fn kind_values(resource: &Resource) -> Value {
    json!({
        "group": resource.qualified_group(),
        "version": resource.version,
        "kind": resource.kind,
        "plural": resource.plural,
        "namespaced": resource.is_namespaced(),
    })
}

/// What the templates of a controller and its tests are filled in with.
pub(super) fn controller_values(
    resource: &Resource,
    name: &str,
    type_path: &Foreign,
    report: Report,
) -> Value {
    let usual = resource.kind.to_ascii_lowercase();
    let finalizer = if name == usual {
        "finalizer".to_owned()
    } else {
        format!("{name}-finalizer")
    };
    let reconciler = if name == usual {
        format!("{}Reconciler", resource.kind)
    } else {
        format!("{}Reconciler", camel(name))
    };
    json!({
        "group": resource.qualified_group(),
        "kind": resource.kind,
        "article": article(&resource.kind),
        "namespaced": resource.is_namespaced(),
        "controller": name,
        "function": snake(name),
        "finalizer": finalizer,
        "reconciler": reconciler,
        "reports": report == Report::Status,
        "api_path": type_path.path(),
        "type_path": type_path.path(),
        "origin": if resource.core { "Kubernetes" } else { "somebody else" },
    })
}

/// The type and the controllers of a kind, as they are written when it is created.
pub(super) fn scaffolded(
    project: &Project,
    resource: &Resource,
    report: Report,
) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    let own = Site::api(project, resource);
    let type_path = match resource.api {
        Some(_) => {
            files.insert(own.file(), render("api/kind.rs", kind_values(resource))?);
            Foreign::Own(own.path())
        }
        None => foreign::find(resource, None, || Some(own.path()))?,
    };
    for name in resource.controller_names() {
        let site = Site::controller(project, resource, &name);
        let values = controller_values(resource, &name, &type_path, report);
        let Foreign::Own(_) = type_path else {
            files.insert(site.file(), render("api/foreign_controller.rs", &values)?);
            continue;
        };
        files.insert(site.file(), render("api/controller.rs", &values)?);
        let tests = render("api/controller_tests.rs", &values)?;
        files.insert(site.beside("tests.rs"), tests);
        let simulation = render("api/controller_simulation.rs", &values)?;
        files.insert(site.beside("simulation.rs"), simulation);
    }
    Ok(files)
}
