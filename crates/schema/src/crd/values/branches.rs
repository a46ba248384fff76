//! The combinators: `anyOf`, `oneOf`, `allOf` and `not`.

use super::super::failure::{Outcome, invalid_nowhere};
use super::{Node, Place, Values};
use crate::rules::Rules;

impl Values<'_> {
    pub(super) fn check_branches(&self, place: &Place<'_>, rules: &Rules) -> Outcome {
        let mut out = Outcome::default();
        if !rules.any_of.is_empty() {
            self.check_any_of(place, &rules.any_of, &mut out);
        }
        if !rules.one_of.is_empty() {
            self.check_one_of(place, &rules.one_of, &mut out);
        }
        if !rules.all_of.is_empty() {
            self.check_all_of(place, &rules.all_of, &mut out);
        }
        if let Some(not) = &rules.not
            && self.check_node(place, Node::Branch(not)).is_valid()
        {
            let text = format!("{:?} must not validate the schema (not)", place.path);
            out.add(invalid_nowhere(text));
        }
        out.matched();
        out
    }

    fn check_any_of(&self, place: &Place<'_>, branches: &[Rules], out: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for branch in branches {
            let found = self.check_node(place, Node::Branch(branch));
            if found.is_valid() {
                return out.merge(found);
            }
            if best
                .as_ref()
                .is_none_or(|best| found.matches > best.matches)
            {
                best = Some(found);
            }
        }
        let text = format!("{:?} must validate at least one schema (anyOf)", place.path);
        out.add(invalid_nowhere(text));
        out.merge(best.unwrap_or_default());
    }

    fn check_one_of(&self, place: &Place<'_>, branches: &[Rules], out: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        let mut first: Option<Outcome> = None;
        let mut valid = 0;
        for branch in branches {
            let found = self.check_node(place, Node::Branch(branch));
            if found.is_valid() {
                valid += 1;
                first.get_or_insert(found);
            } else if best
                .as_ref()
                .is_none_or(|best| found.matches > best.matches)
            {
                best = Some(found);
            }
        }
        if valid == 1 {
            return out.merge(first.unwrap_or_default());
        }
        let detail = match valid {
            0 => "Found none valid".to_owned(),
            n => format!("Found {n} valid alternatives"),
        };
        let text = format!(
            "{:?} must validate one and only one schema (oneOf). {detail}",
            place.path
        );
        out.add(invalid_nowhere(text));
        if valid == 0 {
            out.merge(best.unwrap_or_default());
        }
    }

    fn check_all_of(&self, place: &Place<'_>, branches: &[Rules], out: &mut Outcome) {
        let mut valid = 0;
        for branch in branches {
            let found = self.check_node(place, Node::Branch(branch));
            valid += usize::from(found.is_valid());
            out.merge(found);
        }
        if valid != branches.len() {
            let detail = if valid == 0 { ". None validated" } else { "" };
            let text = format!(
                "{:?} must validate all the schemas (allOf){detail}",
                place.path
            );
            out.add(invalid_nowhere(text));
        }
    }
}
