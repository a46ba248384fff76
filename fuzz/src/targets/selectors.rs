//! Selectors of labels and fields. What is printed reads as the same.

use kubewright_schema::selector::{FieldSelector, LabelSelector};

use super::{Verdict, start};

pub(super) fn label(input: &[u8]) -> Verdict {
    let Ok(text) = str::from_utf8(input) else {
        return Verdict::refused("not text");
    };
    match LabelSelector::parse(text) {
        Ok(selector) => {
            let printed = selector.to_string();
            let again = LabelSelector::parse(&printed);
            let again = again.unwrap_or_else(|error| panic!("{printed:?} reads, but {error}"));
            assert_eq!(
                again.to_string(),
                printed,
                "printing twice is printing once"
            );
            let labels: [(Box<str>, Box<str>); 1] = [("a".into(), "1".into())];
            assert_eq!(again.matches(&labels[..]), selector.matches(&labels[..]));
            Verdict::accepted(format!(
                "selector {:?}",
                selector.requirements().first().map(|r| r.rule())
            ))
        }
        Err(error) => Verdict::refused(start(&error.to_string())),
    }
}

pub(super) fn field(input: &[u8]) -> Verdict {
    let Ok(text) = str::from_utf8(input) else {
        return Verdict::refused("not text");
    };
    match FieldSelector::parse(text) {
        Ok(selector) => {
            let printed = selector.to_string();
            let again = FieldSelector::parse(&printed);
            let again = again.unwrap_or_else(|error| panic!("{printed:?} reads, but {error}"));
            assert_eq!(again.terms(), selector.terms(), "printing keeps terms");
            Verdict::accepted(format!(
                "selector {:?}",
                selector.terms().first().map(|t| t.operator)
            ))
        }
        Err(error) => Verdict::refused(start(&error.to_string())),
    }
}
