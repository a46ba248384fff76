//! Bounds, enums, patterns and formats that have become tighter.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSON, JSONSchemaProps};

use crate::finding::Report;

const ADVICE: &str =
    "leave it as it was, or check it with a rule that lets old values pass, or make a new version";

pub(super) fn compare(
    path: &str,
    old: &JSONSchemaProps,
    new: &JSONSchemaProps,
    report: &mut Report,
) {
    sizes(path, old, new, report);
    bounds(path, old, new, report);
    values(path, old, new, report);
    texts(path, old, new, report);
}

fn sizes(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    let least = [
        ("minLength", old.min_length, new.min_length),
        ("minItems", old.min_items, new.min_items),
        ("minProperties", old.min_properties, new.min_properties),
    ];
    for (keyword, before, after) in least {
        if let Some(after) = after.filter(|after| *after > before.unwrap_or(0)) {
            report.error(path, tightened(keyword, before, after), ADVICE);
        }
    }
    let most = [
        ("maxLength", old.max_length, new.max_length),
        ("maxItems", old.max_items, new.max_items),
        ("maxProperties", old.max_properties, new.max_properties),
    ];
    for (keyword, before, after) in most {
        if let Some(after) = after.filter(|after| before.is_none_or(|before| *after < before)) {
            report.error(path, tightened(keyword, before, after), ADVICE);
        }
    }
}

fn bounds(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    let excludes = |flag: Option<bool>| flag == Some(true);
    if let Some(after) = new.minimum {
        let newly_excluded = excludes(new.exclusive_minimum) && !excludes(old.exclusive_minimum);
        if old
            .minimum
            .is_none_or(|before| after > before || (after == before && newly_excluded))
        {
            report.error(path, tightened("minimum", old.minimum, after), ADVICE);
        }
    }
    if let Some(after) = new.maximum {
        let newly_excluded = excludes(new.exclusive_maximum) && !excludes(old.exclusive_maximum);
        if old
            .maximum
            .is_none_or(|before| after < before || (after == before && newly_excluded))
        {
            report.error(path, tightened("maximum", old.maximum, after), ADVICE);
        }
    }
    if let Some(after) = new.multiple_of {
        let still_multiple = old
            .multiple_of
            .is_some_and(|before| after != 0.0 && (before / after).fract() == 0.0);
        if !still_multiple {
            report.error(
                path,
                tightened("multipleOf", old.multiple_of, after),
                ADVICE,
            );
        }
    }
}

fn tightened<T: std::fmt::Display>(keyword: &str, before: Option<T>, after: T) -> String {
    match before {
        Some(before) => format!("{keyword} has changed from {before} to {after}"),
        None => format!("{keyword} is now {after}"),
    }
}

fn values(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    let Some(after) = &new.enum_ else { return };
    let Some(before) = &old.enum_ else {
        let message = format!("only some values are allowed now: {}", list(after.iter()));
        report.error(path, message, ADVICE);
        return;
    };
    let gone = list(before.iter().filter(|value| !after.contains(value)));
    if !gone.is_empty() {
        report.error(
            path,
            format!("values are no longer allowed: {gone}"),
            ADVICE,
        );
    }
    let added = list(after.iter().filter(|value| !before.contains(value)));
    if !added.is_empty() {
        let advice =
            "make sure that older clients and controllers bear values that they do not know";
        report.hint(path, format!("there are new values: {added}"), advice);
    }
}

fn list<'a>(values: impl Iterator<Item = &'a JSON>) -> String {
    values
        .map(|value| value.0.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

fn texts(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    if let Some(after) = &new.pattern
        && old.pattern.as_ref() != Some(after)
    {
        let message = match &old.pattern {
            Some(before) => format!("the pattern has changed from {before} to {after}"),
            None => format!("there is now a pattern: {after}"),
        };
        report.error(path, message, ADVICE);
    }
    match (old.format.as_deref(), new.format.as_deref()) {
        (Some("int32"), Some("int64")) => {
            let advice = "older clients fail to read larger numbers";
            report.warning(path, "the format has changed from int32 to int64", advice);
        }
        (before, Some(after)) if before != Some(after) => {
            let message = match before {
                Some(before) => format!("the format has changed from {before} to {after}"),
                None => format!("there is now a format: {after}"),
            };
            report.error(path, message, ADVICE);
        }
        _ => {}
    }
}
