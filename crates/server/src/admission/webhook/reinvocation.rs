//! Who is asked a second time, because somebody after them changed the object.

use std::collections::BTreeSet;

use serde_json::Value;

/// The memory of one request over its two rounds of those who change it.
#[derive(Debug, Default)]
pub(in crate::admission) struct Reinvocation {
    round: Round,
    /// AdmissionRequest before, and interested in changes.
    request: BTreeSet<String>,
    /// To be asked once more.
    due: BTreeSet<String>,
    changed: bool,
    /// The object after the last of them.
    last: Option<Value>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Round {
    #[default]
    First,
    Second,
}

impl Reinvocation {
    /// Begins with the object as the plugins left it. In the second round a change of theirs is one to look at.
    pub(in crate::admission) fn begin(&mut self, object: &Value) {
        if self.round == Round::Second && self.last.as_ref() != Some(object) {
            self.due.append(&mut self.request);
        }
    }

    /// Whether somebody is asked in this round. Nobody is asked for the first time in the second.
    pub(in crate::admission) fn wants(&self, who: &str) -> bool {
        self.round == Round::First || self.due.contains(who)
    }

    /// Somebody changed the object: those before have to look again.
    pub(in crate::admission) fn changed(&mut self) {
        self.due.append(&mut self.request);
        self.changed = true;
    }

    /// A webhook or policy with `reinvocationPolicy: IfNeeded` was asked.
    pub(in crate::admission) fn remember(&mut self, who: &str) {
        self.request.insert(who.to_owned());
    }

    /// Ends with the object as it is now. It is kept only if there will be a second round to compare it in.
    pub(in crate::admission) fn end(&mut self, object: &Value) {
        if self.changed && self.round == Round::First {
            self.last = Some(object.clone());
        }
    }

    /// Whether there has to be a second round, which begins with this. There is never a third.
    pub(in crate::admission) fn again(&mut self) -> bool {
        let again = self.round == Round::First && self.changed;
        self.round = Round::Second;
        again
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn those_before_a_change_look_again_once() {
        let mut state = Reinvocation::default();
        state.begin(&json!(1));
        assert!(state.wants("a"));
        state.remember("a");
        state.changed();
        state.remember("b");
        state.end(&json!(2));
        assert!(state.again());
        state.begin(&json!(2));
        assert!(state.wants("a"));
        assert!(!state.wants("b"));
        assert!(!state.wants("new"));
        state.changed();
        assert!(!state.again());
    }

    #[test]
    fn a_change_of_the_plugins_concerns_all() {
        let mut state = Reinvocation::default();
        state.begin(&json!(1));
        state.changed();
        state.remember("a");
        state.end(&json!(2));
        assert!(state.again());
        state.begin(&json!(3));
        assert!(state.wants("a"));
    }

    #[test]
    fn nothing_changed_means_no_second_round() {
        let mut state = Reinvocation::default();
        state.begin(&json!(1));
        state.end(&json!(1));
        assert!(!state.again());
    }
}
