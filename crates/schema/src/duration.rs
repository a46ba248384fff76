//! Durations for humans: the ages in the columns of `kubectl get`.

/// Two or three significant figures of a duration in whole seconds, as the API server prints ages.
///
/// Clocks differ: up to one second into the future counts as now, more is `<invalid>`.
///
/// ```
/// use kubewright_schema::duration::human;
/// assert_eq!(human(130), "2m10s");
/// assert_eq!(human(86_400 * 30), "30d");
/// ```
pub fn human(seconds: i64) -> String {
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120.. => coarse(seconds),
    }
}

fn coarse(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    if minutes < 10 {
        pair(minutes, "m", seconds % 60, "s")
    } else if minutes < 60 * 3 {
        format!("{minutes}m")
    } else if hours < 8 {
        pair(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 24 * 8 {
        pair(days, "d", hours % 24, "h")
    } else if hours < 24 * 365 * 2 {
        format!("{days}d")
    } else if hours < 24 * 365 * 8 {
        pair(years, "y", days % 365, "d")
    } else {
        format!("{years}y")
    }
}

/// Both units, or only the larger one when the smaller is zero.
fn pair(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn durations_keep_two_or_three_significant_figures() {
        const MINUTE: i64 = 60;
        const HOUR: i64 = 60 * MINUTE;
        const DAY: i64 = 24 * HOUR;
        const YEAR: i64 = 365 * DAY;
        let cases = [
            (i64::MIN, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (130, "2m10s"),
            (3 * MINUTE + 4, "3m4s"),
            (10 * MINUTE - 1, "9m59s"),
            (10 * MINUTE + 59, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (8 * HOUR + 5 * MINUTE, "8h"),
            (8 * HOUR - 1, "7h59m"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY + 3 * HOUR, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 30 * DAY, "2y30d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR + 30 * DAY, "8y"),
            (i64::MAX, "292471208677y"),
        ];
        for (seconds, expect) in cases {
            assert_eq!(human(seconds), expect, "{seconds} seconds");
        }
    }
}
