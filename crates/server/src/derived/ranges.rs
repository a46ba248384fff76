//! Ranges that cluster IPs come from: those of the ServiceCIDRs, and the server's own.
//!
//! Ranges may overlap, so an address can be of several. Those of IPv6 are left out, because Services have IPv4 addresses
//! here. Pure: [`Addresses`](super::addresses::Addresses) follows the objects.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::Value;

use crate::environment::Environment;
use crate::kinds::value::{items, strings};
use crate::network::ServiceNetwork;
use crate::object;

/// Holds a deleted ServiceCIDR while Services have addresses that are of no other.
pub(crate) const RANGE_FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

/// Consecutive addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    first: u32,
    size: u64,
}

impl Range {
    /// Reads a range such as `10.96.0.0/16`; nothing when it is not one of IPv4.
    pub(super) fn parse(cidr: &str) -> Option<Self> {
        let (address, bits) = cidr.split_once('/')?;
        let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32)?;
        let size = 1_u64 << (32 - bits);
        let first = u64::from(address) / size * size;
        Some(Self {
            first: u32::try_from(first).ok()?,
            size,
        })
    }

    /// Whether a Service can have the address: the first names the network, the last is for broadcasts.
    fn contains(self, address: u32) -> bool {
        let offset = u64::from(address).checked_sub(u64::from(self.first));
        offset.is_some_and(|offset| offset > 0 && offset + 1 < self.size)
    }

    /// The addresses that a Service can have, beginning at a random one. Those next to the first come last, so that
    /// Services can ask for them by name (ipallocator.go: calculateRangeOffset).
    pub(super) fn candidates(self, environment: &Environment) -> impl Iterator<Item = u32> {
        let usable = self.size.saturating_sub(2);
        let by_name = (self.size / 16).clamp(16, 256).min(usable);
        let any = if usable == 0 {
            0
        } else {
            self.size - 1 - by_name
        };
        let start = if any == 0 { 0 } else { environment.below(any) };
        let offsets = (0..any).map(move |i| by_name + (start + i) % any);
        let offsets = offsets.chain(1..by_name);
        offsets.filter_map(move |offset| u32::try_from(u64::from(self.first) + offset).ok())
    }
}

/// What a ServiceCIDR means for addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceRange {
    ranges: Vec<Range>,
    state: RangeState,
    /// Whether its finalizer and its condition are as the server keeps them, and it is not deleted.
    settled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeState {
    /// Addresses are taken from it.
    Open,
    NotReady,
    /// It is deleted, and goes when its addresses are free.
    Terminating,
}

impl ServiceRange {
    pub(super) fn read(object: &Value) -> Self {
        let cidrs = object.pointer("/spec/cidrs").into_iter().flat_map(strings);
        let ready = is_ready(object);
        let state = match ready {
            _ if object::is_deleting(object) => RangeState::Terminating,
            Some(false) => RangeState::NotReady,
            // As for kube-apiserver, which does without a controller manager.
            None | Some(true) => RangeState::Open,
        };
        let held = object::finalizers(object).contains(&RANGE_FINALIZER);
        Self {
            ranges: cidrs.filter_map(Range::parse).collect(),
            state,
            settled: state == RangeState::Open && ready.is_some() && held,
        }
    }

    fn contains(&self, address: u32) -> bool {
        self.ranges.iter().any(|range| range.contains(address))
    }
}

/// What the condition `Ready` of a ServiceCIDR says, if it has one.
pub(crate) fn is_ready(object: &Value) -> Option<bool> {
    let conditions = object.pointer("/status/conditions");
    let has = |condition: &Value, field: &str, text: &str| {
        condition.get(field).and_then(Value::as_str) == Some(text)
    };
    let mut conditions = conditions.into_iter().flat_map(items);
    let ready = conditions.find(|condition| has(condition, "type", "Ready"));
    ready.map(|ready| has(ready, "status", "True"))
}

/// All ranges of a server.
#[derive(Debug)]
pub(super) struct Ranges {
    own: Option<Range>,
    /// By the names of ServiceCIDRs.
    named: BTreeMap<String, ServiceRange>,
}

impl Ranges {
    /// The server's own range, without a ServiceCIDR so far.
    pub(super) fn new(network: ServiceNetwork) -> Self {
        Self {
            own: Range::parse(&network.cidr()),
            named: BTreeMap::new(),
        }
    }

    /// Takes up a ServiceCIDR, or forgets it.
    pub(super) fn put(&mut self, name: &str, range: Option<ServiceRange>) {
        match range {
            Some(range) => drop(self.named.insert(name.to_owned(), range)),
            None => drop(self.named.remove(name)),
        }
    }

