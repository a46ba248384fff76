//! What `/proc` tells about processes.

use std::fs;

/// The numbers of all processes that there are.
pub(crate) fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// A process as `/proc/PID/stat` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) parent: i32,
    /// The process that leads, or led, its session. The number is not given to another for as long as the session has members.
    pub(crate) session: i32,
    /// Processor time in clock ticks.
    pub(crate) cpu: u64,
    /// When it started, in clock ticks since the machine did: tells it from a later process of the same number.
    pub(crate) started: u64,
    /// Resident memory in pages.
    pub(crate) resident: u64,
    pub(crate) state: char,
}

impl Stat {
    /// Reads what is known of a process; nothing when it has ended.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name of the program may have anything in it, so the fields are counted from its last parenthesis.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The third field of `proc_pid_stat(5)` is the first here.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            cpu: number(14)?.saturating_add(number(15)?),
            started: number(22)?,
            resident: number(24)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_shift_the_fields() {
        let text = "7 (a) b (c) S 3 7 7 0 -1 4194304 1 2 3 4 50 60 7 8 20 0 1 0 99 1000 25 18446744073709551615";
        let stat = Stat::parse(text).expect("it is whole");
        assert_eq!((stat.parent, stat.session, stat.cpu), (3, 7, 110));
        assert_eq!((stat.started, stat.resident), (99, 25));
        assert_eq!(Stat::parse("7 (short) S 3"), None);
        let own = i32::try_from(std::process::id()).expect("in range");
        assert!(Stat::of(own).is_some_and(|stat| stat.resident > 0));
    }
}
