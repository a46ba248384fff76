//! All files of a project as a scaffold writes them, from `PROJECT` alone and without touching a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use kubewright_manifests::project::{Project, Resource};

use crate::create;
use crate::init;
use crate::scaffold::moves;
use crate::scaffold::plan::{Existing, Plan};
use crate::scaffold::site::Site;
use crate::scaffold::templates::Templates;
use crate::sdk::Sdk;

/// What `init` and `create` write for a project with these templates, in each of the ways in which that can be: `PROJECT` does
/// not say what a controller could tell its users. License headers are left out.
///
/// # Errors
/// When a template cannot be filled in.
pub(crate) fn files(
    templates: Templates,
    project: &Project,
    sdk: &Sdk,
) -> anyhow::Result<Vec<BTreeMap<PathBuf, String>>> {
    let mut by_resource = Vec::new();
    for resource in &project.resources {
        by_resource.push(create::scaffolded(templates, project, resource)?);
    }
    let count = by_resource.iter().map(Vec::len).max().unwrap_or(1);
    (0..count)
        .map(|way| {
            let mut plan = Plan::of_nothing();
            project_files(templates, project, sdk, &mut plan)?;
            for (resource, ways) in project.resources.iter().zip(&by_resource) {
                if let Some(files) = ways.get(way) {
                    add(project, resource, files, &mut plan)?;
                }
            }
            finish(project, &mut plan)?;
            let written = plan.changes().iter();
            let texts =
                written.filter_map(|(path, it)| Some((path.clone(), it.after()?.to_owned())));
            Ok(texts.collect())
        })
        .collect()
}

/// What `init` writes, besides what is generated.
fn project_files(
    templates: Templates,
    project: &Project,
    sdk: &Sdk,
    plan: &mut Plan,
) -> anyhow::Result<()> {
    let values = init::values(project, sdk, templates);
    for (template, path) in init::FILES {
        if templates.has(template) {
            let text = templates.render(template, &values)?;
            plan.write(path, text, Existing::Replace)?;
        }
    }
    if project.resources.iter().any(|it| it.webhooks.is_some()) {
        create::webhook::add_base(plan)?;
    }
    Ok(())
}

/// The files of a kind, and the lines that lead to them.
fn add(
    project: &Project,
    resource: &Resource,
    files: &BTreeMap<PathBuf, String>,
    plan: &mut Plan,
) -> anyhow::Result<()> {
    let mut left: BTreeSet<&PathBuf> = files.keys().collect();
    for site in moves::sites(project, resource) {
        let file = site.file();
        if let Some(text) = files.get(&file) {
            left.remove(&file);
            site.add(plan, text.clone(), Existing::Replace)?;
        }
    }
    for path in left {
        plan.write(path, files[path].clone(), Existing::Replace)?;
    }
    Ok(())
}

/// What a kind's files say of its other versions.
fn finish(project: &Project, plan: &mut Plan) -> anyhow::Result<()> {
    let mut seen: Vec<&Resource> = Vec::new();
    for resource in project.resources.iter().filter(|it| it.api.is_some()) {
        let first = seen
            .iter()
            .find(|it| (&it.group, &it.kind) == (&resource.group, &resource.kind));
        let file = Site::api(project, resource).file();
        if first.is_some() && plan.read(&file)?.is_some() {
            plan.edit(file, |text| {
                create::version::not_stored(text, &resource.version)
            })?;
        } else {
            seen.push(resource);
        }
    }
    for resource in &project.resources {
        if let Some(flags) = resource.webhooks.as_ref().filter(|it| it.conversion) {
            create::webhook::declare_conversion(plan, project, resource, flags)?;
        }
    }
    Ok(())
}
