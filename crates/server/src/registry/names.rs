//! The names that resources are served under, so that no two definitions of a group have the same.

use imbl::OrdMap;
use kubewright_schema::catalog::Resource;

/// How many served resources have each name of each group. A name may be in use more than once: by the versions of one
/// definition, or by built-in resources.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NamesInUse(OrdMap<NameUsage, usize>);

/// One name in use. The order of the fields lets all owners of a name be found together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NameUsage {
    group: Box<str>,
    class: NameClass,
    name: Box<str>,
    /// The definition that has it; nothing for built-in resources.
    owner: Option<Box<str>>,
}

/// Names of the same class must differ within a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameClass {
    /// Plural, singular and short names.
    Resource,
    /// The kind of objects and of lists.
    Kind,
}

impl NamesInUse {
    /// Whether anybody but this definition has a name.
    pub(crate) fn is_taken(&self, group: &str, class: NameClass, name: &str, owner: &str) -> bool {
        let first = NameUsage {
            group: group.into(),
            class,
            name: name.into(),
            owner: None,
        };
        let same_name = self.0.range(first..).map(|(usage, _)| usage);
        same_name
            .take_while(|u| (&*u.group, u.class, &*u.name) == (group, class, name))
            .any(|usage| usage.owner.as_deref() != Some(owner))
    }

    pub(super) fn insert(&mut self, owner: Option<&str>, resource: &Resource) {
        for usage in usages(owner, resource) {
            *self.0.entry(usage).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, owner: &str, resource: &Resource) {
        for usage in usages(Some(owner), resource) {
            if let Some(left) = self.0.get(&usage).map(|count| count - 1) {
                match left {
                    0 => self.0.remove(&usage),
                    left => self.0.insert(usage, left),
                };
            }
        }
    }
}

fn usages<'a>(
    owner: Option<&'a str>,
    resource: &'a Resource,
) -> impl Iterator<Item = NameUsage> + 'a {
    let plain = [&resource.plural, &resource.singular].into_iter();
    let names = plain.chain(&resource.short_names);
    let kinds = [&resource.kind, &resource.list_kind];
    let names = names.map(|name| (NameClass::Resource, name));
    let kinds = kinds.map(|name| (NameClass::Kind, name));
    names.chain(kinds).map(move |(class, name)| NameUsage {
        group: resource.group.clone(),
        class,
        name: name.clone(),
        owner: owner.map(Into::into),
    })
}
