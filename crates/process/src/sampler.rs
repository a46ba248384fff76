//! Looks at what containers use: in control groups where there are some, or else in `/proc`, once a second.
//!
//! Where there are no control groups nobody enforces limits of memory. Containers with one are looked at more often then, and
//! one that uses more than its limit is ended as the kernel would end it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::container::Running;
use crate::helper::message::Ask;
use crate::meter::OFTEN;
use crate::procfs::{self, Stat};

/// How often containers are looked at whose limits nobody else enforces.
const MORE_OFTEN: Duration = Duration::from_millis(100);

/// How long to wait before containers are looked at again.
pub(crate) fn pause(all: &[Arc<Running>]) -> Duration {
    if all.iter().any(|running| running.watched().is_some()) {
        MORE_OFTEN
    } else {
        OFTEN
    }
}

/// Looks at all containers once, and ends those that use more memory than they may.
pub(crate) fn sample(all: &[Arc<Running>]) {
    let now = Instant::now();
    let plain = all.iter().any(|running| running.cgroup().is_none());
    let processes = if plain {
        Processes::read()
    } else {
        Processes::default()
    };
    for running in all {
        let grouped = running.cgroup().and_then(|group| group.usage());
        let (cpu, memory) = grouped.unwrap_or_else(|| processes.usage(running));
        running.meter.add(now, cpu, memory);
        if running.watched().is_some_and(|limit| memory > limit) {
            running.mark_out_of_memory();
            running.ask(Ask::Kill);
        }
    }
}

/// The processes of this machine at one moment.
#[derive(Debug, Default)]
struct Processes {
    stats: BTreeMap<i32, Stat>,
    children: BTreeMap<i32, Vec<i32>>,
}

impl Processes {
    fn read() -> Self {
        let mut all = Self::default();
        for pid in procfs::pids() {
            if let Some(stat) = Stat::of(pid) {
                all.children.entry(stat.parent).or_default().push(pid);
                all.stats.insert(pid, stat);
            }
        }
        all
    }

    /// Processor time in nanoseconds and resident memory in bytes of everything below the helpers of a container.
    fn usage(&self, running: &Running) -> (u64, u64) {
        let helpers = [Some(running.pid), running.init];
        let (mut ticks, mut pages) = (0u64, 0u64);
        let mut next = vec![running.pid];
        while let Some(pid) = next.pop() {
            next.extend(self.children.get(&pid).into_iter().flatten());
            if let Some(stat) = self.stats.get(&pid)
                && !helpers.contains(&Some(pid))
            {
                ticks = ticks.saturating_add(stat.cpu);
                pages = pages.saturating_add(stat.resident);
            }
        }
        let second = rustix::param::clock_ticks_per_second().max(1);
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let nanoseconds = ticks.saturating_mul(1_000_000_000 / second);
        (nanoseconds, pages.saturating_mul(page))
    }
}
