//! The code of a kind and its controllers, as templates write it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kubewright_manifests::project::{Project, Resource};
use serde_json::{Value, json};

use super::foreign::{self, Foreign};
use super::{article, camel, image, snake};
use crate::scaffold::site::Site;
use crate::scaffold::templates::Templates;

/// What the controller of a kind of one's own tells its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// A condition in the status, and an event.
    Status,
    /// Nothing: the status of the kind has no place for it.
    Nothing,
}

/// The type of a kind, as it is written when it is created.
pub(super) fn kind(templates: Templates, resource: &Resource) -> anyhow::Result<String> {
    let mut values = json!({
        "group": resource.qualified_group(),
        "version": resource.version,
        "kind": resource.kind,
        "plural": resource.plural,
        "namespaced": resource.is_namespaced(),
    });
    match &resource.deploy_image {
        Some(flags) => {
            image::add_values(flags, &mut values);
            templates.render("api/image_kind.rs", values)
        }
        None => templates.render("api/kind.rs", values),
    }
}

/// What the templates of a controller and its tests are filled in with.
fn controller_values(
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
        "container": resource.module(),
        "origin": if resource.core { "Kubernetes" } else { "somebody else" },
    })
}

/// A controller of a kind: its own text, and the files beside it by name.
pub(super) struct ControllerCode {
    pub(super) code: String,
    pub(super) beside: Vec<(&'static str, String)>,
}

/// A controller of a kind, as it is written when it is created.
pub(super) fn controller(
    templates: Templates,
    resource: &Resource,
    name: &str,
    type_path: &Foreign,
    report: Report,
) -> anyhow::Result<ControllerCode> {
    let mut values = controller_values(resource, name, type_path, report);
    let Foreign::Own(_) = type_path else {
        let code = templates.render("api/foreign_controller.rs", &values)?;
        let beside = Vec::new();
        return Ok(ControllerCode { code, beside });
    };
    // The kind's own controller runs the image; others of it begin as any.
    let is_usual = name == resource.module();
    let prefix = match &resource.deploy_image {
        Some(flags) if is_usual => {
            image::add_values(flags, &mut values);
            "api/image_controller"
        }
        _ => "api/controller",
    };
    let render = |suffix: &str| templates.render(&format!("{prefix}{suffix}.rs"), &values);
    Ok(ControllerCode {
        code: render("")?,
        beside: vec![
            ("tests.rs", render("_tests")?),
            ("simulation.rs", render("_simulation")?),
        ],
    })
}

/// The type and the controllers of a kind, as they are written when it is created.
pub(super) fn scaffolded(
    templates: Templates,
    project: &Project,
    resource: &Resource,
    report: Report,
) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    let own = Site::api(project, resource);
    let type_path = match resource.api {
        Some(_) => {
            files.insert(own.file(), kind(templates, resource)?);
            Foreign::Own(own.path())
        }
        None => foreign::find(resource, None, || Some(own.path()))?,
    };
    for name in resource.controller_names() {
        let site = Site::controller(project, resource, &name);
        let written = controller(templates, resource, &name, &type_path, report)?;
        files.insert(site.file(), written.code);
        for (name, text) in written.beside {
            files.insert(site.beside(name), text);
        }
    }
    Ok(files)
}
