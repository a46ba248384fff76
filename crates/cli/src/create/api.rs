//! `kubewright create api`: a kind and its controller.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{ArgAction, Args};
use kubewright_manifests::project::{ApiFlags, Name, NamedController, Resource};

use super::code::{self, Report};
use super::foreign::{self, Foreign};
use super::image::Image;
use super::{Kind, article};
use crate::folder::{Folder, Place};
use crate::generate;
use crate::scaffold::plan::Plan;
use crate::scaffold::site::Site;
use crate::scaffold::templates::Templates;
use crate::scaffold::writing::{Writing, Written};

/// Add a kind to a project: its type, and a controller for it
///
/// Everything is added: files of its own and one `mod` line for each. Without --make=false the program is then built once,
/// and config/ written from it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright create api --group webapp --version v1 --kind Guestbook\n  \
    kubewright create api --group crew --version v1 --kind Admiral --namespaced=false --plural admirales\n  \
    kubewright create api --group cache --version v1 --kind Memcached --image memcached:1.6-alpine \\\n      \
    --image-container-port 11211 --run-as-user 1001 --image-container-command memcached,--memory-limit=64\n  \
    kubewright create api --group webapp --version v1 --kind Page --from-crd pages.yaml\n  \
    kubewright create api --group apps --version v1 --kind Deployment --resource=false\n  \
    kubewright create api --group cert-manager --version v1 --kind Certificate --resource=false \\\n      \
    --external-api-domain io --from-crd certificates.yaml\n  \
    kubewright create api --group crew --version v1 --kind Captain --resource=false --controller-name captain-backup")]
pub(crate) struct CreateApi {
    #[command(flatten)]
    kind: Kind,

    /// The plural, if it is irregular
    #[arg(long)]
    plural: Option<String>,

    /// Whether objects live in namespaces
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    namespaced: bool,

    /// Whether the type is written; without it the kind is one of Kubernetes or of somebody else
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    resource: bool,

    /// The same as --resource=false
    #[arg(long)]
    no_resource: bool,

    /// Whether a controller is written
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    controller: bool,

    /// The same as --controller=false
    #[arg(long)]
    no_controller: bool,

    /// The name of the controller; a kind can have many
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,

    /// Where the type of somebody else is, as Rust calls it: cert_manager::Certificate
    #[arg(long, value_name = "PATH", conflicts_with = "from_crd")]
    external_api_path: Option<String>,

    /// What the group of somebody else's kind ends with
    #[arg(long, value_name = "DOMAIN")]
    external_api_domain: Option<String>,

    /// Write the type from this CustomResourceDefinition: as a kind of your own, or of somebody else with --resource=false
    #[arg(long, value_name = "FILE")]
    from_crd: Option<PathBuf>,

    #[command(flatten)]
    image: Image,

    /// Build the program and generate config/ afterwards
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    make: bool,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

impl CreateApi {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.check()?;
        let mut folder = self.place.open_to_change()?;
        let mut plan = folder.plan()?;
        let resource = self.resource_of(&folder)?;
        if self.is_there(&folder) && !self.writing.force {
            println!("{} is there already; nothing was written.", self.kind.kind);
            return Ok(());
        }
        let type_path = self.plan_type(&folder, &resource, &mut plan)?;
        if self.wants_controller() {
            self.plan_controller(&folder, &resource, type_path, &mut plan)?;
        }
        self.register(&mut folder, resource);
        folder.save(&mut plan)?;
        let written = self.writing.carry_out(&plan)?;
        if written == Written::Something && self.make {
            generate::after_scaffold(&folder)?;
        }
        if written == Written::Something {
            self.advise(&folder);
        }
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        self.kind.check()?;
        if let Some(plural) = &self.plural {
            Name::Plural.check(plural).context("--plural")?;
        }
        if let Some(name) = &self.controller_name {
            Name::Controller.check(name).context("--controller-name")?;
        }
        if !self.wants_resource() && !self.wants_controller() {
            bail!("neither a type nor a controller is asked for: there is nothing to create");
        }
        if self.wants_resource() && self.external_api_path.is_some() {
            bail!("--external-api-path is for types of others: add --resource=false");
        }
        if self.image.flags()?.is_some() {
            self.check_image()?;
        }
        Ok(())
    }

    /// Whether a kind that runs an image can be made with the other flags.
    fn check_image(&self) -> anyhow::Result<()> {
        if !self.wants_resource() || !self.wants_controller() {
            bail!(
                "--image writes a type and its controller: leave --resource and --controller out"
            );
        }
        if self.controller_name.is_some() {
            bail!("--image writes the controller of the kind: add one of another name afterwards");
        }
        if !self.namespaced {
            bail!("--image needs objects that live in namespaces, as their Deployments do");
        }
        Ok(())
    }

    fn wants_resource(&self) -> bool {
        self.resource && !self.no_resource
    }

    fn wants_controller(&self) -> bool {
        self.controller && !self.no_controller
    }

    /// The controller's name: its own, or that of the kind.
    fn controller_name(&self) -> String {
        let usual = || self.kind.kind.to_ascii_lowercase();
        self.controller_name.clone().unwrap_or_else(usual)
    }

