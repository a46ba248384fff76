//! Where code of a project lives: a chain of modules below `src/api` or `src/controller`.

use std::path::PathBuf;

use kubewright_manifests::project::{Project, Resource};

use super::modules;
use super::plan::{Existing, Plan};

/// A chain of modules, the last of which is the code itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    base: &'static str,
    modules: Vec<Module>,
}

/// A module and what its file says of itself, as long as it only holds others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Module {
    name: String,
    about: String,
}

impl Site {
    /// The type of a kind.
    pub(crate) fn api(project: &Project, resource: &Resource) -> Self {
        let version = Module::new(&resource.version, format!("Version {}.", resource.version));
        Self::below("api", project, resource, vec![version], &resource.module())
    }

    /// A controller of a kind.
    pub(crate) fn controller(project: &Project, resource: &Resource, name: &str) -> Self {
        Self::below("controller", project, resource, Vec::new(), name)
    }

    /// The webhooks of a kind.
    pub(crate) fn webhook(project: &Project, resource: &Resource) -> Self {
        let version = Module::new(&resource.version, format!("Version {}.", resource.version));
        Self::below(
            "webhook",
            project,
            resource,
            vec![version],
            &resource.module(),
        )
    }

    fn below(
        base: &'static str,
        project: &Project,
        resource: &Resource,
        between: Vec<Module>,
        leaf: &str,
    ) -> Self {
        let mut modules = Vec::new();
        if project.multigroup {
            let group = match resource.group.as_str() {
                "" => "core",
                group => group,
            };
            modules.push(Module::new(group, format!("Group {group}.")));
        }
        modules.extend(between);
        modules.push(Module::new(leaf, String::new()));
        Self { base, modules }
    }

    /// The file of the code.
    pub(crate) fn file(&self) -> PathBuf {
        self.file_of(self.modules.len())
    }

    /// A file beside it that belongs to it, such as its tests.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.file().with_extension("").join(name)
    }

    /// The code as Rust calls it from anywhere in the project.
    pub(crate) fn path(&self) -> String {
        let names = self.modules.iter().map(|module| module.name.as_str());
        let parts: Vec<&str> = ["crate", self.base].into_iter().chain(names).collect();
        parts.join("::")
    }

    /// The folder that the code is in, as `PROJECT` says it.
    pub(crate) fn folder(&self) -> String {
        let file = self.file();
        let folder = file.parent().map(|folder| folder.display().to_string());
        folder.unwrap_or_default()
    }

    /// The file of the module at this depth; the one of the base at none.
    fn file_of(&self, depth: usize) -> PathBuf {
        let mut path = PathBuf::from("src").join(self.base);
        path.extend(self.modules[..depth].iter().map(|module| &module.name));
        path.with_extension("rs")
    }

    /// Plans the code as it is, and the lines that lead to it.
    pub(crate) fn add(
        &self,
        plan: &mut Plan,
        code: String,
        existing: Existing,
    ) -> anyhow::Result<()> {
        for (depth, module) in self.modules.iter().enumerate() {
            let file = self.file_of(depth);
            if depth > 0 && plan.read(&file)?.is_none() {
                let about = plan.headed(format!("//! {}\n", self.modules[depth - 1].about));
                plan.write(&file, about, Existing::Refuse)?;
            }
            plan.edit(&file, |text| modules::with(text, &module.name))?;
        }
        plan.write(self.file(), code, existing)
    }

    /// Plans that the code goes, the lines that lead to it, and modules that were there only for it.
    pub(crate) fn remove(&self, plan: &mut Plan) -> anyhow::Result<()> {
        plan.delete(self.file())?;
        for depth in (0..self.modules.len()).rev() {
            let file = self.file_of(depth);
            let Some(text) = plan.read(&file)? else {
                continue;
            };
            let text = modules::without(&text, &self.modules[depth].name);
            if depth == 0 || !modules::is_empty(plan.bare(&text)) {
                plan.write(&file, text, Existing::Replace)?;
                break;
            }
            plan.delete(&file)?;
        }
        Ok(())
    }
}

impl Module {
    fn new(name: &str, about: String) -> Self {
        Self {
            name: name.replace(['-', '.'], "_"),
            about,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaffold::transaction::commit;

    fn resource(group: &str, version: &str, kind: &str) -> Resource {
        Resource {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            ..Resource::default()
        }
    }

    #[test]
    fn code_is_found_by_version_or_by_group_and_version() {
        let mut project = Project::new("p", "example.com", "v0");
        let captain = resource("crew", "v1", "Captain");
        let site = Site::api(&project, &captain);
        assert_eq!(site.file(), PathBuf::from("src/api/v1/captain.rs"));
        assert_eq!(site.path(), "crate::api::v1::captain");
        project.multigroup = true;
        let site = Site::api(&project, &resource("foo.policy", "v1", "Rule"));
        assert_eq!(site.file(), PathBuf::from("src/api/foo_policy/v1/rule.rs"));
        let site = Site::controller(&project, &captain, "captain-backup");
        assert_eq!(
            site.beside("tests.rs"),
            PathBuf::from("src/controller/crew/captain_backup/tests.rs")
        );
    }

    #[test]
    fn what_is_added_and_removed_leaves_no_difference() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let src = folder.path().join("src");
        std::fs::create_dir(&src).expect("it can be made");
        std::fs::write(src.join("api.rs"), "//! Kinds.\n").expect("it can be written");
        let project = Project::new("p", "example.com", "v0");
        let sites = [("v1", "A"), ("v1", "B"), ("v2", "A")]
            .map(|(version, kind)| Site::api(&project, &resource("g", version, kind)));
        for site in &sites {
            let mut plan = Plan::new(folder.path());
            site.add(&mut plan, "code\n".into(), Existing::Refuse)
                .expect("it is planned");
            commit(&plan).expect("it works");
        }
        let text = std::fs::read_to_string(src.join("api/v1.rs")).expect("it is there");
        assert_eq!(text, "//! Version v1.\n\npub mod a;\npub mod b;\n");
        for site in &sites {
            let mut plan = Plan::new(folder.path());
            site.remove(&mut plan).expect("it is planned");
            commit(&plan).expect("it works");
        }
        assert!(!src.join("api").exists());
        let text = std::fs::read_to_string(src.join("api.rs")).expect("it is there");
        assert_eq!(text, "//! Kinds.\n");
    }
}
