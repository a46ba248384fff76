//! IP addresses and networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::cost::traversal;
use super::super::eval::Evaluator;
use super::super::value::{EvalError, Evaluated, Value, fail, no_overload};
use super::read;

/// A network: an address and how many of its bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

/// Why a text is not an address or a network, in the words of Kubernetes and Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum AddressError {
    #[error("netip.ParsePrefix({0:?}): no '/'")]
    NoSlash(String),
    #[error("netip.ParsePrefix({text:?}): bad bits after slash: {bits:?}")]
    Bits { text: String, bits: String },
    #[error("IP address {0:?} with zone value is not allowed")]
    Zone(String),
    #[error(
        "IP Address {0:?} parse error during conversion from string: ParseAddr({0:?}): unable to parse IP"
    )]
    Unreadable(String),
    #[error("IPv4-mapped IPv6 address {0:?} is not allowed")]
    Mapped(String),
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Cidr {
    fn parse(text: &str) -> Result<Self, AddressError> {
        let (address, bits) = text
            .split_once('/')
            .ok_or_else(|| AddressError::NoSlash(text.to_owned()))?;
        let address = parse_ip(address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let canonical = bits == "0" || !bits.starts_with(['0', '+', '-']);
        let parsed = bits.parse().ok().filter(|bits| canonical && *bits <= most);
        let bits = parsed.ok_or_else(|| AddressError::Bits {
            text: text.to_owned(),
            bits: bits.to_owned(),
        })?;
        Ok(Self { address, bits })
    }

    /// The bits of an address that count; both families as 128 bits.
    fn network(self, address: IpAddr) -> u128 {
        let (value, width) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let unused = width - u32::from(self.bits);
        // Shifting by all bits is not defined.
        value
            .checked_shr(unused)
            .map_or(0, |kept| kept.checked_shl(unused).unwrap_or(0))
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && self.network(self.address) == self.network(address)
    }

    fn includes(self, other: Cidr) -> bool {
        other.bits >= self.bits && self.contains(other.address)
    }

    fn masked(self) -> Self {
        let network = self.network(self.address);
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(network as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(network)),
        };
        Self { address, ..self }
    }
}

/// Kubernetes takes neither zones nor IPv4 addresses dressed up as IPv6 ones.
fn parse_ip(text: &str) -> Result<IpAddr, AddressError> {
    if text.contains('%') {
        return Err(AddressError::Zone(text.to_owned()));
    }
    let parsed = text.parse::<IpAddr>();
    let address = parsed.map_err(|_| AddressError::Unreadable(text.to_owned()))?;
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(AddressError::Mapped(text.to_owned()))
        }
        other => Ok(other),
    }
}

fn ip(text: &str) -> Result<IpAddr, EvalError> {
    parse_ip(text).or_else(|error| fail(error.to_string()))
}

fn cidr(text: &str) -> Result<Cidr, EvalError> {
    Cidr::parse(text).or_else(|error| {
        fail(format!(
            "network address parse error during conversion from string: {error}"
        ))
    })
}

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    match (name, args) {
        ("ip", [Value::Text(text)]) => ip(read(eval, text)?).map(Value::Ip),
        ("isIP", [Value::Text(text)]) => Ok(Value::Bool(parse_ip(read(eval, text)?).is_ok())),
        ("ip.isCanonical", [Value::Text(text)]) => {
            eval.charge(traversal(text.len() as u64))?;
            let address = ip(read(eval, text)?)?;
            Ok(Value::Bool(address.to_string() == **text))
        }
        ("cidr", [Value::Text(text)]) => cidr(read(eval, text)?).map(Value::Cidr),
        ("isCIDR", [Value::Text(text)]) => Ok(Value::Bool(Cidr::parse(read(eval, text)?).is_ok())),
        (_, [Value::Ip(address)]) => {
            eval.charge(1)?;
            of_ip(name, *address)
        }
        (_, [Value::Cidr(network), rest @ ..]) => {
            eval.charge(1)?;
            of_cidr(eval, name, *network, rest)
        }
        _ => no_overload(),
    }
}

fn of_ip<'a>(name: &str, address: IpAddr) -> Evaluated<'a> {
    let holds = match name {
        "family" => return Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => address.is_unspecified(),
        "isLoopback" => address.is_loopback(),
        "isLinkLocalMulticast" => match address {
            IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
            IpAddr::V6(v6) => v6.octets()[0] == 0xff && v6.octets()[1] & 0x0f == 2,
        },
        "isLinkLocalUnicast" => is_link_local(address),
        "isGlobalUnicast" => {
            let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
            !(address.is_unspecified()
                || broadcast
                || address.is_loopback()
                || address.is_multicast()
                || is_link_local(address))
        }
        _ => return no_overload(),
    };
    Ok(Value::Bool(holds))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn of_cidr<'a>(
    eval: &mut Evaluator<'a>,
    name: &str,
    network: Cidr,
    args: &[Value<'a>],
) -> Evaluated<'a> {
    Ok(match (name, args) {
        ("ip", []) => Value::Ip(network.address),
        ("prefixLength", []) => Value::Int(i64::from(network.bits)),
        ("masked", []) => Value::Cidr(network.masked()),
        ("containsIP", [Value::Ip(address)]) => Value::Bool(network.contains(*address)),
        ("containsIP", [Value::Text(text)]) => {
            Value::Bool(network.contains(ip(read(eval, text)?)?))
        }
        ("containsCIDR", [Value::Cidr(other)]) => Value::Bool(network.includes(*other)),
        ("containsCIDR", [Value::Text(text)]) => {
            Value::Bool(network.includes(cidr(read(eval, text)?)?))
        }
        _ => return no_overload(),
    })
}
