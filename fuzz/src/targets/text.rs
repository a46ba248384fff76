//! Small languages inside of values: quantities and JSON paths.

use kubewright_schema::crd::JsonPath;
use kubewright_schema::quantity::Quantity;
use serde_json::json;

use super::{Verdict, start};

pub(super) fn quantity(input: &[u8]) -> Verdict {
    let Ok(text) = str::from_utf8(input) else {
        return Verdict::refused("not text");
    };
    match Quantity::parse(text) {
        Ok(quantity) => {
            let printed = quantity.to_string();
            let again = Quantity::parse(&printed);
            let again = again.unwrap_or_else(|error| panic!("{printed:?} reads, but {error}"));
            assert_eq!(
                again.to_string(),
                printed,
                "printing twice is printing once"
            );
            let _ = (
                again.value(),
                again.milli_value(),
                again.checked_add(&quantity),
            );
            Verdict::accepted(format!("{:?}", quantity.format()))
        }
        Err(error) => Verdict::refused(start(&error.to_string())),
    }
}

pub(super) fn json_path(input: &[u8]) -> Verdict {
    let Ok(text) = str::from_utf8(input) else {
        return Verdict::refused("not text");
    };
    match JsonPath::parse(text) {
        Ok(path) => {
            let document = json!({"a": [{"b": 1, "c": "x"}, {"b": 2}], "d": {"e": null, "f.g": [[1], [2, 3]]}});
            Verdict::accepted(format!("found {}", path.find(&document).len().min(1)))
        }
        Err(error) => Verdict::refused(start(&error.to_string())),
    }
}
