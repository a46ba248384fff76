//! Addresses: a network of pods for each node, an address in it for each pod, one for the node itself.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use kubewright_proxy::{Ipv4Range, LoopbackNetwork};
use kubewright_server::ServiceNetwork;

/// The most nodes that have addresses of their own.
const MOST_NODES: u32 = 1 << 16;
/// The smallest network of a node.
const SMALLEST: u32 = 256;
/// The largest: more pods than anybody puts on a node.
const LARGEST: u32 = 1 << 20;

/// A block of addresses. Its size is a power of two and its start a multiple of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    start: u32,
    size: u32,
}

/// Where the addresses of pods and nodes come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranges {
    /// Networks of pods are taken from here, beginning with `first`.
    pods: Ipv4Range,
    first: u32,
    /// Nodes are at the second address of this range and up.
    nodes: Ipv4Range,
}

/// Which blocks and which node addresses are taken.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    ranges: Ranges,
    blocks: BTreeMap<u32, u32>,
    nodes: BTreeMap<u32, ()>,
}

impl Default for Ranges {
    /// Pods in 10.128.0.0/9, the customary 10.244.0.0 first, and nodes at 172.18.0.2 and up. The server dials no address of
    /// these pods.
    fn default() -> Self {
        let (pods, bits) = ServiceNetwork::SIMULATED_PODS;
        let range = |first: [u8; 4], bits| Ipv4Range::new(first.into(), bits);
        Self {
            pods: range(pods, bits).expect("nine bits"),
            first: u32::from_be_bytes([10, 244, 0, 0]),
            nodes: range([172, 18, 0, 0], 15).expect("fifteen bits"),
        }
    }
}

impl Ranges {
    /// The ranges of a network on the loopback device.
    pub(crate) fn of(network: &LoopbackNetwork) -> Self {
        let pods = network.pods();
        Self {
            pods,
            first: start(pods),
            nodes: network.nodes(),
        }
    }

    /// Whether an address may stay. One on the loopback device has to be in the ranges, because others have theirs there.
    fn is_own(&self, address: u32) -> bool {
        let (address, loopback) = (
            Ipv4Addr::from(address),
            Ipv4Addr::from(self.first).is_loopback(),
        );
        let own = self.pods.contains(address) || self.nodes.contains(address);
        own || (!loopback && !address.is_loopback())
    }

    fn end(&self) -> u32 {
        let size = u32::try_from(self.pods.size()).unwrap_or(u32::MAX);
        start(self.pods).saturating_add(size)
    }
}

fn start(range: Ipv4Range) -> u32 {
    range.address(0).unwrap_or(Ipv4Addr::UNSPECIFIED).into()
}

impl Block {
    /// `10.244.0.0/24`
    pub(crate) fn cidr(self) -> String {
        let bits = 32 - self.size.trailing_zeros();
        format!("{}/{bits}", Ipv4Addr::from(self.start))
    }

    /// Reads `10.244.0.0/24`.
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let start = u32::from(address.parse::<Ipv4Addr>().ok()?);
        let bits: u32 = bits.parse().ok().filter(|bits| (12..=30).contains(bits))?;
        let size = 1u32 << (32 - bits);
        start.is_multiple_of(size).then_some(Self { start, size })
    }
}

impl Networks {
    /// Addresses of these ranges, all of them free.
    pub(crate) fn new(ranges: Ranges) -> Self {
        Self {
            ranges,
            ..Self::default()
        }
    }

    /// A block that has room for this many pods; none when everything is taken.
    pub(crate) fn block(&mut self, pods: u32) -> Option<Block> {
        let size = pods
            .saturating_add(3)
            .clamp(SMALLEST, LARGEST)
            .next_power_of_two();
        let Ranges { pods, first, .. } = self.ranges;
        let start = self
            .gap(first, self.ranges.end(), size)
            .or_else(|| self.gap(start(pods), first, size))?;
        self.blocks.insert(start, size);
        Some(Block { start, size })
    }

    /// Takes the block that a node has already, if nobody else has it and it is one of this network.
    pub(crate) fn adopt(&mut self, cidr: &str) -> Option<Block> {
        let block = Block::parse(cidr)?;
        let own = self.ranges.is_own(block.start);
        if !own || !self.is_free(block.start, block.size) {
            return None;
        }
        self.blocks.insert(block.start, block.size);
        Some(block)
    }

    /// Gives a block back.
    pub(crate) fn release(&mut self, block: Block) {
        self.blocks.remove(&block.start);
    }

    /// An address for a node.
    pub(crate) fn node(&mut self) -> Ipv4Addr {
        let first = start(self.ranges.nodes) + 2;
        let mut all = first..start(self.ranges.nodes).saturating_add(MOST_NODES);
        let free = all.find(|address| !self.nodes.contains_key(address));
        let address = free.unwrap_or(first);
        self.nodes.insert(address, ());
        Ipv4Addr::from(address)
    }

    /// Takes the address that a node has already; says whether it was free and is one of this network.
    pub(crate) fn adopt_node(&mut self, address: Ipv4Addr) -> bool {
        self.ranges.is_own(address.into()) && self.nodes.insert(address.into(), ()).is_none()
    }

