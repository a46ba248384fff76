//! Control groups: limits of containers that the kernel enforces, what they use, and whether they ran out of memory.
//!
//! Both versions are used as they are found. Version 1 has a tree for each controller, in which a runtime makes groups below its
//! own; version 2 has one tree, in which a group that has processes cannot have limited groups below it, so that groups are made
//! beside the runtime's own, or at the top as root.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kubewright_cluster::node::runtime::ResourceLimits;

use crate::ending;
use crate::procfs::Stat;

/// What the names of groups of a runtime begin with; its process, when that started, and its identity follow.
const PREFIX: &str = "kubewright-";
/// Most processes and threads of a container, so that one cannot take all that the machine has.
const MOST_PROCESSES: u64 = 4_096;
/// The period of processor time, in microseconds.
const PERIOD: u64 = 100_000;
/// How often a group is removed whose last process has not gone yet.
const TRIES: u32 = 1_000;

/// Where groups of containers are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cgroups {
    /// A directory for each controller.
    V1(Controllers),
    /// One directory for all controllers.
    V2(PathBuf),
}

/// The directories of controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Controllers {
    memory: PathBuf,
    cpu: PathBuf,
    accounting: PathBuf,
    processes: PathBuf,
}

/// The groups of a runtime. Dropping it removes them, with what is in them.
#[derive(Debug)]
pub(crate) struct OwnCgroups(Cgroups);

/// Why the kernel does not limit what containers use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CgroupError {
    #[error("{path} cannot be read: {why}")]
    Read { path: &'static str, why: io::Error },
    #[error("there are no control groups")]
    Missing,
    #[error("control groups cannot be made: {0}")]
    Make(io::Error),
}

impl OwnCgroups {
    /// Makes a place for the groups of a runtime. What processes have left that were killed is removed.
    ///
    /// # Errors
    /// Why the kernel does not allow it.
    pub(crate) fn make(id: &str) -> Result<Self, CgroupError> {
        let found = Cgroups::of(id)?;
        for parent in found.directories().into_iter().filter_map(Path::parent) {
            clear_abandoned(parent);
        }
        // From here on what was made is removed whatever happens.
        let own = Self(found);
        own.0.make().map_err(CgroupError::Make)?;
        Ok(own)
    }

    /// Makes the group of a container with its limits.
    ///
    /// # Errors
    /// Which limit the kernel does not take.
    pub(crate) fn create(&self, name: &str, limits: &ResourceLimits) -> io::Result<Cgroup> {
        self.0.create(name, limits)
    }
}

impl Drop for OwnCgroups {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// The group of one container. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Cgroup(Cgroups);

impl Cgroups {
    /// Where the groups of a runtime of this process are to be.
    ///
    /// # Errors
    /// That this machine has none.
    fn of(id: &str) -> Result<Self, CgroupError> {
        let read = |path: &'static str| {
            fs::read_to_string(path).map_err(|why| CgroupError::Read { path, why })
        };
        let (mounts, own) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
        let own_pid = std::process::id().cast_signed();
        let started = Stat::of(own_pid).map_or(0, |stat| stat.started);
        let name = format!("{PREFIX}{own_pid}.{started}.{id}");
        match first(&mounts, &own) {
            Some(controllers) => Ok(Self::V1(controllers.below(&name))),
            None => second(&mounts, &own)
                .map(|beside| Self::V2(beside.join(&name)))
                .ok_or(CgroupError::Missing),
        }
    }

    fn directories(&self) -> Vec<&Path> {
        match self {
            Self::V1(all) => {
                let mut directories: Vec<&Path> =
                    vec![&all.memory, &all.cpu, &all.accounting, &all.processes];
                // Some controllers share a tree.
                directories.sort();
                directories.dedup();
                directories
            }
            Self::V2(directory) => vec![directory],
        }
    }

    fn make(&self) -> io::Result<()> {
        for directory in self.directories() {
            fs::create_dir_all(directory)?;
        }
        if let Self::V2(directory) = self {
            if let Some(parent) = directory.parent() {
                // Where it is switched on already, this may be forbidden.
                let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory +cpu +pids");
            }
            fs::write(
                directory.join("cgroup.subtree_control"),
                "+memory +cpu +pids",
            )?;
        }
        Ok(())
    }