    /// The names of all ServiceCIDRs.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// The ServiceCIDRs that the server has to write.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = &str> {
        let unsettled = self.named.iter().filter(|(_, range)| !range.settled);
        unsettled.map(|(name, _)| name.as_str())
    }

    /// The ranges that addresses are taken from now, the server's own first. Its own needs no ServiceCIDR, because the
    /// first Service is older than the first of them.
    pub(super) fn open(&self) -> Vec<Range> {
        let named = self.named.values();
        let open = named.filter(|range| range.state == RangeState::Open);
        let mut open: Vec<Range> = open.flat_map(|range| &range.ranges).copied().collect();
        let unnamed = |own: &Range| !self.named.values().any(|range| range.ranges.contains(own));
        open.extend(self.own.filter(unnamed));
        open.sort_by_key(|range| Some(*range) != self.own);
        open
    }

    /// Whether a Service can have this address.
    pub(super) fn has(&self, address: u32) -> bool {
        self.open().iter().any(|range| range.contains(address))
    }

    /// The ServiceCIDRs that wait until this address and others are free.
    pub(super) fn waiting_for(&self, address: u32) -> impl Iterator<Item = &str> {
        let waiting = self.named.iter().filter(move |(_, range)| {
            range.state == RangeState::Terminating && range.contains(address)
        });
        waiting.map(|(name, _)| name.as_str())
    }

    /// Whether an address is of this ServiceCIDR and of no other.
    pub(super) fn is_only_in(&self, name: &str, address: u32) -> bool {
        let mut with = self
            .named
            .iter()
            .filter(|(_, range)| range.contains(address));
        with.next().is_some_and(|(only, _)| only == name) && with.next().is_none()
    }

    /// The ranges as text, for tests that compare.
    pub(super) fn describe(&self) -> String {
        format!("{:?}", self.named)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(address: &str) -> u32 {
        address.parse::<Ipv4Addr>().expect("an address").into()
    }

    fn range(cidr: &str) -> Range {
        Range::parse(cidr).expect("a range")
    }

    fn object(cidr: &str) -> Value {
        json!({"metadata": {"name": "x"}, "spec": {"cidrs": [cidr]}})
    }

    #[test]
    fn first_and_last_address_are_not_for_services() {
        for (cidr, addresses) in [
            ("10.0.0.0/32", Vec::new()),
            ("10.0.0.0/31", Vec::new()),
            ("10.0.0.4/30", vec!["10.0.0.5", "10.0.0.6"]),
            ("10.0.0.9/30", vec!["10.0.0.10", "10.0.0.9"]),
        ] {
            let mut found: Vec<u32> = range(cidr).candidates(&Environment::system()).collect();
            let mut expect: Vec<u32> = addresses.into_iter().map(number).collect();
            found.sort_unstable();
            expect.sort_unstable();
            assert_eq!(found, expect, "{cidr}");
            let contained = |address: &u32| range(cidr).contains(*address);
            assert!(found.iter().all(contained), "{cidr}");
        }
        let whole = range("0.0.0.0/0");
        assert!(whole.contains(number("255.255.255.254")));
        assert!(!whole.contains(number("255.255.255.255")) && !whole.contains(0));
        for text in ["10.0.0.0", "10.0.0.0/33", "2001:db8::/64", "x/8"] {
            assert_eq!(Range::parse(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_next_to_the_first_come_last() {
        let range = range("127.64.0.0/24");
        let found: Vec<u32> = range.candidates(&Environment::system()).collect();
        let last: Vec<u8> = found.iter().map(|a| a.to_be_bytes()[3]).collect();
        assert!(last[..239].iter().all(|last| (16..255).contains(last)));
        assert_eq!(last[239..], Vec::from_iter(1..16));
    }

    #[test]
    fn own_range_is_first_and_goes_with_its_object() {
        let mut ranges = Ranges::new(ServiceNetwork::default());
        let own = range("10.96.0.0/16");
        assert_eq!(ranges.open(), [own]);
        ranges.put("a", Some(ServiceRange::read(&object("10.97.0.0/24"))));
        assert_eq!(ranges.open(), [own, range("10.97.0.0/24")]);
        let mut kubernetes = object("10.96.0.0/16");
        ranges.put("kubernetes", Some(ServiceRange::read(&kubernetes)));
        assert_eq!(ranges.open(), [own, range("10.97.0.0/24")]);
        kubernetes["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        ranges.put("kubernetes", Some(ServiceRange::read(&kubernetes)));
        assert_eq!(ranges.open(), [range("10.97.0.0/24")]);
        let waiting: Vec<&str> = ranges.waiting_for(number("10.96.0.1")).collect();
        assert_eq!(waiting, ["kubernetes"]);
    }

    #[test]
    fn range_that_is_not_ready_is_closed() {
        let mut object = object("10.97.0.0/24");
        let mut ranges = Ranges::new(ServiceNetwork::default());
        for (status, has) in [("True", true), ("False", false)] {
            object["status"] = json!({"conditions": [{"type": "Ready", "status": status}]});
            ranges.put("a", Some(ServiceRange::read(&object)));
            assert_eq!(ranges.has(number("10.97.0.9")), has, "{status}");
        }
    }

    #[test]
    fn address_of_two_ranges_depends_on_neither() {
        let mut ranges = Ranges::new(ServiceNetwork::default());
        ranges.put("small", Some(ServiceRange::read(&object("10.97.1.0/24"))));
        let address = number("10.97.1.9");
        assert!(ranges.is_only_in("small", address));
        ranges.put("large", Some(ServiceRange::read(&object("10.97.0.0/16"))));
        assert!(!ranges.is_only_in("small", address));
        assert!(!ranges.is_only_in("large", address));
        assert!(ranges.is_only_in("large", number("10.97.2.9")));
    }
}
