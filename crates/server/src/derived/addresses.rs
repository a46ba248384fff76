//! Cluster IPs and node ports of Services: each is given out once.
//!
//! What stored Services use follows the commit log: a create takes, an update gives back what it no longer has, a
//! delete gives back everything. A write that wants an address reserves it first, so that no other write can have it
//! until the first is stored or has failed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::{body, new_body};
use crate::environment::Environment;
use crate::kinds::service;
use crate::network::ServiceNetwork;
use crate::storage::{Event, Record};

/// Ports of nodes that Services may use.
const PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// The cluster IPs and node ports of one server. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses {
    network: ServiceNetwork,
    allocations: Arc<Mutex<Allocations>>,
}

/// What is not free.
#[derive(Debug, Default)]
struct Allocations {
    addresses: Pool<u32>,
    ports: Pool<u16>,
}

/// The numbers of one range that are not free.
#[derive(Debug)]
struct Pool<T> {
    /// How many stored Services use a number. More than one can come from a data directory alone.
    stored: BTreeMap<T, usize>,
    /// Numbers that writes under way have taken. They may be in `stored` already when the write is done.
    reserved: BTreeSet<T>,
}

/// What one write has reserved. It is given back when this is dropped; what the write stored stays taken.
#[derive(Debug)]
pub(crate) struct Reservation {
    addresses: Vec<u32>,
    ports: Vec<u16>,
    from: Addresses,
}

/// Why an address or port cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Taken,
    OutOfRange,
}

/// What one Service uses.
#[derive(Debug, Default)]
struct InUse {
    address: Option<u32>,
    /// A port may serve TCP and UDP under one number, so this is a set.
    ports: BTreeSet<u16>,
}

impl InUse {
    fn read(service: &Value, network: &ServiceNetwork) -> Self {
        let address = service::cluster_ip(service);
        Self {
            address: address.and_then(|address| network.number(address)),
            ports: service::node_ports(service).into_iter().collect(),
        }
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self {
            stored: BTreeMap::new(),
            reserved: BTreeSet::new(),
        }
    }
}

impl<T: Ord + Copy> Pool<T> {
    fn is_free(&self, number: T) -> bool {
        !self.stored.contains_key(&number) && !self.reserved.contains(&number)
    }

    fn reserve(&mut self, number: T) -> Result<(), Refusal> {
        if !self.is_free(number) {
            return Err(Refusal::Taken);
        }
        self.reserved.insert(number);
        Ok(())
    }

    fn store(&mut self, number: T) {
        *self.stored.entry(number).or_default() += 1;
    }

    fn release(&mut self, number: T) {
        if let Some(users) = self.stored.get_mut(&number) {
            *users -= 1;
            if *users == 0 {
                self.stored.remove(&number);
            }
        }
    }
}

impl Allocations {
    fn store(&mut self, used: &InUse) {
        used.address
            .into_iter()
            .for_each(|a| self.addresses.store(a));
        used.ports.iter().for_each(|p| self.ports.store(*p));
    }

    fn release(&mut self, used: &InUse) {
        used.address
            .into_iter()
            .for_each(|a| self.addresses.release(a));
        used.ports.iter().for_each(|p| self.ports.release(*p));
    }
}

impl Addresses {
    /// Addresses of this network, all of them free.
    pub(super) fn new(network: ServiceNetwork) -> Self {
        Self {
            network,
            allocations: Arc::default(),
        }
    }

    /// The network that the addresses are of.
    pub(crate) fn network(&self) -> ServiceNetwork {
        self.network
    }

    /// Starts a write that may need addresses or ports.
    pub(crate) fn reservation(&self) -> Reservation {
        Reservation {
            addresses: Vec::new(),
            ports: Vec::new(),
            from: self.clone(),
        }
    }

    /// Follows a change of a Service.
    pub(super) fn apply(&self, event: &Event) {
        let old = event
            .previous()
            .and_then(|r| body(r))
            .map(|v| InUse::read(&v, &self.network));
        let new = new_body(event).map(|v| InUse::read(&v, &self.network));
        let mut allocations = self.allocations.lock();
        allocations.release(&old.unwrap_or_default());
        allocations.store(&new.unwrap_or_default());
    }

    /// What these Services use, and nothing else.
    pub(super) fn read<'a>(
        network: ServiceNetwork,
        services: impl Iterator<Item = &'a Arc<Record>>,
    ) -> Self {
        let mut allocations = Allocations::default();
        for service in services.filter_map(|record| body(record)) {
            allocations.store(&InUse::read(&service, &network));
        }
        Self {
            network,
            allocations: Arc::new(Mutex::new(allocations)),
        }
    }

    /// Takes over what another set of Services uses. Reservations stay: their writes are still under way.
    pub(super) fn replace(&self, with: &Self) {
        let mut with = with.allocations.lock();
        let mut own = self.allocations.lock();
        own.addresses.stored = std::mem::take(&mut with.addresses.stored);
        own.ports.stored = std::mem::take(&mut with.ports.stored);
    }

    /// The addresses and ports that stored Services use, with the number of their users.
    pub(super) fn stored(&self) -> (BTreeMap<u32, usize>, BTreeMap<u16, usize>) {
        let own = self.allocations.lock();
        (own.addresses.stored.clone(), own.ports.stored.clone())
    }
}