    /// Ends what is in these groups and removes them.
    fn clear(&self) {
        for directory in self.directories() {
            clear(directory);
        }
    }

    fn create(&self, name: &str, limits: &ResourceLimits) -> io::Result<Cgroup> {
        let own = match self {
            Self::V1(controllers) => Self::V1(controllers.below(name)),
            Self::V2(directory) => Self::V2(directory.join(name)),
        };
        for directory in own.directories() {
            fs::create_dir_all(directory)?;
        }
        // From here on it is removed whatever happens.
        let group = Cgroup(own);
        group.limit(limits)?;
        Ok(group)
    }
}

impl Controllers {
    fn below(&self, name: &str) -> Self {
        Self {
            memory: self.memory.join(name),
            cpu: self.cpu.join(name),
            accounting: self.accounting.join(name),
            processes: self.processes.join(name),
        }
    }
}

impl Cgroup {
    fn limit(&self, limits: &ResourceLimits) -> io::Result<()> {
        let quota = limits.cpu.map(|milli| (milli * PERIOD / 1000).max(1000));
        match &self.0 {
            Cgroups::V1(all) => {
                write(&all.processes, "pids.max", MOST_PROCESSES)?;
                if let Some(bytes) = limits.memory {
                    write(&all.memory, "memory.limit_in_bytes", bytes)?;
                    // Where swap is counted it is not to help.
                    let _ = write(&all.memory, "memory.memsw.limit_in_bytes", bytes);
                }
                let shares = limits.cpu_request.map_or(2, |milli| milli * 1024 / 1000);
                write(&all.cpu, "cpu.shares", shares.max(2))?;
                if let Some(quota) = quota {
                    write(&all.cpu, "cpu.cfs_period_us", PERIOD)?;
                    write(&all.cpu, "cpu.cfs_quota_us", quota)?;
                }
            }
            Cgroups::V2(directory) => {
                write(directory, "pids.max", MOST_PROCESSES)?;
                if let Some(bytes) = limits.memory {
                    write(directory, "memory.max", bytes)?;
                    let _ = write(directory, "memory.swap.max", 0);
                }
                let shares = limits.cpu_request.map_or(2, |milli| milli * 1024 / 1000);
                // As a kubelet converts shares to weights.
                let weight = 1 + shares.max(2).saturating_sub(2) * 9999 / 262_142;
                write(directory, "cpu.weight", weight.clamp(1, 10_000))?;
                if let Some(quota) = quota {
                    fs::write(directory.join("cpu.max"), format!("{quota} {PERIOD}"))?;
                }
            }
        }
        Ok(())
    }

    /// The files that a process writes itself into.
    pub(crate) fn members(&self) -> Vec<PathBuf> {
        let directories = self.0.directories().into_iter();
        directories
            .map(|directory| directory.join("cgroup.procs"))
            .collect()
    }

    /// How often the kernel has ended a process of the container because there was no memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        match &self.0 {
            Cgroups::V1(all) => field(&all.memory.join("memory.oom_control"), "oom_kill"),
            Cgroups::V2(directory) => field(&directory.join("memory.events"), "oom_kill"),
        }
    }

    /// Processor time in nanoseconds, and the working set in bytes.
    pub(crate) fn usage(&self) -> Option<(u64, u64)> {
        match &self.0 {
            Cgroups::V1(all) => {
                let used = number(&all.memory.join("memory.usage_in_bytes"))?;
                let idle = field(&all.memory.join("memory.stat"), "total_inactive_file");
                let cpu = number(&all.accounting.join("cpuacct.usage"))?;
                Some((cpu, used.saturating_sub(idle)))
            }
            Cgroups::V2(directory) => {
                let used = number(&directory.join("memory.current"))?;
                let idle = field(&directory.join("memory.stat"), "inactive_file");
                let cpu = field(&directory.join("cpu.stat"), "usage_usec");
                Some((cpu.saturating_mul(1000), used.saturating_sub(idle)))
            }
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for directory in self.0.directories() {
            if fs::remove_dir(directory).is_err() {
                let directory = directory.to_owned();
                // Its last process may be on its way out, which nobody has to wait for.
                std::thread::spawn(move || end(&directory));
            }
        }
    }
}

