//! Cluster IPs and node ports of Services: each is given out once.
//!
//! What stored Services use follows the commit log: a create takes, an update gives back what it no longer has, a
//! delete gives back everything. A write that wants an address reserves it first, so that no other write can have it
//! until the first is stored or has failed. So do the ranges that addresses come from, and the addresses that somebody
//! else has: an IPAddress that the server did not make keeps its address from Services.
//!
//! The IPAddresses of Services are objects that the server writes because of them: tasks of the queue, as is what
//! becomes of ServiceCIDRs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::claims::AddressClaim;
use super::ranges::{Ranges, ServiceRange};
use super::{Task, body, new_body};
use crate::environment::Environment;
use crate::kinds::service;
use crate::network::ServiceNetwork;
use crate::storage::{Event, Record, Snapshot};

/// Ports of nodes that Services may use.
const PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// The cluster IPs and node ports of one server. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    network: ServiceNetwork,
    allocations: Arc<Mutex<Allocations>>,
}

/// What is not free.
#[derive(Debug)]
struct Allocations {
    ranges: Ranges,
    /// The keys of the stored Services that have an address. More than one can come from a data directory alone.
    services: BTreeMap<u32, BTreeSet<String>>,
    /// Addresses that writes under way have taken. They may be in `services` already when the write is done.
    reserved: BTreeSet<u32>,
    /// Addresses of IPAddresses that are not those of Services.
    claimed: BTreeSet<u32>,
    ports: Ports,
}

/// The node ports that are not free.
#[derive(Debug, Default)]
struct Ports {
    /// How many stored Services use a port. More than one can come from a data directory alone.
    stored: BTreeMap<u16, usize>,
    /// Ports that writes under way have taken. They may be in `stored` already when the write is done.
    reserved: BTreeSet<u16>,
}

/// The objects that addresses follow from.
pub(super) struct AddressObjects<'a> {
    pub(super) services: &'a Snapshot,
    pub(super) ranges: &'a Snapshot,
    pub(super) claims: &'a Snapshot,
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

/// Who has addresses that are of one ServiceCIDR and of no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeUse {
    Free,
    /// Writes that are under way.
    Reserved,
    Stored,
}

/// What one Service uses.
#[derive(Debug, Default)]
struct InUse {
    key: String,
    address: Option<u32>,
    /// A port may serve TCP and UDP under one number, so this is a set.
    ports: BTreeSet<u16>,
}

impl InUse {
    fn of(record: &Record) -> Option<Self> {
        Some(Self::read(record, &body(record)?))
    }

    fn read(record: &Record, service: &Value) -> Self {
        Self {
            key: record.key().to_owned(),
            address: service::cluster_ip(service).and_then(number),
            ports: service::node_ports(service).into_iter().collect(),
        }
    }
}

/// An IPv4 address as a number.
pub(super) fn number(address: &str) -> Option<u32> {
    address.parse::<Ipv4Addr>().ok().map(u32::from)
}

fn text(address: u32) -> String {
    Ipv4Addr::from(address).to_string()
}

impl Ports {
    fn is_free(&self, port: u16) -> bool {
        !self.stored.contains_key(&port) && !self.reserved.contains(&port)
    }

    fn release(&mut self, port: u16) {
        if let Some(users) = self.stored.get_mut(&port) {
            *users -= 1;
            if *users == 0 {
                self.stored.remove(&port);
            }
        }
    }
}

impl Allocations {
    fn new(network: ServiceNetwork) -> Self {
        Self {
            ranges: Ranges::new(network),
            services: BTreeMap::new(),
            reserved: BTreeSet::new(),
            claimed: BTreeSet::new(),
            ports: Ports::default(),
        }
    }

    fn is_free(&self, address: u32) -> bool {
        !self.services.contains_key(&address)
            && !self.reserved.contains(&address)
            && !self.claimed.contains(&address)
    }

