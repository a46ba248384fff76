//! Flags of `kubewright up` for containers that run as processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::image::StorePlace;
use kubewright_cluster::LoopbackNetwork;
use kubewright_process::{ImageTable, Namespaces, ProcessRuntime, Processes};

/// How containers are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Simulated,
    Process,
}

#[derive(Debug, Args)]
pub(super) struct ProcessFlags {
    /// How containers run: simulated, or as processes of this machine (Linux only)
    #[arg(long, value_enum, default_value_t = Kind::Simulated)]
    runtime: Kind,

    /// A program of this machine that stands for images, with --runtime process; may be repeated
    ///
    /// The pattern may have `*` for any text. What follows the program are the arguments of containers that give none;
    /// $(POD_IP), $(POD_NAME) and other variables of the container are replaced in them.
    #[arg(long, value_name = "PATTERN=PROGRAM")]
    image: Vec<String>,

    /// File with a list of images and their programs in YAML: image, command, args, env
    #[arg(long, value_name = "FILE")]
    images: Option<PathBuf>,

    #[command(flatten)]
    store: StorePlace,

    /// Whether containers have namespaces of their own, with --runtime process: where the kernel allows it, or never
    #[arg(long, value_enum, default_value_t = NamespaceMode::Auto)]
    namespaces: NamespaceMode,
}

/// Whether containers get namespaces of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NamespaceMode {
    Auto,
    Off,
}

impl From<NamespaceMode> for Namespaces {
    fn from(mode: NamespaceMode) -> Self {
        match mode {
            NamespaceMode::Auto => Self::Auto,
            NamespaceMode::Off => Self::Off,
        }
    }
}

impl ProcessFlags {
    /// Whether containers run as processes of this machine.
    pub(super) fn is_process(&self) -> bool {
        self.runtime == Kind::Process
    }

    /// The runtime that was asked for; nothing for the simulated one.
    pub(super) fn runtime(
        &self,
        data_dir: Option<&Path>,
        network: Option<&LoopbackNetwork>,
    ) -> anyhow::Result<Option<Arc<ProcessRuntime>>> {
        if !self.is_process() {
            let given = self.images.is_some() || !self.image.is_empty();
            anyhow::ensure!(!given, "--image and --images need --runtime process");
            return Ok(None);
        }
        let mut processes = Processes::default()
            .table(self.table()?)
            .namespaces(self.namespaces.into());
        if let Some(directory) = data_dir {
            processes = processes.data_dir(directory.join("processes"));
        }
        if let Some(images) = self.store.open() {
            processes = processes.images(images);
        }
        if let Some(network) = network {
            processes = processes.hosts(Arc::new(network.clone()));
        }
        Ok(Some(processes.build()?))
    }

    fn table(&self) -> anyhow::Result<ImageTable> {
        let mut table = ImageTable::default();
        if let Some(file) = &self.images {
            let read = || format!("the images in {} cannot be read", file.display());
            let text = fs::read_to_string(file).with_context(read)?;
            table = table.yaml(&text).with_context(read)?;
        }
        for entry in &self.image {
            table = table.entry(entry)?;
        }
        Ok(table)
    }
}