/// Removes the groups of runtimes whose process has ended, with what is in them.
fn clear_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some(owner) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let mut parts = owner.splitn(3, '.');
        let numbers = (
            parts.next().and_then(|pid| pid.parse::<i32>().ok()),
            parts.next().and_then(|started| started.parse::<u64>().ok()),
        );
        let (Some(pid), Some(started)) = numbers else {
            continue;
        };
        if Stat::of(pid).is_none_or(|stat| stat.started != started || stat.state == 'Z') {
            clear(&entry.path());
        }
    }
}

/// Ends what is in a group and in those below it, and removes them.
fn clear(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            end(&entry.path());
        }
    }
    end(directory);
}

/// Ends what is in a group, and removes it.
fn end(directory: &Path) {
    for _ in 0..TRIES {
        match fs::remove_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => return,
        }
        let members = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        let own = std::process::id().cast_signed();
        let members = members.lines().filter_map(|line| line.parse().ok());
        let pids: Vec<i32> = members.filter(|pid| *pid > 1 && *pid != own).collect();
        ending::end(&pids, |_, _| true);
        // The kernel lets go of a group a moment after its last process, of which it does not tell.
        std::thread::yield_now();
    }
    tracing::debug!(path = %directory.display(), "a control group is left");
}

fn write(directory: &Path, file: &str, value: u64) -> io::Result<()> {
    let written = fs::write(directory.join(file), value.to_string());
    written.map_err(|error| io::Error::new(error.kind(), format!("{file} {value}: {error}")))
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// A number in a file of names and numbers; 0 when it is not there.
fn field(file: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(key, _)| *key == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// The directories of this process in the trees of version 1; nothing unless all are there.
fn first(mounts: &str, own: &str) -> Option<Controllers> {
    let of = |controller: &str| {
        let path = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let names = parts.next()?;
            let path = parts.next()?;
            names
                .split(',')
                .any(|name| name == controller)
                .then_some(path)
        })?;
        let (root, point) = mounted(mounts, "cgroup", controller)?;
        Some(directory(&root, &point, path))
    };
    Some(Controllers {
        memory: of("memory")?,
        cpu: of("cpu")?,
        accounting: of("cpuacct")?,
        processes: of("pids")?,
    })
}

/// The directory in the tree of version 2 below which groups can be made: the top for root, or that beside this process.
fn second(mounts: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, point) = mounted(mounts, "cgroup2", "")?;
    if nix::unistd::geteuid().is_root() && root == "/" {
        return Some(PathBuf::from(point));
    }
    let own = directory(&root, &point, path);
    own.parent()
        .filter(|parent| parent.starts_with(&point))
        .map(Path::to_owned)
}

/// Where a tree is mounted, and what of it: from `/proc/self/mountinfo`.
fn mounted(mounts: &str, kind: &str, option: &str) -> Option<(String, String)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (found, options) = (after.next()?, after.nth(1)?);
        let fits = option.is_empty() || options.split(',').any(|one| one == option);
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        (found == kind && fits).then(|| (root.to_owned(), point.to_owned()))
    })
}

/// A group as a directory, where only a part of the tree may be mounted.
fn directory(root: &str, point: &str, path: &str) -> PathBuf {
    let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
    Path::new(point).join(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_where_the_machine_has_them() {
        let mounts = "30 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      32 24 0:29 /docker/x /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      33 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = "4:memory:/user\n3:cpu,cpuacct:/\n2:pids:/docker/x/y\n0::/user/session\n";
        let found = first(mounts, own).expect("all are there");
        assert_eq!(found.memory, Path::new("/sys/fs/cgroup/memory/user"));
        assert_eq!(found.cpu, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(found.processes, Path::new("/sys/fs/cgroup/pids/y"));
        assert_eq!(first(mounts, "4:memory:/user\n"), None);
        let beside = if nix::unistd::geteuid().is_root() {
            ""
        } else {
            "/user"
        };
        let expected = format!("/sys/fs/cgroup/unified{beside}");
        assert_eq!(second(mounts, own), Some(PathBuf::from(expected)));
    }

    #[test]
    fn numbers_are_read_from_files_of_names() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("memory.events");
        fs::write(&file, "low 0\noom 3\noom_kill 2\n").expect("written");
        assert_eq!(field(&file, "oom_kill"), 2);
        assert_eq!(field(&file, "missing"), 0);
    }
}
