//! A network of one cluster on the loopback device: addresses for Services, pods, nodes and load balancers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;

use crate::hosts::Hosts;
use crate::range::Ipv4Range;

/// The second octets of the networks that are tried: below are 127.0.0.1, 127.0.0.53 and what people choose by hand.
const FIRST: u8 = 64;
const LAST: u8 = 248;
/// A network is a /14, which is four consecutive second octets.
const STEP: usize = 4;
const BITS: u8 = 14;
/// The port whose socket, on the last address of a network, says that the network is taken.
const CLAIM_PORT: u16 = 6443;
/// Where Services have the address of the DNS server in the range of Services.
const DNS_OFFSET: u32 = 10;
/// The port of the API server's Service where the process may not listen on 443.
const UNPRIVILEGED_API_PORT: u16 = 6443;
/// The port of the DNS server where the process may not listen on 53.
const UNPRIVILEGED_DNS_PORT: u16 = 10_053;

/// A /14 of 127.0.0.0/8 that belongs to one cluster for as long as a clone of this lives.
///
/// The first quarter is for Services, the others for pods, nodes and load balancers. Everything in it is on the loopback
/// device of this machine, without any set-up and for every user; other machines cannot reach it.
#[derive(Debug, Clone)]
pub struct LoopbackNetwork {
    range: Ipv4Range,
    hosts: Hosts,
    api_port: u16,
    dns_port: u16,
    /// Holds the claim: the kernel gives it up when the process ends, however it ends.
    _claim: Arc<UdpSocket>,
}

