//! The network of a cluster whose pods are processes of this machine.
//!
//! Pods share the machine's network. Each pod and each Service has an address of its own in 127.0.0.0/8
//! ([`LoopbackNetwork`]), a [`Proxy`] does what kube-proxy does for Services, and names resolve by [hosts files](Hosts) and by a
//! small DNS server. It works from Services, EndpointSlices and Nodes alone, over any client, and no traffic leaves the
//! loopback device.
//!
//! ```no_run
//! use kubewright_proxy::{LoopbackNetwork, Proxy, ProxyOptions};
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let network = LoopbackNetwork::claim()?;
//! let proxy = Proxy::start(client, ProxyOptions::of_network(&network)).await?;
//! println!("{} connections", proxy.open_connections());
//! # Ok(())
//! # }
//! ```

mod backends;
mod balancer;
mod connection;
mod controller;
mod datagrams;
mod dns;
mod frontends;
mod hosts;
mod limits;
mod listeners;
pub mod load_balancers;
mod loopback;
mod names;
mod proxy;
mod range;
mod relay;

pub use hosts::{Hosts, HostsLine};
pub use limits::ProxyLimits;
pub use loopback::{ClaimError, LoopbackNetwork};
pub use proxy::{Proxy, ProxyError, ProxyOptions};
pub use range::{Ipv4Range, ParseRangeError};
