//! The addresses of Services, and whether pods are at addresses of this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// Where the addresses of Services come from. By default from 10.96.0.0/16, as in a cluster that kubeadm made, with
/// simulated pods, whose addresses nobody dials.
///
/// # Examples
/// ```
/// use kubewright_server::ServiceNetwork;
///
/// let network: ServiceNetwork = "127.64.0.0/16".parse()?;
/// assert_eq!(network.api_address().to_string(), "127.64.0.1");
/// # Ok::<(), kubewright_server::ParseNetworkError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceNetwork {
    first: u32,
    bits: u32,
    api_port: u16,
}

/// A text that is not a range of addresses for Services.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IPv4 range of 16 to 65536 addresses such as 10.96.0.0/16")]
pub struct ParseNetworkError(String);

impl Default for ServiceNetwork {
    fn default() -> Self {
        Self {
            first: u32::from_be_bytes([10, 96, 0, 0]),
            bits: 16,
            api_port: 443,
        }
    }
}

impl ServiceNetwork {
    /// Where simulated pods are: the nodes of a cluster take their networks from here.
    pub const SIMULATED_PODS: ([u8; 4], u8) = ([10, 128, 0, 0], 9);

    /// Whether an address can be that of a simulated pod, which no process is behind.
    pub(crate) fn is_simulated_pod(&self, address: IpAddr) -> bool {
        let (first, bits) = Self::SIMULATED_PODS;
        let bits = 32 - u32::from(bits);
        match address.to_canonical() {
            IpAddr::V4(address) if !self.is_loopback() => {
                u32::from(address) >> bits == u32::from_be_bytes(first) >> bits
            }
            _ => false,
        }
    }

    /// Sets the port of the Service `kubernetes`: 443 by default, another one where the machine does not permit that.
    #[must_use]
    pub fn api_port(mut self, port: u16) -> Self {
        self.api_port = port;
        self
    }

    /// The address of the Service `kubernetes`, which is the first of the range.
    pub fn api_address(&self) -> IpAddr {
        Ipv4Addr::from(self.first + 1).into()
    }

    /// The address and port of the Service `kubernetes`.
    pub(crate) fn api_service(&self) -> SocketAddr {
        SocketAddr::new(self.api_address(), self.api_port)
    }

    /// Whether the addresses of Services, and with them those of pods, are this machine's own.
    ///
    /// Then pods are processes: webhooks behind Services are dialed at their pods, and EndpointSlices may have loopback
    /// addresses, which a real server refuses.
    pub fn is_loopback(&self) -> bool {
        Ipv4Addr::from(self.first).is_loopback()
    }

    /// The range, as a ServiceCIDR has it.
    pub(crate) fn cidr(&self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.first), self.bits)
    }

    /// How many addresses there are.
    fn size(&self) -> u32 {
        1 << (32 - self.bits)
    }
}

impl FromStr for ServiceNetwork {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (address, bits) = text.split_once('/')?;
            let first = u32::from(address.parse::<Ipv4Addr>().ok()?);
            let bits = bits.parse().ok().filter(|bits| (16..=28).contains(bits))?;
            let network = Self {
                first,
                bits,
                ..Self::default()
            };
            first.is_multiple_of(network.size()).then_some(network)
        };
        parse().ok_or_else(|| ParseNetworkError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_pods_have_a_range_unless_pods_are_processes() {
        let network = ServiceNetwork::default();
        let is_pod = |text: &str| network.is_simulated_pod(text.parse().expect("an address"));
        for pod in [
            "10.128.0.0",
            "10.244.0.2",
            "10.255.255.255",
            "::ffff:10.244.0.2",
        ] {
            assert!(is_pod(pod), "{pod}");
        }
        for other in [
            "10.127.255.255",
            "10.96.0.1",
            "172.18.0.2",
            "127.0.0.1",
            "::1",
        ] {
            assert!(!is_pod(other), "{other}");
        }
        let network: ServiceNetwork = "127.64.0.0/16".parse().expect("a range");
        assert!(!network.is_simulated_pod([10, 244, 0, 2].into()));
    }

    #[test]
    fn ranges_are_read() {
        let network: ServiceNetwork = "127.64.0.0/16".parse().expect("a range");
        assert!(network.is_loopback());
        assert_eq!(network.cidr(), "127.64.0.0/16");
        assert_eq!(
            network.api_port(6443).api_service().to_string(),
            "127.64.0.1:6443"
        );
        assert!(!ServiceNetwork::default().is_loopback());
        for text in [
            "",
            "10.96.0.0",
            "10.96.0.1/16",
            "10.0.0.0/8",
            "10.96.0.0/29",
            "x/16",
        ] {
            assert!(text.parse::<ServiceNetwork>().is_err(), "{text}");
        }
    }
}
