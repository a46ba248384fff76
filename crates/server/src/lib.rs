//! A Kubernetes API server as a library.
//!
//! The server is a `tower::Service` over HTTP bytes: the same code answers in-process calls and TLS sockets.
//! Objects are kept as the bytes they are served as, in a multi-version store with one global revision.
//!
//! ```
//! # async fn example() -> Result<(), kubewright_server::StartError> {
//! use kubewright_server::Server;
//!
//! let server = Server::builder().start().await?;
//! let service = server.service(); // for `kube::Client::new(service, "default")`
//! let endpoint = server.listen("127.0.0.1:0".parse().expect("an address")).await?;
//! println!("{}", endpoint.url());
//! # Ok(())
//! # }
//! ```

#[doc(inline)]
pub use kubewright_store as storage;
#[doc(inline)]
pub use kubewright_store::environment;

mod access;
mod admission;
mod agents;
mod aggregation;
mod api;
mod auth;
mod bootstrap;
mod callout;
mod connection;
mod conversion;
mod converter;
mod core;
mod definitions;
mod derived;
mod documents;
mod flow;
mod fork;
mod health;
mod http;
mod kinds;
mod kubeconfig;
mod listen;
mod logs;
mod memory;
mod network;
mod object;
mod pki;
mod printers;
mod private_file;
mod reconcile;
mod registry;
mod request;
mod resource;
mod server;
mod service;
mod status;
mod write;

pub use access::Authorization;
pub use admission::{Admission, Plugin, UnknownPlugin};
pub use agents::{
    AgentError, ContainerTarget, NodeAgents, PodTarget, PodUsage, StreamEnds, StreamEvent,
    StreamInput, Streams, TerminalSize, Usage, Wanted, serve_http,
};
pub use auth::{Tokens, User};
pub use callout::Services;
pub use core::{FieldManagement, ForkOptions};
pub use environment::{Clock, Environment};
pub use flow::RequestLimits;
pub use fork::Snapshot;
pub use health::KUBERNETES_MINOR;
pub use http::body::ResponseBody;
pub use kubeconfig::Kubeconfig;
pub use listen::ListenLimits;
pub use logs::{LogLine, LogOf, LogPiece, LogRun, MoreLog, NoLog, PodLogs};
pub use network::{ParseNetworkError, ServiceNetwork};
pub use pki::{
    CertificateRequest, CertificateRequestError, CertificateSigner, Certificates, PkiError,
};
pub use server::{Builder, Endpoint, Server, StartError};
pub use service::ApiService;
