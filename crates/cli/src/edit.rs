//! `kubewright edit`: settings of a project.

mod relocate;

use clap::{ArgAction, Args, ValueEnum};
use kubewright_manifests::project::CertificateSource;

use crate::folder::{Folder, Place};
use crate::scaffold::header::{self, Header, Licensing};
use crate::scaffold::plan::{Existing, Plan};
use crate::scaffold::writing::{Writing, Written};

/// Change settings of a project
///
/// With --multigroup, the code of all kinds moves to where the other layout has it, and the paths that lead to it change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright edit --image registry.example.com/guestbook:1.0\n  \
    kubewright edit --prometheus=true\n  \
    kubewright edit --certificates cert-manager\n  \
    kubewright edit --multigroup --diff --dry-run\n  \
    kubewright edit --license apache2 --owner \"The Guestbook Authors\"\n  \
    kubewright edit --namespaced --watch-namespace team-a --watch-namespace team-b")]
pub(crate) struct Edit {
    /// Put code into folders by group and version instead of by version
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

    /// Whether admission webhooks and conversions are deployed
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    webhooks: Option<bool>,

    /// Whether a Helm chart is generated, in dist/chart
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    helm: Option<bool>,

    /// Whether a bundle for the Operator Lifecycle Manager is generated, in dist/bundle
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    olm: Option<bool>,

    /// Whether a Grafana dashboard is generated, in dist/grafana
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    grafana: Option<bool>,

    /// Who makes the certificates of webhooks and metrics
    #[arg(long, value_enum, value_name = "SOURCE")]
    certificates: Option<Certificates>,

    #[command(flatten)]
    licensing: Licensing,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

/// Who makes the certificates of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Certificates {
    /// the manager itself, in a Secret that its replicas share
    Manager,
    /// cert-manager, which the cluster has to have
    CertManager,
    /// somebody who puts them into Secrets
    Secret,
}

impl From<Certificates> for CertificateSource {
    fn from(source: Certificates) -> Self {
        match source {
            Certificates::Manager => Self::Manager,
            Certificates::CertManager => Self::CertManager,
            Certificates::Secret => Self::Secret,
        }
    }
}

impl Edit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut folder = self.place.open_to_change()?;
        let mut plan = folder.plan()?;
        if let Some(multigroup) = self.multigroup
            && multigroup != folder.project.multigroup
        {
            relocate::all(&mut folder, multigroup, &mut plan)?;
        }
        self.settle(&mut folder);
        self.license(&mut plan)?;
        folder.save(&mut plan)?;
        if self.writing.carry_out(&plan)? == Written::Something {
            println!("\nNext: kubewright generate");
        }
        Ok(())
    }

    /// What `PROJECT` says from now on.
    fn settle(&self, folder: &mut Folder) {
        let project = &mut folder.project;
        project.namespaced = self.namespaced.unwrap_or(project.namespaced);
        let mut options = project.options();
        options.image = self.image.clone().or(options.image);
        options.prometheus = self.prometheus.unwrap_or(options.prometheus);
        options.helm = self.helm.unwrap_or(options.helm);
        options.olm = self.olm.unwrap_or(options.olm);
        options.grafana = self.grafana.unwrap_or(options.grafana);
        if let Some(on) = self.network_policy {
            options.without_network_policy = !on;
        }
        if let Some(on) = self.webhooks {
            options.without_webhooks = !on;
        }
        if let Some(source) = self.certificates {
            options.certificates = source.into();
        }
        if let Some(namespaces) = &self.watch_namespace {
            options.watch_namespaces = namespaces.clone();
        }
        project.set_options(&options);
    }

    /// The header of files that are created from now on. Those that are there are people's own.
    fn license(&self, plan: &mut Plan) -> anyhow::Result<()> {
        match self.licensing.header()? {
            Header::Kept => Ok(()),
            Header::Gone => plan.delete(header::FILE),
            Header::New(header) => plan.write(header::FILE, header, Existing::Replace),
        }
    }
}
