//! `kubewright edit`: settings of a project.

use anyhow::bail;
use clap::{ArgAction, Args};

use crate::folder::Place;
use crate::scaffold::writing::{Writing, Written};

/// Change settings of a project
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright edit --image registry.example.com/guestbook:1.0\n  \
    kubewright edit --prometheus=true\n  \
    kubewright edit --namespaced --watch-namespace team-a --watch-namespace team-b")]
pub(crate) struct Edit {
    /// Put code of kinds that are created from now on into folders by group
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    multigroup: Option<bool>,

    /// Work in given namespaces instead of the whole cluster
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespaced: Option<bool>,

    /// The namespaces of a namespaced project; without any, its own
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    watch_namespace: Option<Vec<String>>,

    /// The manager's image
    #[arg(long)]
    image: Option<String>,

    /// Whether a ServiceMonitor is deployed
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    prometheus: Option<bool>,

    /// Whether a NetworkPolicy is deployed
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    network_policy: Option<bool>,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

impl Edit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut folder = self.place.open()?;
        let project = &mut folder.project;
        if self
            .multigroup
            .is_some_and(|on| on != project.multigroup && !project.resources.is_empty())
        {
            bail!(
                "there are kinds already, and their files would have to move: --multigroup can be changed \
                 as long as there are none"
            );
        }
        project.multigroup = self.multigroup.unwrap_or(project.multigroup);
        project.namespaced = self.namespaced.unwrap_or(project.namespaced);
        let mut options = project.options();
        options.image = self.image.clone().or(options.image);
        options.prometheus = self.prometheus.unwrap_or(options.prometheus);
        if let Some(on) = self.network_policy {
            options.without_network_policy = !on;
        }
        if let Some(namespaces) = &self.watch_namespace {
            options.watch_namespaces = namespaces.clone();
        }
        project.set_options(&options);
        let mut plan = folder.plan();
        folder.save(&mut plan)?;
        if self.writing.carry_out(&plan)? == Written::Something {
            println!("\nNext: kubewright generate");
        }
        Ok(())
    }
}
