//! Images on this machine: read from an OCI layout or an archive, unpacked once, run as the file systems of containers.

mod name;
mod source;
mod store;
mod unpack;

pub use source::NotAnImage;
pub use store::{ImageError, ImageStore, StoredImage};
