//! Limits on what requests may cost.

/// Limits on what requests may cost together, as in Kubernetes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestLimits {
    /// Seats for reads. Together with those for writes they are shared out among the priority levels.
    pub reads: usize,
    /// Seats for writes, in addition to those for reads.
    pub writes: usize,
    /// Most watches at once for one user.
    pub watches_per_user: usize,
    /// Most bytes of request bodies and unread answers at once for one user; members of `system:masters` do not count.
    pub bytes_per_user: usize,
    /// Most bytes of request bodies and unread answers at once.
    pub bytes: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            reads: 400,
            writes: 200,
            watches_per_user: 10_000,
            bytes_per_user: 128 << 20,
            bytes: 512 << 20,
        }
    }
}
