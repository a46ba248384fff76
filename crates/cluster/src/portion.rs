//! Numbers that may be given as a part of a whole: `3` or `"25%"`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a part of a pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To the next whole pod.
    Up,
    /// To the whole pods in it.
    Down,
}

/// How many of `total` are meant. None for what is neither a number nor a percentage; validation refuses those.
pub(crate) fn of(portion: &IntOrString, total: i32, round: Round) -> Option<i32> {
    let percent = match portion {
        IntOrString::Int(number) => return Some(*number),
        IntOrString::String(text) => text.strip_suffix('%')?.parse::<i32>().ok()?,
    };
    let hundredths = i64::from(percent) * i64::from(total);
    let up = i64::from(round == Round::Up && hundredths.rem_euclid(100) != 0);
    let whole = hundredths.div_euclid(100) + up;
    Some(i32::try_from(whole).unwrap_or(if whole < 0 { i32::MIN } else { i32::MAX }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, total: i32, up: Option<i32>, down: Option<i32>) {
        let portion = match text.parse() {
            Ok(number) => IntOrString::Int(number),
            Err(_) => IntOrString::String(text.to_owned()),
        };
        assert_eq!(
            of(&portion, total, Round::Up),
            up,
            "{portion:?} of {total}, up"
        );
        assert_eq!(
            of(&portion, total, Round::Down),
            down,
            "{portion:?} of {total}, down"
        );
    }

    #[test]
    fn percentages_round_the_way_asked() {
        check("3", 10, Some(3), Some(3));
        check("0", 10, Some(0), Some(0));
        check("25%", 10, Some(3), Some(2));
        check("25%", 4, Some(1), Some(1));
        check("25%", 1, Some(1), Some(0));
        check("0%", 7, Some(0), Some(0));
        check("100%", 7, Some(7), Some(7));
        check("100%", i32::MAX, Some(i32::MAX), Some(i32::MAX));
        check("200%", i32::MAX, Some(i32::MAX), Some(i32::MAX));
    }

    #[test]
    fn what_is_no_number_has_no_value() {
        for text in ["", "%", "a few", "1.5%", "99999999999%"] {
            check(text, 10, None, None);
        }
    }
}
