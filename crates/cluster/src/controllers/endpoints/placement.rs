//! Which slice an endpoint is in: where it was. Mirrors `reconciler.go: reconcileByPortMapping` and `finalize` of
//! k8s.io/endpointslice, so that a pod that comes or goes changes one slice, and whoever watches hears of that one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};

use super::MOST;

/// What is to be done about the slices of a service. Slices that stay as they are are not mentioned.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub(super) create: Vec<EndpointSlice>,
    /// A slice as it is and as it should be.
    pub(super) update: Vec<(Arc<EndpointSlice>, EndpointSlice)>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// Slices with the same ports and the same type of addresses.
struct Group {
    /// A slice of the group without endpoints: what all of them have in common.
    empty: EndpointSlice,
    /// Endpoints in order; each is taken out when it has a place.
    unplaced: Vec<Option<Endpoint>>,
    /// Where in `unplaced` an endpoint is.
    known: BTreeMap<Identity, usize>,
    /// Slices that have changed, and as they were.
    changed: Vec<(Arc<EndpointSlice>, EndpointSlice)>,
    unchanged: Vec<Arc<EndpointSlice>>,
}

/// What makes two endpoints the same one in another state: addresses, and namespace and name of what is behind them
/// (`endpointset.go: endpointHash`).
type Identity = (Vec<String>, Option<(Option<String>, Option<String>)>);

type GroupKey = (String, Vec<PortKey>);
type PortKey = (Option<String>, Option<i32>, Option<String>, Option<String>);

/// Distributes wanted endpoints over the slices that exist. What is wanted comes as slices, whose names are suggestions for new
/// ones.
pub(super) fn place(existing: Vec<Arc<EndpointSlice>>, wanted: Vec<EndpointSlice>) -> Placement {
    let mut placement = Placement::default();
    let mut names = Names::new(&existing, &wanted);
    let mut groups = groups(wanted);
    for slice in existing {
        match groups.get_mut(&group_key(&slice)) {
            Some(group) => group.keep(slice, &mut placement.delete),
            None => placement.delete.push(slice),
        }
    }
    for group in groups.into_values() {
        group.settle(&mut placement, &mut names);
    }
    placement.reuse();
    placement
}

fn group_key(slice: &EndpointSlice) -> GroupKey {
    let port = |port: &EndpointPort| {
        let EndpointPort {
            name,
            port,
            protocol,
            app_protocol,
        } = port.clone();
        (name, port, protocol, app_protocol)
    };
    let mut ports: Vec<PortKey> = slice.ports.iter().flatten().map(port).collect();
    ports.sort();
    (slice.address_type.clone(), ports)
}

fn groups(wanted: Vec<EndpointSlice>) -> BTreeMap<GroupKey, Group> {
    let mut groups = BTreeMap::new();
    for mut slice in wanted {
        let endpoints = slice.endpoints.take().unwrap_or_default();
        let group = match groups.entry(group_key(&slice)) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(new) => new.insert(Group {
                empty: slice,
                unplaced: Vec::new(),
                known: BTreeMap::new(),
                changed: Vec::new(),
                unchanged: Vec::new(),
            }),
        };
        for endpoint in endpoints {
            if let Entry::Vacant(new) = group.known.entry(identity(&endpoint)) {
                new.insert(group.unplaced.len());
                group.unplaced.push(Some(endpoint));
            }
        }
    }
    groups
}

fn identity(endpoint: &Endpoint) -> Identity {
    let target = endpoint.target_ref.as_ref();
    let target = target.map(|target| (target.namespace.clone(), target.name.clone()));
    (endpoint.addresses.clone(), target)
}

impl Group {
    /// Leaves endpoints of a slice where they are, in their newest state, and removes those that are not wanted.
    fn keep(&mut self, slice: Arc<EndpointSlice>, emptied: &mut Vec<Arc<EndpointSlice>>) {
        let mut kept = Vec::new();
        for endpoint in slice.endpoints.iter().flatten() {
            let at = self.known.get(&identity(endpoint));
            kept.extend(at.and_then(|at| self.unplaced[*at].take()));
        }
        let before = slice.endpoints.as_deref().unwrap_or_default();
        let metadata = (
            &self.empty.metadata.labels,
            &self.empty.metadata.annotations,
        );
        let same = metadata == (&slice.metadata.labels, &slice.metadata.annotations);
        if kept == before && same {
            self.unchanged.push(slice);
        } else if kept.is_empty() && !before.is_empty() {
            emptied.push(slice);
        } else {
            let new = self.filled(&slice, kept);
            self.changed.push((slice, new));
        }
    }

