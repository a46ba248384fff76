//! The console: a live page for any Kubernetes cluster.
//!
//! One informer for each kind, however many pages are open; started when a page first needs it. Rows, trees, events and
//! states are computed here and pushed to pages over one stream each. The page is plain HTML, CSS and JavaScript within
//! the program. Every request to the cluster is made with the client's credentials, which never reach the page.
//!
//! ```no_run
//! use kubewright_console::Console;
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let console = Console::new(client).cluster("staging").listen(([127, 0, 0, 1], 0).into()).await?;
//! println!("open {}", console.link());
//! # console.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees
//! - Nothing is served to a request that names another host, comes from another origin, or lacks the session's token.
//! - What the user may not see is not shown, and the page says why, in the server's words.
//! - Values of Secrets are masked until the user asks for one object's.

mod access;
mod actions;
mod assets;
mod change;
mod cluster;
mod compare;
mod console;
mod dependents;
mod drain;
mod exec;
mod feed;
mod feeds;
mod health;
mod hot;
mod http;
mod kinds;
mod listen;
mod live;
mod mask;
mod metrics;
mod mind;
mod overview;
mod past;
mod query;
mod read;
mod rights;
mod routes;
mod rows;
mod session;
mod snapshots;
mod state;
mod table;
mod timeline;
mod topics;
mod tree;
mod world;

pub use console::{Console, ListenError, Running};
pub use live::{Forest, Leaf, LeafHealth, Live};
pub use mind::{Causes, LocalOperator, MetricsText};
pub use snapshots::{Fork, SnapshotError, Snapshots};
pub use state::Mode;