    /// Gives the address of a node back.
    pub(crate) fn release_node(&mut self, address: Ipv4Addr) {
        self.nodes.remove(&address.into());
    }

    fn gap(&self, from: u32, to: u32, size: u32) -> Option<u32> {
        let mut start = from.next_multiple_of(size);
        while start.checked_add(size).is_some_and(|end| end <= to) {
            match self.overlap(start, size) {
                None => return Some(start),
                Some(end) => start = end.next_multiple_of(size),
            }
        }
        None
    }

    fn is_free(&self, start: u32, size: u32) -> bool {
        self.overlap(start, size).is_none()
    }

    /// The end of a taken block that overlaps.
    fn overlap(&self, start: u32, size: u32) -> Option<u32> {
        let end = start.checked_add(size)?;
        let (before, length) = self.blocks.range(..end).next_back()?;
        let taken = before.saturating_add(*length);
        (taken > start).then_some(taken)
    }
}

/// The addresses of one node's pods. Given out in turn, so that an address rests before it is used again.
#[derive(Debug)]
pub(crate) struct Addresses {
    block: Block,
    taken: std::collections::BTreeSet<u32>,
    next: u32,
}

impl Addresses {
    /// All addresses of a block but the first two, which are the network's and the gateway's, and the last.
    pub(crate) fn new(block: Block) -> Self {
        Self {
            block,
            taken: std::collections::BTreeSet::new(),
            next: 2,
        }
    }

    pub(crate) fn block(&self) -> Block {
        self.block
    }

    /// The next free address; none when all are taken.
    pub(crate) fn take(&mut self) -> Option<Ipv4Addr> {
        let usable = self.block.size - 3;
        if self.taken.len() as u32 >= usable {
            return None;
        }
        loop {
            let offset = self.next;
            self.next = if offset >= self.block.size - 2 {
                2
            } else {
                offset + 1
            };
            if self.taken.insert(offset) {
                return Some(Ipv4Addr::from(self.block.start + offset));
            }
        }
    }

    /// Marks an address that a pod has already.
    pub(crate) fn adopt(&mut self, address: Ipv4Addr) {
        if let Some(offset) = self.offset(address) {
            self.taken.insert(offset);
        }
    }

    /// Gives an address back.
    pub(crate) fn release(&mut self, address: Ipv4Addr) {
        if let Some(offset) = self.offset(address) {
            self.taken.remove(&offset);
        }
    }

    fn offset(&self, address: Ipv4Addr) -> Option<u32> {
        let offset = u32::from(address).checked_sub(self.block.start)?;
        (2..self.block.size - 1).contains(&offset).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_are_used_again() {
        let mut networks = Networks::default();
        let small = networks.block(110).expect("room");
        assert_eq!(small.cidr(), "10.244.0.0/24");
        let large = networks.block(1_000).expect("room");
        assert_eq!(large.cidr(), "10.244.4.0/22");
        assert_eq!(networks.block(110).expect("room").cidr(), "10.244.1.0/24");
        assert_eq!(networks.adopt("10.244.5.0/24"), None);
        networks.release(small);
        assert_eq!(networks.adopt("10.244.0.0/24"), Some(small));
        for text in ["10.244.0.1/24", "10.0.0.0", "x/24", "10.0.0.0/33", "::/64"] {
            assert_eq!(Block::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_network_on_loopback_has_its_own_ranges_and_adopts_nothing_else() {
        let network = LoopbackNetwork::claim().expect("a network");
        let mut networks = Networks::new(Ranges::of(&network));
        let block = networks.block(110).expect("room");
        assert_eq!(Some(Ipv4Addr::from(block.start)), network.pods().address(0));
        assert_eq!(Some(networks.node()), network.nodes().address(2));
        assert_eq!(networks.adopt("10.244.0.0/24"), None);
        assert!(!networks.adopt_node(Ipv4Addr::new(172, 18, 0, 2)));
        assert_eq!(Networks::default().adopt(&block.cidr()), None);
        let blocks = std::iter::from_fn(|| networks.block(110)).count();
        assert_eq!(blocks, 255, "a /24 for each of the other nodes");
    }

    #[test]
    fn addresses_are_given_out_in_turn_until_none_is_left() {
        let block = Networks::default().block(1).expect("room");
        let mut addresses = Addresses::new(block);
        let first = addresses.take().expect("a free one");
        assert_eq!(first, Ipv4Addr::new(10, 244, 0, 2));
        addresses.release(first);
        assert_eq!(addresses.take(), Some(Ipv4Addr::new(10, 244, 0, 3)));
        addresses.adopt(Ipv4Addr::new(10, 244, 0, 9));
        let rest = std::iter::from_fn(|| addresses.take()).count();
        assert_eq!(rest, 253 - 2);
        assert_eq!(addresses.take(), None);
    }

    #[test]
    fn nodes_have_addresses_of_their_own() {
        let mut networks = Networks::default();
        let first = networks.node();
        assert_eq!(first, Ipv4Addr::new(172, 18, 0, 2));
        assert!(networks.adopt_node(Ipv4Addr::new(172, 18, 0, 3)));
        assert_eq!(networks.node(), Ipv4Addr::new(172, 18, 0, 4));
        networks.release_node(first);
        assert_eq!(networks.node(), first);
    }
}
