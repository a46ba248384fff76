//! The types of objects that an expression constructs. Their fields are known when they meet the object they change.

use super::super::ast::{Construct, Kind, Node};
use super::super::cost::{self, Estimate};
use super::super::types::Type;
use super::{Checker, Construction};

const OBJECT: &str = "Object";
const PATCH: &str = "JSONPatch";
const PATCH_FIELDS: [&str; 4] = ["op", "path", "from", "value"];

impl<'a> Checker<'a> {
    pub(super) fn construct(&mut self, at: usize, construct: &'a Construct) -> (Type, Estimate) {
        let name = &*construct.type_name;
        let is_object = name == OBJECT || name.starts_with("Object.");
        let known = is_object || name == PATCH;
        if self.construction == Construction::Nothing || !known {
            return (self.undeclared(at, name), Estimate::default());
        }
        let mut cost = cost::MAP;
        for field in &construct.fields {
            if is_object {
                let expected = format!("{name}.{}", field.name);
                self.fits(&field.value, &expected);
            } else if !PATCH_FIELDS.contains(&&*field.name) {
                self.fail(field.value.at, format!("undefined field '{}'", field.name));
            }
            let checked = self.node(&field.value);
            cost = cost.saturating_add(checked.estimate.cost);
        }
        (Type::Dyn, Estimate::costing(cost))
    }

    /// An object within an object has the name of the way to it; so have the items of a list.
    fn fits(&mut self, node: &Node, expected: &str) {
        match &node.kind {
            Kind::Construct(inner) if &*inner.type_name != expected => {
                let found = &inner.type_name;
                self.fail(
                    node.at,
                    format!(
                        "unexpected type name \"{found}\", expected \"{expected}\", which matches field name path from root Object type"
                    ),
                );
            }
            Kind::List(items) => {
                for item in items {
                    self.fits(&item.value, expected);
                }
            }
            _ => {}
        }
    }
}
