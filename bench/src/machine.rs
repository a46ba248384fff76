//! The machine that figures were measured on, as far as it explains them.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// How many processes wanted a core in the last minute.
pub fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Cores, memory, kernel, and what else was going on.
pub fn describe(load_before: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel: Vec<_> = kernel.trim().split('.').take(2).collect();
    let busy = match load_before.parse::<f64>() {
        Ok(load) if load > cores as f64 / 2.0 => {
            ". Others used the machine too: some figures differ by a factor of two between runs"
        }
        _ => "",
    };
    format!(
        "{cores} cores shared by server and client, {} GB of memory, Linux {}; load average {load_before} before, {} after{busy}",
        memory() / 1_000_000,
        kernel.join("."),
        load_average(),
    )
}

/// Kilobytes of memory.
fn memory() -> u64 {
    field("/proc/meminfo", "MemTotal:")
}

/// Memory that nobody uses, in bytes.
pub fn available() -> u64 {
    field("/proc/meminfo", "MemAvailable:") * 1_024
}

/// Resident memory of a process in bytes; zero when it is gone.
pub fn resident(process: u32) -> u64 {
    field(&format!("/proc/{process}/status"), "VmRSS:") * 1_024
}

/// A figure of our own memory in bytes: `VmRSS:` is what there is, `VmHWM:` the most there was.
pub fn own(name: &str) -> u64 {
    field("/proc/self/status", name) * 1_024
}

/// How long this thread has had a processor.
pub fn processor_time() -> Duration {
    scheduled(Path::new("/proc/thread-self"))
}

/// How long the threads that this process has now have had a processor, all of them together.
pub fn processor_time_of_all_threads() -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    threads
        .flatten()
        .map(|thread| scheduled(&thread.path()))
        .sum()
}

fn scheduled(thread: &Path) -> Duration {
    let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Starts the count of the most memory there was afresh.
pub fn forget_peak() -> std::io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

/// The kilobytes that a file says after a name; zero when it does not.
fn field(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.map_or(0, kilobytes)
}

fn kilobytes(value: &str) -> u64 {
    let number = value.trim().split(' ').next();
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}
