//! Images of this machine, which `kubewright up --runtime process` runs.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use kubewright_process::ImageStore;

/// What is done with the images of this machine.
#[derive(Debug, Subcommand)]
pub(super) enum Stored {
    Load(Load),
    List(List),
    Rm(Remove),
}

/// Load an image, so that pods that are processes can run it
///
/// Reads an OCI layout, or an archive of one or of docker save, and unpacks it. kubewright up --runtime process runs it under its name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright image build --tar guestbook.tar && kubewright image load guestbook.tar\n  \
    kubewright image load target/image --name guestbook:dev")]
pub(super) struct Load {
    /// An archive, or the folder of an OCI layout
    #[arg(value_name = "FILE|FOLDER")]
    from: PathBuf,

    /// Another name for the image
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    place: StorePlace,
}

/// List the images of this machine
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kubewright image list")]
pub(super) struct List {
    #[command(flatten)]
    place: StorePlace,
}

/// Remove an image of this machine
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kubewright image rm registry.example.com/guestbook:1.0")]
pub(super) struct Remove {
    /// The name of the image, or its digest
    name: String,

    #[command(flatten)]
    place: StorePlace,
}

/// Where the images of this machine are.
#[derive(Debug, Args)]
pub(crate) struct StorePlace {
    /// Where loaded images are kept; without it KUBEWRIGHT_IMAGES, or the user's data directory
    #[arg(long, value_name = "FOLDER")]
    image_store: Option<PathBuf>,
}

impl StorePlace {
    /// The images that are meant; nothing where the user has no home.
    pub(crate) fn open(&self) -> Option<ImageStore> {
        let given = self.image_store.clone().map(ImageStore::at);
        given.or_else(ImageStore::of_user)
    }

    fn required(&self) -> anyhow::Result<ImageStore> {
        self.open()
            .context("say where images are kept, with --image-store")
    }
}

impl Stored {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Load(load) => {
                let image = load
                    .place
                    .required()?
                    .load(&load.from, load.name.as_deref())?;
                let size = image.bytes.div_ceil(1 << 10);
                println!("{}\n  {}, {size} KiB", image.names.join(", "), image.digest);
                if image.left_out > 0 {
                    println!("  {} devices were left out", image.left_out);
                }
            }
            Self::List(list) => {
                for image in list.place.required()?.list()? {
                    let size = image.bytes.div_ceil(1 << 10);
                    for name in &image.names {
                        println!("{name}  {}  {size} KiB", image.digest);
                    }
                }
            }
            Self::Rm(remove) => remove.place.required()?.remove(&remove.name)?,
        }
        Ok(())
    }
}
