//! The names under which this program is a part of a control plane: it looks at what it was called.

use std::path::Path;

use anyhow::Context as _;

use crate::flags::Flags;
use crate::{etcd, kube_apiserver};

/// A program of a control plane that this one can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    ApiServer,
    Etcd,
}

impl Role {
    /// All of them, in the order in which they are started.
    pub(crate) const ALL: [Self; 2] = [Self::Etcd, Self::ApiServer];

    /// The role that goes with the name of a program.
    pub(crate) fn of(program: &Path) -> Option<Self> {
        let name = program.file_stem()?.to_str()?;
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// What the program is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ApiServer => "kube-apiserver",
            Self::Etcd => "etcd",
        }
    }

    /// Plays the role until a signal ends it.
    pub(crate) fn play(self, arguments: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        let flags = Flags::parse(arguments);
        if flags.is_on("help") || flags.is_on("h") {
            print!("{}", self.help());
            return Ok(());
        }
        if flags.is_on("version") {
            println!("{}", self.version());
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime could not be started")?;
        match self {
            Self::ApiServer => runtime.block_on(kube_apiserver::run(&flags)),
            Self::Etcd => runtime.block_on(etcd::run(&flags)),
        }
    }

    fn help(self) -> String {
        let (what, known) = match self {
            Self::ApiServer => ("The API server of kubewright", kube_apiserver::KNOWN),
            Self::Etcd => ("Stands where an etcd is expected", etcd::KNOWN),
        };
        let mut text = format!(
            "{what}, as `kubewright envtest` writes it.\n\nFlags:\n      --help\n      --version\n"
        );
        for flag in known {
            text.push_str(&format!("      --{flag}\n"));
        }
        text.push_str("\nOther flags are accepted and have no effect.\n");
        text
    }

    fn version(self) -> String {
        match self {
            Self::ApiServer => format!("Kubernetes v1.{}.0", kubewright_server::KUBERNETES_MINOR),
            Self::Etcd => format!("etcd Version: {}", etcd::VERSION),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_is_its_role() {
        for (program, role) in [
            ("/a/bin/kube-apiserver", Some(Role::ApiServer)),
            ("etcd", Some(Role::Etcd)),
            ("/usr/bin/kubewright", None),
            ("etcdctl", None),
            ("", None),
        ] {
            assert_eq!(Role::of(Path::new(program)), role, "{program}");
        }
    }

    #[test]
    fn help_names_no_flag_that_old_servers_had() {
        // envtest asks for this one and changes what it passes when it is there.
        assert!(!Role::ApiServer.help().contains("--insecure-port"));
    }
}
