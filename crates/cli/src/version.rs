//! `kubewright version`: what this is.

use clap::Args;

use crate::sdk::Sdk;

/// Print the version of this program, and where new projects get the toolkit from
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kubewright version")]
pub(crate) struct Version {}

impl Version {
    pub(crate) fn run(self) {
        println!("kubewright {}", env!("CARGO_PKG_VERSION"));
        println!("  kubernetes  1.37");
        println!("  rust        {} or newer", env!("CARGO_PKG_RUST_VERSION"));
        match Sdk::of_this_program() {
            Sdk::Path(root) => println!("  toolkit     the checkout in {}", root.display()),
            Sdk::Git(url) => println!("  toolkit     {url}"),
            Sdk::Version(version) => println!("  toolkit     version {version}"),
        }
    }
}