impl Reservation {
    /// Reserves any free address; none when all are taken.
    pub(crate) fn any_address(&mut self, environment: &Environment) -> Option<String> {
        let (network, size) = (self.from.network, self.from.network.size());
        let mut allocations = self.from.allocations.lock();
        // The first address names the network, the last is for broadcasts. Those next to the first are given out last, so
        // that Services can ask for them by name (ipallocator.go: calculateRangeOffset).
        let by_name = (size / 16).clamp(16, 256).min(size - 2);
        let any = size - 1 - by_name;
        let start = environment.below(u64::from(any)) as u32;
        let candidates = (0..any).map(|i| by_name + (start + i) % any);
        let mut candidates = candidates.chain(1..by_name);
        let offset =
            candidates.find(|offset| allocations.addresses.is_free(network.at(*offset)))?;
        let address = network.at(offset);
        allocations.addresses.reserved.insert(address);
        self.addresses.push(address);
        Some(Ipv4Addr::from(address).to_string())
    }

    /// Reserves this address.
    pub(crate) fn address(&mut self, address: &str) -> Result<(), Refusal> {
        let number = self.from.network.number(address);
        let number = number.ok_or(Refusal::OutOfRange)?;
        self.from.allocations.lock().addresses.reserve(number)?;
        self.addresses.push(number);
        Ok(())
    }

    /// Reserves any free port; none when all are taken.
    pub(crate) fn any_port(&mut self, environment: &Environment) -> Option<u16> {
        let mut allocations = self.from.allocations.lock();
        let count = u64::from(PORTS.end() - PORTS.start()) + 1;
        let start = environment.below(count);
        let port = (0..count)
            .map(|i| PORTS.start() + ((start + i) % count) as u16)
            .find(|port| allocations.ports.is_free(*port))?;
        allocations.ports.reserved.insert(port);
        self.ports.push(port);
        Some(port)
    }

    /// Reserves this port.
    pub(crate) fn port(&mut self, port: u16) -> Result<(), Refusal> {
        if self.ports.contains(&port) {
            return Ok(());
        }
        if !PORTS.contains(&port) {
            return Err(Refusal::OutOfRange);
        }
        self.from.allocations.lock().ports.reserve(port)?;
        self.ports.push(port);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut allocations = self.from.allocations.lock();
        for address in &self.addresses {
            allocations.addresses.reserved.remove(address);
        }
        for port in &self.ports {
            allocations.ports.reserved.remove(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_taken_until_the_write_fails_or_the_service_goes() {
        let (addresses, environment) = (Addresses::default(), Environment::system());
        let mut failed = addresses.reservation();
        failed.address("10.96.0.7").expect("free");
        let mut other = addresses.reservation();
        assert_eq!(other.address("10.96.0.7"), Err(Refusal::Taken));
        assert_eq!(other.address("10.0.0.7"), Err(Refusal::OutOfRange));
        assert_eq!(other.port(80), Err(Refusal::OutOfRange));
        drop(failed);
        other.address("10.96.0.7").expect("given back");
        let used = InUse {
            address: addresses.network.number("10.96.0.7"),
            ports: BTreeSet::new(),
        };
        addresses.allocations.lock().store(&used);
        drop(other);
        let taken = addresses.reservation().address("10.96.0.7");
        assert_eq!(taken, Err(Refusal::Taken), "stored");
        addresses.allocations.lock().release(&used);
        let mut all = addresses.reservation();
        all.address("10.96.0.7").expect("the Service is gone");
        let ports: BTreeSet<u16> = std::iter::from_fn(|| all.any_port(&environment)).collect();
        assert_eq!(ports.len(), PORTS.count());
    }

    #[test]
    fn addresses_next_to_the_first_are_given_out_last() {
        let network = "127.64.0.0/24".parse().expect("a range");
        let (addresses, environment) = (Addresses::new(network), Environment::system());
        let mut all = addresses.reservation();
        let given: Vec<String> = std::iter::from_fn(|| all.any_address(&environment)).collect();
        let last = |address: &String| address.parse::<Ipv4Addr>().expect("an address").octets()[3];
        let given: Vec<u8> = given.iter().map(last).collect();
        assert!(given[..239].iter().all(|last| (16..255).contains(last)));
        assert_eq!(given[239..], Vec::from_iter(1..16));
    }
}
