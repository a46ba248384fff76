//! `kubewright init`: a new project.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use kubewright_manifests::project::{Name, Project};
use kubewright_manifests::{Inventory, layout};
use serde_json::{Value, json};

use crate::folder::{FILE, Place};
use crate::scaffold::header::{self, Header, Licensing};
use crate::scaffold::plan::{Plan, read_text};
use crate::scaffold::templates::{CURRENT, Templates};
use crate::scaffold::transaction;
use crate::scaffold::writing::{Writing, Written};
use crate::sdk::Sdk;

/// What is written besides `config/`: the template, and where it goes.
pub(crate) const FILES: [(&str, &str); 13] = [
    ("project/Cargo.toml", "Cargo.toml"),
    ("project/Dockerfile", "Dockerfile"),
    ("project/Makefile", "Makefile"),
    ("project/README.md", "README.md"),
    ("project/api.rs", "src/api.rs"),
    ("project/cargo-config.toml", ".cargo/config.toml"),
    ("project/ci.yml", ".github/workflows/test.yml"),
    ("project/controller.rs", "src/controller.rs"),
    ("project/dockerignore", ".dockerignore"),
    ("project/gitignore", ".gitignore"),
    ("project/main.rs", "src/main.rs"),
    (
        "project/overlay.yaml",
        "config/overlays/example/kustomization.yaml",
    ),
    ("project/tests.rs", "src/tests.rs"),
];

/// Make a new project in this folder
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright init --domain example.com\n  \
    kubewright init --domain example.com --project-name guestbook --multigroup\n  \
    kubewright init --domain example.com --license apache2 --owner \"The Guestbook Authors\"\n  \
    kubewright init --domain example.com --dry-run --diff")]
pub(crate) struct Init {
    /// What the API groups of this project end with
    #[arg(long, default_value = "my.domain")]
    domain: String,

    /// The name of the project, and the beginning of the names of all deployed objects; without it that of the folder
    #[arg(long, value_name = "NAME")]
    project_name: Option<String>,

    /// Where the source will be kept
    #[arg(long, value_name = "URL")]
    repo: Option<String>,

    /// Put code into folders by group and version instead of by version
    #[arg(long)]
    multigroup: bool,

    /// Work in given namespaces instead of the whole cluster
    #[arg(long)]
    namespaced: bool,

    /// Where the toolkit comes from: version[=V], git[=URL] or path[=DIR]; without it where this program came from: the
    /// registry, the repository that cargo installed it from, or the checkout that it is run in
    #[arg(long, value_name = "FROM")]
    sdk: Option<Sdk>,

    #[command(flatten)]
    licensing: Licensing,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

impl Init {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let root = self.root()?;
        transaction::recover(&root)?;
        let project = self.project(&root)?;
        check_present(&root, &project)?;
        let existing = self.writing.existing();
        let mut plan = self.plan(&root)?;
        let values = values(&project, &self.source(), Templates::current());
        plan.write(FILE, project.to_text(), existing)?;
        for (template, path) in FILES {
            let text = Templates::current().render(template, &values)?;
            if path.ends_with(".rs") {
                plan.write(path, plan.headed(text), existing)?
            } else {
                plan.write(path, text, existing)?
            }
        }
        let settings = layout::Settings::default();
        for (path, text) in layout::files(&project, &Inventory::default(), &settings)? {
            plan.write(path, text, existing)?;
        }
        let written = self.writing.carry_out(&plan)?;
        if written == Written::Something {
            if let Some(note) = self.source().note() {
                eprintln!("\n{note}");
            }
            println!("\nNext: kubewright create api --group webapp --version v1 --kind Guestbook");
        }
        Ok(())
    }

    /// A plan with the header that is asked for, or else the one that is there.
    fn plan(&self, root: &Path) -> anyhow::Result<Plan> {
        let plan = Plan::new(root);
        match self.licensing.header()? {
            Header::Gone => Ok(plan),
            Header::Kept => {
                let present = read_text(&root.join(header::FILE))?;
                Ok(plan.header(&present.unwrap_or_default()))
            }
            Header::New(header) => {
                let mut plan = plan.header(&header);
                plan.write(header::FILE, header, self.writing.existing())?;
                Ok(plan)
            }
        }
    }

    fn root(&self) -> anyhow::Result<PathBuf> {
        let folder = match &self.place.folder {
            Some(folder) => std::path::absolute(folder)?,
            None => env::current_dir().context("the current folder cannot be found")?,
        };
        if folder.exists() && !folder.is_dir() {
            bail!("{} is not a folder", folder.display());
        }
        Ok(folder)
    }

    fn project(&self, root: &Path) -> anyhow::Result<Project> {
        let name = match &self.project_name {
            Some(name) => name.clone(),
            None => name_of(root),
        };
        Name::Project
            .check(&name)
            .with_context(|| match self.project_name {
                Some(_) => "--project-name".to_owned(),
                None => "the folder's name; give another with --project-name".to_owned(),
            })?;
        Name::Domain.check(&self.domain).context("--domain")?;
        let version = format!("v{}", env!("CARGO_PKG_VERSION"));
        let mut project = Project::new(&name, &self.domain, &version);
        project.set_scaffold(CURRENT);
        project.multigroup = self.multigroup;
        project.namespaced = self.namespaced;
        project.repo = self.repo.clone();
        Ok(project)
    }

    /// Where the toolkit comes from.
    fn source(&self) -> Sdk {
        self.sdk.clone().unwrap_or_else(Sdk::of_this_program)
    }
}

/// What the templates of a project are filled in with.
pub(crate) fn values(project: &Project, sdk: &Sdk, templates: Templates) -> Value {
    json!({
        "name": project.project_name,
        "rust_version": templates.rust_version,
        "sdk": sdk.values(),
    })
}

/// A project in the same place is only met by the command that made it.
fn check_present(root: &Path, project: &Project) -> anyhow::Result<()> {
    let Some(text) = read_text(&root.join(FILE))? else {
        return Ok(());
    };
    if text != project.to_text() {
        bail!(
            "{} is a project already. Change it with: kubewright edit, or kubewright create api",
            root.display()
        );
    }
    Ok(())
}

/// The name of a folder as that of a project.
fn name_of(root: &Path) -> String {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    name.to_lowercase().replace(['_', ' ', '.'], "-")
}
