//! Statistics of informers in the Prometheus text format.
//!
//! | series | type | labels |
//! |---|---|---|
//! | `informer_objects` | gauge | `name` |
//! | `informer_bytes` | gauge | `name` |
//! | `informer_synced` | gauge | `name` |
//! | `informer_store_resource_version` | gauge | `name` |
//! | `informer_queued_items` | gauge | `name` |
//! | `informer_handler_backlog` | gauge | `name`, `handler` |
//! | `informer_relists_total` | counter | `name` |
//! | `informer_watch_events_total` | counter | `name` |
//! | `reflector_lists_total` | counter | `name`, `mode`: `list` or `stream` |
//! | `reflector_watches_total` | counter | `name` |
//! | `reflector_failures_total` | counter | `name` |
//!
//! `informer_queued_items` and `informer_store_resource_version` are client-go's, the latter with its last 15 digits as there;
//! it is left out where the server's versions are not numbers. `reflector_lists_total` and `reflector_watches_total` have
//! the names that client-go declares and does not export.
//!
//! Series of an informer whose [`Stats::cluster`] is set have the label `cluster` as well.

use std::fmt::{self, Display, Write};

use crate::stats::Stats;

/// More digits than this do not fit into the number that Prometheus knows.
const DIGITS: usize = 15;

/// Writes all series of these informers.
///
/// # Errors
/// Only those of `out`.
pub fn write(informers: &[Stats], out: &mut impl Write) -> fmt::Result {
    for series in &SERIES {
        writeln!(out, "# HELP {} {}", series.name, series.help)?;
        writeln!(out, "# TYPE {} {}", series.name, series.kind)?;
        for stats in informers {
            let name = escape(&stats.name);
            let cluster = match stats.cluster.as_str() {
                "" => String::new(),
                cluster => label("cluster", escape(cluster)),
            };
            for (labels, value) in (series.values)(stats) {
                writeln!(
                    out,
                    "{}{{name=\"{name}\"{cluster}{labels}}} {value}",
                    series.name
                )?;
            }
        }
    }
    Ok(())
}

struct Series {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// Further labels, with a comma in front, and values.
    values: fn(&Stats) -> Vec<(String, u64)>,
}

static SERIES: [Series; 11] = [
    Series {
        name: "informer_objects",
        kind: "gauge",
        help: "Objects in the store.",
        values: |stats| one(stats.objects as u64),
    },
    Series {
        name: "informer_bytes",
        kind: "gauge",
        help: "Bytes that the objects in the store take.",
        values: |stats| one(stats.bytes as u64),
    },
    Series {
        name: "informer_synced",
        kind: "gauge",
        help: "Whether the store has had a first whole state.",
        values: |stats| one(u64::from(stats.synced)),
    },
    Series {
        name: "informer_store_resource_version",
        kind: "gauge",
        help: "The resource version that the store has reached, its last 15 digits.",
        values: |stats| last_digits(&stats.resource_version).map_or_else(Vec::new, one),
    },
    Series {
        name: "informer_queued_items",
        kind: "gauge",
        help: "Changes that wait to be applied to the store.",
        values: |stats| one(stats.queued as u64),
    },
    Series {
        name: "informer_handler_backlog",
        kind: "gauge",
        help: "Events that a handler has still to hear.",
        values: |stats| {
            let each = stats.backlogs.iter().enumerate();
            each.map(|(handler, waiting)| (label("handler", handler), *waiting as u64))
                .collect()
        },
    },
    Series {
        name: "informer_relists_total",
        kind: "counter",
        help: "Whole states that came after the first.",
        values: |stats| one(stats.relists),
    },
    Series {
        name: "informer_watch_events_total",
        kind: "counter",
        help: "Watch events that came, bookmarks included.",
        values: |stats| one(stats.events),
    },
    Series {
        name: "reflector_lists_total",
        kind: "counter",
        help: "Lists asked for, page by page or as a stream.",
        values: |stats| {
            vec![
                (label("mode", "list"), stats.lists),
                (label("mode", "stream"), stats.streams),
            ]
        },
    },
    Series {
        name: "reflector_watches_total",
        kind: "counter",
        help: "Watches asked for, streamed lists aside.",
        values: |stats| one(stats.watches),
    },
    Series {
        name: "reflector_failures_total",
        kind: "counter",
        help: "Failures that cost a delay.",
        values: |stats| one(stats.failures),
    },
];

fn one(value: u64) -> Vec<(String, u64)> {
    vec![(String::new(), value)]
}

fn label(name: &str, value: impl Display) -> String {
    format!(",{name}=\"{value}\"")
}

fn last_digits(version: &str) -> Option<u64> {
    let digits = version.bytes().all(|byte| byte.is_ascii_digit());
    let start = version.len().saturating_sub(DIGITS);
    version.get(start..).filter(|_| digits)?.parse().ok()
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_its_help_its_type_and_its_values() {
        let stats = Stats {
            cluster: String::new(),
            name: "/api/v1/\"pods\"".to_owned(),
            objects: 3,
            bytes: 900,
            resource_version: "12345678901234567890".to_owned(),
            synced: true,
            lists: 1,
            streams: 2,
            watches: 4,
            relists: 5,
            events: 6,
            failures: 7,
            queued: 8,
            backlogs: vec![9, 0],
        };
        let mut text = String::new();
        write(&[stats], &mut text).expect("a string takes everything");
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let name = r#"name="/api/v1/\"pods\"""#;
        let expected = [
            format!("informer_objects{{{name}}} 3"),
            format!("informer_bytes{{{name}}} 900"),
            format!("informer_synced{{{name}}} 1"),
            format!("informer_store_resource_version{{{name}}} 678901234567890"),
            format!("informer_queued_items{{{name}}} 8"),
            format!("informer_handler_backlog{{{name},handler=\"0\"}} 9"),
            format!("informer_handler_backlog{{{name},handler=\"1\"}} 0"),
            format!("informer_relists_total{{{name}}} 5"),
            format!("informer_watch_events_total{{{name}}} 6"),
            format!("reflector_lists_total{{{name},mode=\"list\"}} 1"),
            format!("reflector_lists_total{{{name},mode=\"stream\"}} 2"),
            format!("reflector_watches_total{{{name}}} 4"),
            format!("reflector_failures_total{{{name}}} 7"),
        ];
        assert_eq!(values, expected);
        assert_eq!(text.matches("# TYPE").count(), SERIES.len());
    }

    #[test]
    fn informers_of_two_clusters_have_series_of_their_own() {
        let of = |cluster: &str, objects| Stats {
            cluster: cluster.to_owned(),
            name: "/api/v1/pods".to_owned(),
            objects,
            ..Stats::default()
        };
        let mut text = String::new();
        write(&[of("", 1), of("edge \"1\"", 2)], &mut text).expect("a string takes everything");
        let lines = text.lines();
        let objects: Vec<&str> = lines
            .filter(|line| line.starts_with("informer_objects"))
            .collect();
        let expected = [
            r#"informer_objects{name="/api/v1/pods"} 1"#,
            r#"informer_objects{name="/api/v1/pods",cluster="edge \"1\""} 2"#,
        ];
        assert_eq!(objects, expected);
        assert_eq!(text.matches("# TYPE").count(), SERIES.len());
    }

    #[test]
    fn version_that_is_no_number_is_left_out() {
        let cases = [
            ("", None),
            ("7", Some(7)),
            ("0000000000000000042", Some(42)),
            ("a7", None),
            ("ä", None),
        ];
        for (version, expected) in cases {
            assert_eq!(last_digits(version), expected, "{version}");
        }
    }
}
