//! Ends processes that are not our children, and waits until they have ended.

use std::os::fd::{AsFd as _, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::procfs::Stat;

/// How long one may take to end, in milliseconds; one that hangs in the kernel is tried again.
const WITHIN: u16 = 500;

/// Kills processes and waits until they have ended. Those whose start `is_meant` does not know are left alone: a number may be
/// another process's by now.
pub(crate) fn end(pids: &[i32], is_meant: impl Fn(i32, &Stat) -> bool) {
    let opened = |pid: &i32| -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(*pid)?, PidfdFlags::empty()).ok()?;
        // Looked at again now that its number cannot become another's.
        let stat = Stat::of(*pid)?;
        is_meant(*pid, &stat).then_some(handle)
    };
    let handles: Vec<OwnedFd> = pids.iter().filter_map(opened).collect();
    for handle in &handles {
        // It may have ended by itself.
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
    for handle in &handles {
        let mut watched = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut watched, PollTimeout::from(WITHIN));
    }
}