    fn store(&mut self, used: &InUse) {
        if let Some(address) = used.address {
            let users = self.services.entry(address).or_default();
            users.insert(used.key.clone());
        }
        for port in &used.ports {
            *self.ports.stored.entry(*port).or_default() += 1;
        }
    }

    fn release(&mut self, used: &InUse) {
        if let Some(address) = used.address
            && let Some(users) = self.services.get_mut(&address)
        {
            users.remove(&used.key);
            if users.is_empty() {
                self.services.remove(&address);
            }
        }
        used.ports.iter().for_each(|port| self.ports.release(*port));
    }

    fn claim(&mut self, address: u32, claim: Option<&AddressClaim>) {
        if claim.is_some_and(|claim| !claim.is_managed) {
            self.claimed.insert(address);
        } else {
            self.claimed.remove(&address);
        }
    }

    /// What the server has to write because a Service has or had this address.
    fn tasks_of(&self, address: u32) -> impl Iterator<Item = Task> {
        let waiting = self.ranges.waiting_for(address).map(Task::service_cidr);
        waiting.chain([Task::IpAddress(text(address))])
    }
}

impl Addresses {
    /// Addresses of this network, all of them free.
    pub(super) fn new(network: ServiceNetwork) -> Self {
        Self {
            network,
            allocations: Arc::new(Mutex::new(Allocations::new(network))),
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
    pub(super) fn apply(&self, event: &Event) -> Vec<Task> {
        let old = event.previous().and_then(|record| InUse::of(record));
        let new = new_body(event).map(|body| InUse::read(event.record(), &body));
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let mut allocations = self.allocations.lock();
        allocations.release(&old);
        allocations.store(&new);
        if old.address == new.address {
            return Vec::new();
        }
        let changed = [old.address, new.address].into_iter().flatten();
        changed
            .flat_map(|address| allocations.tasks_of(address))
            .collect()
    }

    /// Follows a change of a ServiceCIDR. One that comes or goes can let others go.
    pub(super) fn apply_range(&self, event: &Event) -> Vec<Task> {
        let name = event.record().name();
        let range = new_body(event).map(|object| ServiceRange::read(&object));
        let is_update = event.previous().is_some() && range.is_some();
        let mut allocations = self.allocations.lock();
        allocations.ranges.put(name, range);
        let others = allocations.ranges.names();
        let others = others.filter(|other| !is_update && *other != name);
        let all = others.chain([name]).map(Task::service_cidr);
        all.collect()
    }

    /// Follows a change of an IPAddress. What somebody did to the one of a Service is undone.
    pub(super) fn apply_claim(&self, event: &Event) -> Vec<Task> {
        let name = event.record().name();
        let Some(address) = number(name) else {
            return Vec::new();
        };
        let claim = new_body(event).map(|object| AddressClaim::read(&object));
        let mut allocations = self.allocations.lock();
        allocations.claim(address, claim.as_ref());
        let is_managed = claim.is_some_and(|claim| claim.is_managed);
        let concerns = is_managed || allocations.services.contains_key(&address);
        let task = concerns.then(|| Task::IpAddress(name.to_owned()));
        task.into_iter().collect()
    }

    /// What these objects come to and nothing else, and what the server has to write because of them.
    pub(super) fn read(network: ServiceNetwork, objects: &AddressObjects<'_>) -> (Self, Vec<Task>) {
        let mut allocations = Allocations::new(network);
        for record in objects.services.range("", None) {
            if let Some(used) = InUse::of(record) {
                allocations.store(&used);
            }
        }
        for record in objects.ranges.range("", None) {
            let range = body(record).map(|object| ServiceRange::read(&object));
            allocations.ranges.put(record.name(), range);
        }
        let mut parents = BTreeMap::new();
        for record in objects.claims.range("", None) {
            if let (Some(address), Some(object)) = (number(record.name()), body(record)) {
                let claim = AddressClaim::read(&object);
                allocations.claim(address, Some(&claim));
                parents.insert(address, claim);
            }
        }
        let tasks = allocations.unfinished(&parents);
        let addresses = Self {
            network,
            allocations: Arc::new(Mutex::new(allocations)),
        };
        (addresses, tasks)
    }

    /// Takes over what another set of objects comes to. Reservations stay: their writes are still under way.
    pub(super) fn replace(&self, with: &Self) {
        let mut with = with.allocations.lock();
        let mut own = self.allocations.lock();
        let taken = std::mem::replace(&mut *with, Allocations::new(self.network));
        let reserved = std::mem::take(&mut own.reserved);
        let ports = std::mem::take(&mut own.ports.reserved);
        *own = taken;
        own.reserved = reserved;
        own.ports.reserved = ports;
    }

    /// The Service that has an address.
    pub(crate) fn owner(&self, address: &str) -> Option<String> {
        let allocations = self.allocations.lock();
        let users = allocations.services.get(&number(address)?)?;
        users.first().cloned()
    }

    /// Who has addresses that are of this ServiceCIDR alone.
    pub(crate) fn use_of(&self, service_cidr: &str) -> RangeUse {
        let allocations = self.allocations.lock();
        let depends = |address: &u32| allocations.ranges.is_only_in(service_cidr, *address);
        if allocations.services.keys().any(depends) {
            RangeUse::Stored
        } else if allocations.reserved.iter().any(depends) {
            RangeUse::Reserved
        } else {
            RangeUse::Free
        }
    }

    /// The addresses, ranges and ports of stored objects as text, for tests that compare.
    pub(super) fn describe(&self) -> String {
        let own = self.allocations.lock();
        let (services, claimed, ports) = (&own.services, &own.claimed, &own.ports.stored);
        format!(
            "{services:?} {claimed:?} {ports:?} {}",
            own.ranges.describe()
        )
    }
}

impl Allocations {
    /// What was not written before the server stopped.
    fn unfinished(&self, claims: &BTreeMap<u32, AddressClaim>) -> Vec<Task> {
        let missing = self.services.iter().filter(|&(address, users)| {
            let claim = claims.get(address);
            claim.is_none_or(|claim| claim.is_managed && Some(&claim.parent) != users.first())
        });
        let left = claims
            .iter()
            .filter(|&(address, claim)| claim.is_managed && !self.services.contains_key(address));
        let addresses = missing.map(|(address, _)| *address);
        let addresses = addresses.chain(left.map(|(address, _)| *address));
        let addresses = addresses.map(|address| Task::IpAddress(text(address)));
        let ranges = self.ranges.unsettled().map(Task::service_cidr);
        ranges.chain(addresses).collect()
    }
}

impl Reservation {
    /// Reserves any free address; none when all are taken.
    pub(crate) fn any_address(&mut self, environment: &Environment) -> Option<String> {
        let mut allocations = self.from.allocations.lock();
        let ranges = allocations.ranges.open();
        let address = ranges.into_iter().find_map(|range| {
            let mut candidates = range.candidates(environment);
            candidates.find(|address| allocations.is_free(*address))
        })?;
        allocations.reserved.insert(address);
        self.addresses.push(address);
        Some(text(address))
    }

    /// Reserves this address.
    pub(crate) fn address(&mut self, address: &str) -> Result<(), Refusal> {
        let mut allocations = self.from.allocations.lock();
        let number = number(address).filter(|number| allocations.ranges.has(*number));
        let number = number.ok_or(Refusal::OutOfRange)?;
        if !allocations.is_free(number) {
            return Err(Refusal::Taken);
        }
        allocations.reserved.insert(number);
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
        let mut allocations = self.from.allocations.lock();
        if !allocations.ports.is_free(port) {
            return Err(Refusal::Taken);
        }
        allocations.ports.reserved.insert(port);
        self.ports.push(port);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut allocations = self.from.allocations.lock();
        for address in &self.addresses {
            allocations.reserved.remove(address);
        }
        for port in &self.ports {
            allocations.ports.reserved.remove(port);
        }
    }
}

#[cfg(test)]
mod tests;
