//! PodtatoHeadApp: a figure of six parts. Each is a Deployment and a Service; the entry puts them together and is exposed when
//! they are ready. An upgrade goes through the parts one by one, and back with all of them when one does not become ready.
//!
//! `plan` decides, and is pure; `reconcile` sees and acts. `server` is the program of the parts.

mod api;
mod desired;
mod part;
pub mod plan;
mod reconcile;
mod report;
pub mod server;
mod webhook;

pub use api::{
    PartSpec, PartStatus, PodtatoHeadApp, PodtatoHeadAppSpec, PodtatoHeadAppStatus, Release,
    Rollback, ServiceType,
};
pub use desired::{PORT, name};
pub use part::Part;
pub use reconcile::{PodtatoHeads, controller};
pub use webhook::validate;
