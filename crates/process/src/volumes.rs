//! The volumes of pods as directories of this machine.

mod atomic;
mod host;
mod ownership;
mod place;
mod sub_path;
mod usage;

pub(crate) use ownership::Owners;
pub(crate) use place::{Place, prepare};
pub(crate) use sub_path::make as make_sub_path;
pub(crate) use usage::exceeds;
