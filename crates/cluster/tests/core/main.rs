//! A whole cluster in paused time: its frame, and the controllers about objects' lives.

mod frame;
mod garbage;
mod namespaces;
mod scene;
mod upkeep;