    /// A slice with these endpoints, and with the labels and annotations of the group.
    fn filled(&self, slice: &EndpointSlice, endpoints: Vec<Endpoint>) -> EndpointSlice {
        let mut new = slice.clone();
        new.endpoints = Some(endpoints);
        new.metadata.labels = self.empty.metadata.labels.clone();
        new.metadata.annotations = self.empty.metadata.annotations.clone();
        new
    }

    /// Finds a place for the rest: in slices that change anyway, the fullest first; then all in one that does not, where that
    /// has room for all; then in new ones.
    fn settle(mut self, placement: &mut Placement, names: &mut Names) {
        let room = |slice: &EndpointSlice| MOST - size(slice).min(MOST);
        let mut unplaced: Vec<Endpoint> = self.unplaced.drain(..).flatten().collect();
        self.changed.sort_by_key(|(_, slice)| room(slice));
        for (_, slice) in &mut self.changed {
            let part = unplaced.len().min(room(slice));
            let endpoints = slice.endpoints.get_or_insert_default();
            endpoints.extend(unplaced.drain(..part));
        }
        let left = unplaced.len();
        self.unchanged.sort_by_key(|slice| room(slice));
        let fits = |slice: &&Arc<EndpointSlice>| left > 0 && room(slice) >= left;
        if let Some(slice) = self.unchanged.iter().find(fits).cloned() {
            let mut endpoints = slice.endpoints.clone().unwrap_or_default();
            endpoints.append(&mut unplaced);
            let new = self.filled(&slice, endpoints);
            self.changed.push((slice, new));
        }
        // A service without endpoints has one slice nevertheless.
        let placeholder = self.changed.is_empty() && self.unchanged.is_empty() && left == 0;
        if placeholder && self.empty.ports.iter().flatten().next().is_none() {
            placement.create.push(names.named(&self.empty, Vec::new()));
        }
        for part in unplaced.chunks(MOST) {
            placement
                .create
                .push(names.named(&self.empty, part.to_vec()));
        }
        placement.update.append(&mut self.changed);
    }
}

impl Placement {
    /// Slices that would be deleted become those that would be created.
    fn reuse(&mut self) {
        let mut at = 0;
        while at < self.delete.len() {
            let kind = &self.delete[at].address_type;
            let create = self
                .create
                .iter()
                .rposition(|new| new.address_type == *kind);
            let Some(create) = create else {
                at += 1;
                continue;
            };
            let (old, new) = (self.delete.remove(at), self.create.remove(create));
            let mut reused = (*old).clone();
            (reused.endpoints, reused.ports) = (new.endpoints, new.ports);
            reused.metadata.labels = new.metadata.labels;
            reused.metadata.annotations = new.metadata.annotations;
            self.update.push((old, reused));
        }
    }
}

/// Names for new slices: the prefix of the first that is wanted, and the lowest number that is free.
struct Names {
    prefix: String,
    taken: Vec<String>,
}

impl Names {
    fn new(existing: &[Arc<EndpointSlice>], wanted: &[EndpointSlice]) -> Self {
        let name = |slice: &EndpointSlice| slice.metadata.name.clone().unwrap_or_default();
        let first = wanted.first().map(name).unwrap_or_default();
        let prefix = first.trim_end_matches(|c: char| c.is_ascii_digit());
        Self {
            prefix: prefix.to_owned(),
            taken: existing.iter().map(|slice| name(slice)).collect(),
        }
    }

    fn named(&mut self, empty: &EndpointSlice, endpoints: Vec<Endpoint>) -> EndpointSlice {
        let mut names = (0..).map(|number| format!("{}{number}", self.prefix));
        let name = names.find(|name| !self.taken.contains(name));
        self.taken.extend(name.clone());
        let mut slice = empty.clone();
        slice.metadata.name = name;
        slice.endpoints = Some(endpoints);
        slice
    }
}

fn size(slice: &EndpointSlice) -> usize {
    slice.endpoints.as_ref().map_or(0, Vec::len)
}
