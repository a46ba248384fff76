//! The machine that figures were measured on, as far as it explains them.

use std::fs;

/// How many processes wanted a core in the last minute.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Cores, memory, kernel, and what else was going on.
pub(crate) fn describe(load_before: &str) -> String {
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
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.map_or(0, kilobytes)
}

/// Resident memory of a process in bytes; zero when it is gone.
pub(crate) fn resident(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let resident = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    resident.map_or(0, |value| kilobytes(value) * 1_024)
}

fn kilobytes(value: &str) -> u64 {
    let number = value.trim().split(' ').next();
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}
