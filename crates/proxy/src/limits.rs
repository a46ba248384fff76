//! How much a proxy may use: connections, time, and bytes that are on their way.

use std::time::Duration;

/// What a proxy may use at most.
#[derive(Debug, Clone)]
#[must_use]
#[non_exhaustive]
pub struct ProxyLimits {
    /// How many connections are open at once, over all Services. Further ones wait until one of these ends.
    pub connections: usize,
    /// How many clients of UDP ports are remembered, over all Services. Further ones push out the oldest.
    pub datagram_clients: usize,
    /// How long an endpoint may take to accept a connection before another one is tried.
    pub connect: Duration,
    /// How long a connection may be without a byte: a day, as `tcpEstablishedTimeout` of kube-proxy.
    pub idle: Duration,
    /// How long it may be so once one side has ended: an hour, as `tcpCloseWaitTimeout` of kube-proxy.
    pub half_closed: Duration,
    /// How long a client of a UDP port is remembered after its last datagram.
    pub datagrams: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            datagram_clients: 1_000,
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(24 * 3_600),
            half_closed: Duration::from_secs(3_600),
            datagrams: Duration::from_secs(60),
        }
    }
}

impl ProxyLimits {
    /// Sets how many connections are open at once.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Sets how long an endpoint may take to accept a connection.
    pub fn connect(mut self, connect: Duration) -> Self {
        self.connect = connect;
        self
    }

    /// Sets how long a connection may be without a byte, also when one side has ended.
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self.half_closed = self.half_closed.min(idle);
        self
    }
}
