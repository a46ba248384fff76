//! Whose turn it is: round robin over the endpoints of a port, and who stays with which.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

/// How many clients a port remembers; the one that was seen longest ago is forgotten first.
const MOST_CLIENTS: usize = 10_000;

/// The endpoints of a port, and whose turn it is. Without endpoints it gives none.
#[derive(Debug, Default)]
pub(crate) struct Balancer {
    backends: Vec<SocketAddr>,
    next: usize,
    /// How long a client stays with its endpoint, where it does.
    affinity: Option<Duration>,
    clients: BTreeMap<IpAddr, (SocketAddr, Instant)>,
}

impl Balancer {
    /// Puts other endpoints in place of those there were. Clients whose endpoint is gone get another one.
    pub(crate) fn set(&mut self, backends: Vec<SocketAddr>, affinity: Option<Duration>) {
        self.backends = backends;
        self.affinity = affinity;
        let Self {
            backends, clients, ..
        } = self;
        if affinity.is_none() {
            clients.clear();
        }
        clients.retain(|_, (backend, _)| backends.contains(backend));
    }

    /// The endpoints in the order in which they are to be tried for this client.
    pub(crate) fn order(&mut self, client: IpAddr, now: Instant) -> Vec<SocketAddr> {
        let count = self.backends.len();
        if count == 0 {
            return Vec::new();
        }
        let start = self.next % count;
        self.next = (start + 1) % count;
        let mut order = self.backends.clone();
        order.rotate_left(start);
        if let Some(at) = self
            .remembered(client, now)
            .and_then(|own| order.iter().position(|b| *b == own))
        {
            order[..=at].rotate_right(1);
        }
        order
    }

    /// Notes that a client is connected with this endpoint.
    pub(crate) fn connected(&mut self, client: IpAddr, backend: SocketAddr, now: Instant) {
        if self.affinity.is_none() {
            return;
        }
        if self.clients.len() >= MOST_CLIENTS && !self.clients.contains_key(&client) {
            let oldest = self.clients.iter().min_by_key(|(_, (_, seen))| *seen);
            if let Some(oldest) = oldest.map(|(client, _)| *client) {
                self.clients.remove(&oldest);
            }
        }
        self.clients.insert(client, (backend, now));
    }

    fn remembered(&self, client: IpAddr, now: Instant) -> Option<SocketAddr> {
        let (backend, seen) = self.clients.get(&client)?;
        (now.duration_since(*seen) < self.affinity?).then_some(*backend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 65, 0, last], 8080))
    }

    fn client(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    fn first(balancer: &mut Balancer, client: IpAddr, now: Instant) -> Option<SocketAddr> {
        let chosen = balancer.order(client, now).first().copied();
        chosen.inspect(|backend| balancer.connected(client, *backend, now))
    }

    #[tokio::test(start_paused = true)]
    async fn endpoints_take_turns_and_all_are_tried() {
        let (mut balancer, now) = (Balancer::default(), Instant::now());
        assert_eq!(balancer.order(client(1), now), []);
        balancer.set(vec![backend(2), backend(3), backend(4)], None);
        let orders: Vec<_> = (0..4).map(|_| balancer.order(client(1), now)).collect();
        assert_eq!(orders[0], [backend(2), backend(3), backend(4)]);
        assert_eq!(orders[1], [backend(3), backend(4), backend(2)]);
        assert_eq!(orders[3], orders[0]);
        balancer.set(vec![backend(9)], None);
        assert_eq!(balancer.order(client(1), now), [backend(9)]);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_stay_with_their_endpoint_until_it_is_gone_or_the_time_is_over() {
        let (mut balancer, now) = (Balancer::default(), Instant::now());
        let all = vec![backend(2), backend(3), backend(4)];
        balancer.set(all.clone(), Some(Duration::from_secs(10)));
        let own = first(&mut balancer, client(1), now);
        let other = first(&mut balancer, client(2), now);
        assert_ne!(own, other);
        for seconds in [5, 14, 23] {
            let later = now + Duration::from_secs(seconds);
            assert_eq!(
                first(&mut balancer, client(1), later),
                own,
                "after {seconds} s"
            );
        }
        let order = balancer.order(client(1), now + Duration::from_secs(24));
        assert_eq!(order.first().copied(), own);
        assert_eq!(order.len(), 3, "the others are tried when it refuses");
        let rest: Vec<_> = all.into_iter().filter(|b| Some(*b) != own).collect();
        balancer.set(rest, Some(Duration::from_secs(10)));
        assert_ne!(first(&mut balancer, client(1), now), own);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_remembered_clients_is_bounded() {
        let (mut balancer, now) = (Balancer::default(), Instant::now());
        balancer.set(vec![backend(2)], Some(Duration::from_secs(10)));
        for number in 0..MOST_CLIENTS as u32 + 50 {
            let client = IpAddr::from(std::net::Ipv4Addr::from(number));
            balancer.connected(
                client,
                backend(2),
                now + Duration::from_nanos(number.into()),
            );
        }
        assert_eq!(balancer.clients.len(), MOST_CLIENTS);
        assert!(!balancer.clients.contains_key(&IpAddr::from([0, 0, 0, 0])));
    }
}
