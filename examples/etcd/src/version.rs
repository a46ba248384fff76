//! Versions of etcd: which image runs, and which one may follow.

use std::fmt;
use std::str::FromStr;

/// A release of etcd, such as `3.5.21`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number; data of another major version cannot be read.
    pub major: u16,
    /// The second number; members of a cluster may differ by one.
    pub minor: u16,
    /// The third number; members may differ freely.
    pub patch: u16,
}

/// A text that is not a version of three numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version such as 3.5.21")]
pub struct NotAVersion(String);

impl Version {
    /// Whether a cluster of this version can be upgraded to another one member by member: patches go both ways, minor versions
    /// one at a time and never back.
    pub fn may_become(self, next: Version) -> bool {
        let step = i32::from(next.minor) - i32::from(self.minor);
        self.major == next.major && (0..=1).contains(&step)
    }
}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let wrong = || NotAVersion(text.chars().take(40).collect());
        let numbers: Vec<&str> = text.split('.').collect();
        let [major, minor, patch] = numbers[..] else {
            return Err(wrong());
        };
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| digits).ok_or_else(wrong)
        };
        Ok(Self {
            major: number(major)?,
            minor: number(minor)?,
            patch: number(patch)?,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers() {
        let version: Version = "3.5.21".parse().expect("a version");
        assert_eq!(version.to_string(), "3.5.21");
        for wrong in [
            "",
            "3",
            "3.5",
            "v3.5.1",
            "3.5.1-rc.0",
            "3.+5.1",
            "3.5.99999",
            "3..1",
        ] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn minor_versions_go_up_one_at_a_time() {
        let check = |from: &str, to: &str| {
            let version = |text: &str| text.parse::<Version>().expect("a version");
            version(from).may_become(version(to))
        };
        assert!(check("3.4.23", "3.5.1"));
        assert!(check("3.5.21", "3.5.1"));
        assert!(!check("3.4.23", "3.6.0"), "it skips 3.5");
        assert!(!check("3.5.1", "3.4.23"), "etcd does not go back");
        assert!(!check("3.5.1", "4.0.0"));
    }
}