    /// What `PROJECT` will say of the kind, without its controllers.
    fn resource_of(&self, folder: &Folder) -> anyhow::Result<Resource> {
        let known = folder
            .project
            .find(&self.kind.group, &self.kind.version, &self.kind.kind);
        if let Some(known) = known.filter(|_| !self.wants_resource()) {
            return Ok(known.clone());
        }
        let mut resource = Resource {
            group: self.kind.group.clone(),
            version: self.kind.version.clone(),
            kind: self.kind.kind.clone(),
            domain: folder.project.domain.clone(),
            plural: self.plural.clone(),
            ..Resource::default()
        };
        if self.wants_resource() {
            if self.kind.group.is_empty() {
                bail!("--group is missing; kinds of one's own have one");
            }
            resource.api = Some(ApiFlags {
                crd_version: "v1".to_owned(),
                namespaced: self.namespaced,
                ..ApiFlags::default()
            });
            resource.path = Some(Site::api(&folder.project, &resource).folder());
            resource.deploy_image = self.image.flags()?;
            if let Some(file) = &self.from_crd {
                foreign::adopt(file, &mut resource)?;
            }
            return Ok(resource);
        }
        match foreign::core_module(&self.kind.group) {
            Some(_) => {
                resource.core = true;
                resource.domain = foreign::core_domain(&self.kind.group).to_owned();
            }
            None => {
                resource.external = true;
                resource.domain = self.external_api_domain.clone().unwrap_or_default();
            }
        }
        Ok(resource)
    }

    /// Whether all that is asked for was created before.
    fn is_there(&self, folder: &Folder) -> bool {
        let known = folder
            .project
            .find(&self.kind.group, &self.kind.version, &self.kind.kind);
        known.is_some_and(|known| {
            let typed = !self.wants_resource() || known.api.is_some();
            typed && (!self.wants_controller() || self.has_controller(known))
        })
    }

    fn has_controller(&self, known: &Resource) -> bool {
        match &self.controller_name {
            Some(name) => known
                .controllers
                .iter()
                .any(|controller| controller.name == *name),
            None => known.controller,
        }
    }

    /// Plans the type, if it is asked for, and says where it is.
    fn plan_type(
        &self,
        folder: &Folder,
        resource: &Resource,
        plan: &mut Plan,
    ) -> anyhow::Result<Foreign> {
        let site = Site::api(&folder.project, resource);
        let known = folder
            .project
            .find(&resource.group, &resource.version, &resource.kind);
        if self.wants_resource() && known.is_none_or(|known| known.api.is_none()) {
            let code = match &self.from_crd {
                Some(file) => foreign::own_types(file, resource)?,
                None => code::kind(Templates::current(), resource)?,
            };
            site.add(plan, plan.headed(code), self.writing.existing())?;
        }
        if resource.api.is_some() {
            return Ok(Foreign::Own(site.path()));
        }
        if let Some(file) = &self.from_crd {
            let code = plan.headed(foreign::types(file, resource)?);
            site.add(plan, code, self.writing.existing())?;
            return Ok(Foreign::External(format!(
                "{}::{}",
                site.path(),
                resource.kind
            )));
        }
        foreign::find(resource, self.external_api_path.as_deref(), || {
            (plan.read(&site.file()).ok().flatten()).map(|_| site.path())
        })
    }

    fn plan_controller(
        &self,
        folder: &Folder,
        resource: &Resource,
        type_path: Foreign,
        plan: &mut Plan,
    ) -> anyhow::Result<()> {
        let name = self.controller_name();
        let site = Site::controller(&folder.project, resource, &name);
        let report = self.report(resource)?;
        let written = code::controller(Templates::current(), resource, &name, &type_path, report)?;
        let existing = self.writing.existing();
        site.add(plan, plan.headed(written.code), existing)?;
        for (name, text) in written.beside {
            plan.write(site.beside(name), plan.headed(text), existing)?;
        }
        Ok(())
    }

    /// What the controller can tell: everything, unless the type is from a definition that has no place for it.
    fn report(&self, resource: &Resource) -> anyhow::Result<Report> {
        match &self.from_crd {
            Some(file) => foreign::report(file, resource),
            None => Ok(Report::Status),
        }
    }

    /// Notes in `PROJECT` what there is now.
    fn register(&self, folder: &mut Folder, resource: Resource) {
        let kind = &self.kind;
        if folder
            .find_mut(&kind.group, &kind.version, &kind.kind)
            .is_none()
        {
            folder.project.resources.push(resource.clone());
        }
        let Some(known) = folder.find_mut(&kind.group, &kind.version, &kind.kind) else {
            return;
        };
        if known.api.is_none() {
            known.api = resource.api;
            known.path = resource.path;
            known.deploy_image = resource.deploy_image;
        }
        if !self.wants_controller() {
            return;
        }
        match &self.controller_name {
            None => known.controller = true,
            Some(name) if !self.has_controller(known) => {
                known
                    .controllers
                    .push(NamedController { name: name.clone() });
            }
            Some(_) => {}
        }
    }

    fn advise(&self, folder: &Folder) {
        let kind = &self.kind.kind;
        println!();
        if let Some(resource) = folder
            .project
            .find(&self.kind.group, &self.kind.version, kind)
            && resource.api.is_some()
        {
            let file = Site::api(&folder.project, resource).file();
            println!(
                "Next: say what {} {kind} is in {}, then",
                article(kind),
                folder.shown(&file)
            );
        } else {
            println!("Next:");
        }
        println!("  kubewright generate     writes config/ from the program");
        println!("  cargo test              runs it on a cluster in the process");
        println!("  kubewright simulate     runs it through every single fault");
        println!("  kubewright dev          runs it on a cluster that you can try");
    }
}
