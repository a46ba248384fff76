//! Addresses and ports of Services: each is given out once.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::environment::Environment;

/// First address of the range of Services, a /16.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const ADDRESSES: u32 = 1 << 16;
/// Ports of nodes that Services may use.
const PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// What is taken.
#[derive(Debug, Clone, Default)]
struct Taken {
    addresses: BTreeSet<u32>,
    ports: BTreeSet<u16>,
}

/// Gives out addresses and ports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses(Arc<Mutex<Taken>>);

/// What one write has taken. Given back when the write does not happen.
#[derive(Debug)]
pub(crate) struct Claims {
    addresses: Vec<u32>,
    ports: Vec<u16>,
    from: Addresses,
}

impl Addresses {
    /// Starts a write.
    pub(crate) fn claims(&self) -> Claims {
        Claims {
            addresses: Vec::new(),
            ports: Vec::new(),
            from: self.clone(),
        }
    }

    /// What is taken here is taken there, from now on independently.
    pub(crate) fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().clone())))
    }

    /// Forgets what is taken and takes what is taken elsewhere.
    pub(crate) fn restore(&self, from: &Self) {
        let taken = from.0.lock().clone();
        *self.0.lock() = taken;
    }

    /// Marks what an existing Service uses.
    pub(crate) fn adopt(&self, address: &str, ports: &[u16]) {
        let mut taken = self.0.lock();
        taken.addresses.extend(number(address));
        taken.ports.extend(ports);
    }

    /// Gives back what a deleted Service used.
    pub(crate) fn release(&self, address: &str, ports: &[u16]) {
        let mut taken = self.0.lock();
        if let Some(number) = number(address) {
            taken.addresses.remove(&number);
        }
        for port in ports {
            taken.ports.remove(port);
        }
    }
}

impl Claims {
    /// Takes any free address; none when all are taken.
    pub(crate) fn address(&mut self, environment: &Environment) -> Option<String> {
        let mut taken = self.from.0.lock();
        let start = environment.below(u64::from(ADDRESSES)) as u32;
        let mut candidates = (0..ADDRESSES).map(|i| (start + i) % ADDRESSES);
        // The first address names the network, the last is for broadcasts.
        let offset = candidates
            .find(|o| *o != 0 && *o != ADDRESSES - 1 && !taken.addresses.contains(&(FIRST + o)))?;
        taken.addresses.insert(FIRST + offset);
        self.addresses.push(FIRST + offset);
        Some(Ipv4Addr::from(FIRST + offset).to_string())
    }

    /// Takes this address.
    pub(crate) fn this_address(&mut self, address: &str) -> Result<(), Refusal> {
        let number = number(address).ok_or(Refusal::OutOfRange)?;
        if !self.from.0.lock().addresses.insert(number) {
            return Err(Refusal::Taken);
        }
        self.addresses.push(number);
        Ok(())
    }

    /// Takes any free port; none when all are taken.
    pub(crate) fn port(&mut self, environment: &Environment) -> Option<u16> {
        let mut taken = self.from.0.lock();
        let count = u64::from(PORTS.end() - PORTS.start()) + 1;
        let start = environment.below(count);
        let port = (0..count)
            .map(|i| PORTS.start() + ((start + i) % count) as u16)
            .find(|p| !taken.ports.contains(p))?;
        taken.ports.insert(port);
        self.ports.push(port);
        Some(port)
    }

    /// Takes this port.
    pub(crate) fn this_port(&mut self, port: u16) -> Result<(), Refusal> {
        if !PORTS.contains(&port) {
            return Err(Refusal::OutOfRange);
        }
        if !self.from.0.lock().ports.insert(port) {
            return Err(Refusal::Taken);
        }
        self.ports.push(port);
        Ok(())
    }

    /// The write happened: what was taken stays taken.
    pub(crate) fn keep(mut self) {
        self.addresses.clear();
        self.ports.clear();
    }
}

/// Why an address or port cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Taken,
    OutOfRange,
}

impl Drop for Claims {
    fn drop(&mut self) {
        let mut taken = self.from.0.lock();
        for address in &self.addresses {
            taken.addresses.remove(address);
        }
        for port in &self.ports {
            taken.ports.remove(port);
        }
    }
}

fn number(address: &str) -> Option<u32> {
    let number = u32::from(address.parse::<Ipv4Addr>().ok()?);
    (FIRST..FIRST + ADDRESSES)
        .contains(&number)
        .then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_is_taken_until_the_write_fails_or_the_service_goes() {
        let (addresses, environment) = (Addresses::default(), Environment::system());
        let mut failed = addresses.claims();
        failed.this_address("10.96.0.7").expect("free");
        let mut other = addresses.claims();
        assert_eq!(other.this_address("10.96.0.7"), Err(Refusal::Taken));
        assert_eq!(other.this_address("10.0.0.7"), Err(Refusal::OutOfRange));
        assert_eq!(other.this_port(80), Err(Refusal::OutOfRange));
        drop(failed);
        other.this_address("10.96.0.7").expect("given back");
        other.keep();
        assert_eq!(
            addresses.claims().this_address("10.96.0.7"),
            Err(Refusal::Taken)
        );
        addresses.release("10.96.0.7", &[]);
        let mut claims = addresses.claims();
        let ports: BTreeSet<u16> = std::iter::from_fn(|| claims.port(&environment)).collect();
        assert_eq!(ports.len(), PORTS.count());
    }
}
