//! A figure beside that of a peer: the ratio, what we aim at, and by how much it is missed.

use std::fmt;

/// What a ratio is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

/// Our figure divided by another one, and the aim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    ratio: f64,
    of: &'static str,
    aim: Aim,
}

impl Verdict {
    /// Nothing when there is nothing to compare with.
    pub(crate) fn new(ours: f64, other: f64, of: &'static str, aim: Aim) -> Option<Self> {
        let ratio = ours / other;
        (ratio.is_finite() && ratio > 0.0).then_some(Self { ratio, of, aim })
    }

    /// By how much the aim is missed, as a share of it; nothing when it is reached.
    fn missed_by(&self) -> Option<f64> {
        let excess = match self.aim {
            Aim::AtMost(aim) => self.ratio / aim - 1.0,
            Aim::AtLeast(aim) => 1.0 - self.ratio / aim,
        };
        (excess > 0.0).then_some(excess)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, aim) = match self.aim {
            Aim::AtMost(aim) => ("≤", aim),
            Aim::AtLeast(aim) => ("≥", aim),
        };
        let ratio = match self.ratio {
            ..10.0 => format!("{:.2}", self.ratio),
            _ => format!("{:.0}", self.ratio),
        };
        let (ratio, of) = (ratio.as_str(), self.of);
        match self.missed_by() {
            None => write!(f, "{ratio} of {of} ({sign} {aim})"),
            Some(excess) => write!(
                f,
                "**{ratio} of {of} ({sign} {aim}): missed by {:.0} %**",
                excess * 100.0
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: f64, aim: Aim, expected: &str) {
        let verdict = Verdict::new(ours, 2.0, "a peer's", aim).map(|v| v.to_string());
        assert_eq!(verdict.as_deref(), Some(expected));
    }

    #[test]
    fn verdict_says_by_how_much_an_aim_is_missed() {
        check(0.5, Aim::AtMost(0.25), "0.25 of a peer's (≤ 0.25)");
        check(
            0.6,
            Aim::AtMost(0.25),
            "**0.30 of a peer's (≤ 0.25): missed by 20 %**",
        );
        check(40.0, Aim::AtLeast(8.0), "20 of a peer's (≥ 8)");
        check(
            6.0,
            Aim::AtLeast(4.0),
            "**3.00 of a peer's (≥ 4): missed by 25 %**",
        );
    }

    #[test]
    fn what_was_not_measured_has_no_verdict() {
        assert!(Verdict::new(1.0, 0.0, "a peer's", Aim::AtMost(1.0)).is_none());
        assert!(Verdict::new(0.0, 1.0, "a peer's", Aim::AtMost(1.0)).is_none());
    }
}
