//! One rule of a role: what it allows, what it covers of another, and how a refusal spells it.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::attributes::{Attributes, Subject};

/// Everything, wherever it stands.
const ALL: &str = "*";
/// Most atoms that are compared. Lists multiply: a request could ask for more than any machine has time for, and no
/// role that people write comes near.
const MAX_ATOMS: usize = 100_000;
/// Most comparisons of atoms with rules.
const MAX_COMPARISONS: usize = 10_000_000;

/// A `PolicyRule` of `rbac.authorization.k8s.io`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub(crate) non_resource_urls: Vec<String>,
}

impl Rule {
    /// The rules of a role.
    ///
    /// Reads whatever stands there, as a rule: one that were skipped here and understood after the write would be
    /// granted unchecked.
    pub(crate) fn of_role(role: &Value) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let list = |field: &str| -> Vec<String> {
            let items = rule.get(field).and_then(Value::as_array);
            let items = items.into_iter().flatten();
            items
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect()
        };
        Self {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    /// The two rules that allow everything.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        let resources = Self {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..Self::default()
        };
        let urls = Self {
            verbs: all(),
            non_resource_urls: all(),
            ..Self::default()
        };
        [resources, urls]
    }

    /// Whether the rule allows this.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        if !has(&self.verbs, &asked.verb) {
            return false;
        }
        match &asked.subject {
            Subject::Path(path) => self
                .non_resource_urls
                .iter()
                .any(|own| url_covers(own, path)),
            Subject::Resource(resource) => {
                has(&self.api_groups, resource.group)
                    && self
                        .resources
                        .iter()
                        .any(|own| resource_covers(own, resource.plural, resource.subresource))
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|own| *own == resource.name))
            }
        }
    }

    /// Whether the rule allows all that an atom of another does. An atom has at most one of everything.
    fn covers(&self, atom: &Rule) -> bool {
        let all = |own: &[String], other: &[String]| other.iter().all(|one| has(own, one));
        let resources = atom.resources.iter().all(|one| {
            let (plural, part) = one.split_once('/').unwrap_or((one, ""));
            self.resources
                .iter()
                .any(|own| own == one || resource_covers(own, plural, part))
        });
        let urls = atom.non_resource_urls.iter().all(|one| {
            self.non_resource_urls
                .iter()
                .any(|own| url_covers(own, one))
        });
        let names = self.resource_names.is_empty()
            || (!atom.resource_names.is_empty()
                && atom
                    .resource_names
                    .iter()
                    .all(|one| self.resource_names.contains(one)));
        all(&self.verbs, &atom.verbs)
            && all(&self.api_groups, &atom.api_groups)
            && resources
            && urls
            && names
    }

    /// The rule taken apart into rules with one verb, one group, one resource and at most one name each.
    fn atoms(&self) -> impl Iterator<Item = Rule> + '_ {
        let one = |text: &String| vec![text.clone()];
        let names = || -> Vec<Vec<String>> {
            match self.resource_names.as_slice() {
                [] => vec![Vec::new()],
                names => names.iter().map(one).collect(),
            }
        };
        let mut atoms = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    atoms.extend(names().into_iter().map(|resource_names| Rule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        resource_names,
                        non_resource_urls: Vec::new(),
                    }));
                }
            }
        }
        for url in &self.non_resource_urls {
            atoms.extend(self.verbs.iter().map(|verb| Rule {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..Rule::default()
            }));
        }
        atoms.into_iter()
    }

    /// How many atoms the rule has. Lists multiply, so this may be much more than what was written.
    fn atom_count(&self) -> usize {
        let resources = self
            .api_groups
            .len()
            .saturating_mul(self.resources.len())
            .saturating_mul(self.resource_names.len().max(1));
        resources
            .saturating_add(self.non_resource_urls.len())
            .saturating_mul(self.verbs.len())
    }
}

impl fmt::Display for Rule {
    /// `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        f.write_str("{")?;
        let mut between = "";
        for (name, list) in parts.iter().filter(|(_, list)| !list.is_empty()) {
            write!(f, "{between}{name}:{}", quoted(list))?;
            between = ", ";
        }
        f.write_str("}")
    }
}

/// `["a" "b"]`, a list as the API prints it in sentences.
pub(crate) fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// What `wanted` allows and `held` does not, or nothing when `held` is enough.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// These, verbs of one resource put together.
    Rules(Vec<Rule>),
    /// The comparison would cost more than a request may.
    TooMany,
}

/// Compares two sets of rules.
pub(crate) fn missing(held: &[Rule], wanted: &[Rule]) -> Option<Missing> {
    // Who may do everything need not wait for the comparison.
    if Rule::everything().iter().all(|all| held.contains(all)) {
        return None;
    }
    let atoms = wanted
        .iter()
        .map(Rule::atom_count)
        .fold(0, usize::saturating_add);
    if atoms > MAX_ATOMS || atoms.saturating_mul(held.len()) > MAX_COMPARISONS {
        return Some(Missing::TooMany);
    }
    let mut compact: Vec<Rule> = Vec::new();
    let mut simple: HashMap<(String, String), usize> = HashMap::new();
    for atom in wanted.iter().flat_map(Rule::atoms) {
        if held.iter().any(|rule| rule.covers(&atom)) {
            continue;
        }
        let key = match (&*atom.api_groups, &*atom.resources, &*atom.resource_names) {
            ([group], [resource], []) => (group.clone(), resource.clone()),
            _ => {
                compact.push(atom);
                continue;
            }
        };
        match simple.get(&key) {
            Some(at) => compact[*at].verbs.extend(atom.verbs),
            None => {
                simple.insert(key, compact.len());
                compact.push(atom);
            }
        }
    }
    (!compact.is_empty()).then_some(Missing::Rules(compact))
}

fn has(own: &[String], asked: &str) -> bool {
    own.iter().any(|one| one == asked || one == ALL)
}

/// `*` covers everything, `*/scale` the scale of everything, `pods/log` itself and `pods` not its log.
fn resource_covers(own: &str, plural: &str, subresource: &str) -> bool {
    if own == ALL {
        return true;
    }
    if subresource.is_empty() {
        return own == plural;
    }
    own.split_once('/').is_some_and(|(own_plural, part)| {
        part == subresource && (own_plural == plural || own_plural == ALL)
    })
}

/// `/healthz/*` covers what begins with `/healthz/`.
fn url_covers(own: &str, path: &str) -> bool {
    own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}
