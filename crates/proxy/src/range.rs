//! Ranges of IPv4 addresses, as a CIDR writes them.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// A range of IPv4 addresses: `127.64.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ipv4Range {
    first: u32,
    bits: u8,
}

/// A text that is not a range of IPv4 addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a range of IPv4 addresses such as 127.64.0.0/14")]
pub struct ParseRangeError(String);

impl Ipv4Range {
    /// The range with this first address and length of prefix. Nothing when the address has bits beyond its prefix.
    pub fn new(first: Ipv4Addr, bits: u8) -> Option<Self> {
        let range = Self {
            first: first.into(),
            bits,
        };
        (bits <= 32 && u64::from(range.first).is_multiple_of(range.size())).then_some(range)
    }

    /// The address at this offset. Nothing when the range is shorter.
    pub fn address(self, offset: u32) -> Option<Ipv4Addr> {
        (u64::from(offset) < self.size()).then(|| Ipv4Addr::from(self.first + offset))
    }

    /// Whether an address is in the range.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).checked_sub(self.first);
        offset.is_some_and(|offset| u64::from(offset) < self.size())
    }

    /// How many addresses the range has.
    pub fn size(self) -> u64 {
        1 << (32 - u64::from(self.bits))
    }
}

impl fmt::Display for Ipv4Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.bits)
    }
}

impl FromStr for Ipv4Range {
    type Err = ParseRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (address, bits) = text.split_once('/')?;
            Self::new(address.parse().ok()?, bits.parse().ok()?)
        };
        parse().ok_or_else(|| ParseRangeError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written() {
        let range: Ipv4Range = "127.64.0.0/14".parse().expect("a range");
        assert_eq!(range.to_string(), "127.64.0.0/14");
        assert!(range.contains(Ipv4Addr::new(127, 67, 255, 255)));
        assert!(!range.contains(Ipv4Addr::new(127, 68, 0, 0)));
        assert!(!range.contains(Ipv4Addr::new(127, 63, 255, 255)));
        assert_eq!(range.address(1 << 18), None);
        assert_eq!(range.address(1), Some(Ipv4Addr::new(127, 64, 0, 1)));
        for text in [
            "",
            "127.0.0.1",
            "127.64.0.1/14",
            "127.64.0.0/33",
            "x/8",
            "::/64",
        ] {
            assert!(text.parse::<Ipv4Range>().is_err(), "{text}");
        }
    }
}