/// Why a network could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// All networks are in use by other clusters.
    #[error("all networks from 127.{FIRST}.0.0/{BITS} to 127.{LAST}.0.0/{BITS} are in use")]
    AllTaken,
    /// This network is in use, or its addresses cannot be used.
    #[error("the network {range} cannot be used")]
    Taken {
        /// The network that was asked for.
        range: Ipv4Range,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
    /// The range is not a /14 of 127.0.0.0/8, or the first one, which is the machine's own.
    #[error("{0} is not a /{BITS} of 127.0.0.0/8 above 127.4.0.0")]
    Unfit(Ipv4Range),
    /// The directory of hosts files could not be made.
    #[error("the directory of hosts files cannot be made")]
    Hosts(#[source] io::Error),
}

impl LoopbackNetwork {
    /// Takes the first network that no other cluster of this machine has.
    ///
    /// # Errors
    /// When all are taken, or no directory can be made for the hosts files.
    pub fn claim() -> Result<Self, ClaimError> {
        for second in (FIRST..=LAST).step_by(STEP) {
            let range = Ipv4Range::new(Ipv4Addr::new(127, second, 0, 0), BITS);
            let Some(range) = range else { continue };
            match Self::claim_range(range) {
                Err(ClaimError::Taken { .. }) => {}
                claimed => return claimed,
            }
        }
        Err(ClaimError::AllTaken)
    }

    /// Takes this network, which is a /14 of 127.0.0.0/8: that of a cluster whose objects have its addresses already.
    ///
    /// # Errors
    /// When another cluster has it, or no directory can be made for the hosts files.
    pub fn claim_range(range: Ipv4Range) -> Result<Self, ClaimError> {
        let (first, size) = (range.address(0), range.size());
        let fit = first.is_some_and(|first| first.is_loopback() && first.octets()[1] != 0);
        let last = range
            .address(u32::MAX >> BITS)
            .filter(|_| size == 1 << (32 - BITS));
        let (true, Some(last)) = (fit, last) else {
            return Err(ClaimError::Unfit(range));
        };
        let claim = UdpSocket::bind((last, CLAIM_PORT));
        let claim = claim.map_err(|source| ClaimError::Taken { range, source })?;
        let network = Self {
            range,
            hosts: Hosts::temporary().map_err(ClaimError::Hosts)?,
            api_port: 443,
            dns_port: 53,
            _claim: Arc::new(claim),
        };
        Ok(network.with_permitted_ports())
    }

    /// Keeps the hosts files in this directory, which is made if it is missing.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn hosts_dir(mut self, directory: &Path) -> Result<Self, ClaimError> {
        self.hosts = Hosts::in_directory(directory).map_err(ClaimError::Hosts)?;
        Ok(self)
    }

    /// The whole network, a /14.
    pub fn range(&self) -> Ipv4Range {
        self.range
    }

    /// The range of cluster IPs, a /16.
    pub fn services(&self) -> Ipv4Range {
        self.quarter(0)
    }

    /// The range of addresses of pods, a /16.
    pub fn pods(&self) -> Ipv4Range {
        self.quarter(1)
    }

    /// The range of addresses of nodes, a /16.
    pub fn nodes(&self) -> Ipv4Range {
        self.quarter(2)
    }

    /// The range of addresses of load balancers, a /16.
    pub fn load_balancers(&self) -> Ipv4Range {
        self.quarter(3)
    }

    /// The port of the Service `kubernetes`: 443, or 6443 where this process may not listen on ports below 1024.
    pub fn api_port(&self) -> u16 {
        self.api_port
    }

    /// Where the DNS server listens: port 53, or 10053 where this process may not listen on ports below 1024.
    pub fn dns_address(&self) -> SocketAddr {
        let address = self.services().address(DNS_OFFSET);
        SocketAddr::from((address.unwrap_or(Ipv4Addr::LOCALHOST), self.dns_port))
    }

    /// The hosts files of this network.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// What `/etc/resolv.conf` says in a pod of this namespace. Nothing when the DNS server is not on port 53, because
    /// resolvers know no other.
    pub fn resolv_conf(&self, namespace: &str) -> Option<String> {
        let address = self.dns_address();
        let domain = crate::names::DOMAIN;
        let search = format!("search {namespace}.svc.{domain} svc.{domain} {domain}");
        let text = format!("{search}\nnameserver {}\noptions ndots:5\n", address.ip());
        (address.port() == 53).then_some(text)
    }

    fn quarter(&self, number: u32) -> Ipv4Range {
        let first = self.range.address(number << 16);
        let quarter = first.and_then(|first| Ipv4Range::new(first, BITS + 2));
        quarter.expect("a /14 has four quarters")
    }

    /// Chooses ports that this process may listen on.
    fn with_permitted_ports(mut self) -> Self {
        let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let api = IpAddr::from(self.services().address(1).unwrap_or(Ipv4Addr::LOCALHOST));
        if TcpListener::bind((api, self.api_port)).is_err_and(denied) {
            self.api_port = UNPRIVILEGED_API_PORT;
        }
        if UdpSocket::bind(self.dns_address()).is_err_and(denied) {
            self.dns_port = UNPRIVILEGED_DNS_PORT;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_do_not_overlap_and_are_given_back() {
        let first = LoopbackNetwork::claim().expect("a network");
        let second = LoopbackNetwork::claim().expect("another network");
        assert_ne!(first.range(), second.range());
        let range = first.range();
        let taken = LoopbackNetwork::claim_range(range);
        assert!(matches!(taken, Err(ClaimError::Taken { .. })), "{taken:?}");
        let clone = first.clone();
        drop(first);
        assert!(
            LoopbackNetwork::claim_range(range).is_err(),
            "a clone holds it"
        );
        drop(clone);
        // Another test of another process may be quicker; the claim itself must not be in the way.
        match LoopbackNetwork::claim_range(range) {
            Ok(again) => assert_eq!(again.range(), range),
            Err(ClaimError::Taken { source, .. }) => {
                assert_eq!(source.kind(), io::ErrorKind::AddrInUse)
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_quarters_are_in_the_network() {
        let network = LoopbackNetwork::claim().expect("a network");
        let quarters = [
            network.services(),
            network.pods(),
            network.nodes(),
            network.load_balancers(),
        ];
        for (at, quarter) in quarters.iter().enumerate() {
            assert_eq!(
                quarter.address(0),
                network.range().address((at as u32) << 16)
            );
            assert_eq!(quarter.size(), 1 << 16);
        }
        let localhost = Ipv4Addr::LOCALHOST;
        assert!(!network.range().contains(localhost));
        for text in ["10.0.0.0/14", "127.0.0.0/14", "127.64.0.0/16"] {
            let unfit = LoopbackNetwork::claim_range(text.parse().expect("a range"));
            assert!(
                matches!(unfit, Err(ClaimError::Unfit(_))),
                "{text}: {unfit:?}"
            );
        }
    }
}
