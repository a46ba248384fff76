//! Sets of fields, kept as a tree: fields of one object share what their paths have in common.

use std::cmp::Ordering;

use super::path::{Path, PathElement};

/// A set of fields. A field may be in the set without its parent, and the other way around.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// Sorted by element, each element once.
    nodes: Vec<Node>,
}

/// A field that is in the set, or that has fields below it that are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: PathElement,
    /// The field itself is in the set. Where it is not, `below` is not empty.
    pub(super) member: bool,
    pub(super) below: Set,
}

impl Set {
    /// A set without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the set has no fields.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        let count = |node: &Node| usize::from(node.member) + node.below.len();
        self.nodes.iter().map(count).sum()
    }

    /// Adds a field, not its parents. The empty path is the whole object, which nobody owns.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let at = match self.position(first) {
            Ok(at) => at,
            Err(at) => {
                let node = Node {
                    element: first.clone(),
                    member: false,
                    below: Set::new(),
                };
                self.nodes.insert(at, node);
                at
            }
        };
        if rest.is_empty() {
            self.nodes[at].member = true;
        } else {
            self.nodes[at].below.insert(rest);
        }
    }

    /// Whether a field is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self
                .get(first)
                .is_some_and(|node| node.below.contains(rest)),
        }
    }

    /// Fields of either set.
    #[must_use]
    pub fn union(&self, other: &Set) -> Set {
        self.join(other, &|a, b| match (a, b) {
            (Some(a), Some(b)) => Some((a.member || b.member, a.below.union(&b.below))),
            (Some(one), None) | (None, Some(one)) => Some((one.member, one.below.clone())),
            (None, None) => None,
        })
    }

    /// Fields of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Set) -> Set {
        self.join(other, &|a, b| {
            let (a, b) = (a?, b?);
            Some((a.member && b.member, a.below.intersection(&b.below)))
        })
    }

    /// Fields that are not in the other set. What is below a field of the other set stays.
    #[must_use]
    pub fn difference(&self, other: &Set) -> Set {
        self.join(other, &|a, b| match (a?, b) {
            (a, None) => Some((a.member, a.below.clone())),
            (a, Some(b)) => Some((a.member && !b.member, a.below.difference(&b.below))),
        })
    }

    /// Fields that are neither in the other set nor below a field of it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Set) -> Set {
        self.join(other, &|a, b| match (a?, b) {
            (a, None) => Some((a.member, a.below.clone())),
            (_, Some(b)) if b.member => None,
            (a, Some(b)) => Some((a.member, a.below.recursive_difference(&b.below))),
        })
    }

    /// Adds all fields of another set, copying nothing.
    pub(super) fn absorb(&mut self, other: Set) {
        if self.nodes.is_empty() || other.nodes.is_empty() {
            self.nodes.extend(other.nodes);
            return;
        }
        let mine = std::mem::take(&mut self.nodes);
        *self = Set::from_nodes(mine.into_iter().chain(other.nodes).collect());
    }

    /// A set of nodes in any order; those of one element become one.
    pub(super) fn from_nodes(mut nodes: Vec<Node>) -> Set {
        // Sorting two sorted runs is merging them.
        nodes.sort_by(|a, b| a.element.cmp(&b.element));
        nodes.dedup_by(|later, first| {
            let same = later.element == first.element;
            if same {
                first.member |= later.member;
                first.below.absorb(std::mem::take(&mut later.below));
            }
            same
        });
        Set { nodes }
    }

    /// As [`Set::difference`], in place.
    pub(super) fn subtract(&mut self, other: &Set) {
        self.pair(other, |node, gone| {
            node.member &= !gone.member;
            node.below.subtract(&gone.below);
        });
    }

    /// As [`Set::recursive_difference`], in place.
    pub(super) fn subtract_recursive(&mut self, other: &Set) {
        self.pair(other, |node, gone| {
            if gone.member {
                node.member = false;
                node.below = Set::new();
            } else {
                node.below.subtract_recursive(&gone.below);
            }
        });
    }

    /// Changes the nodes that both sets have, and drops those that are then empty.
    fn pair(&mut self, other: &Set, mut change: impl FnMut(&mut Node, &Node)) {
        let mut others = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while others
                .peek()
                .is_some_and(|other| other.element < node.element)
            {
                others.next();
            }
            match others.peek() {
                Some(other) if other.element == node.element => change(node, other),
                _ => {}
            }
            node.member || !node.below.is_empty()
        });
    }

    /// Keeps some of the top-level fields, with all that is below them.
    pub(super) fn retain(&mut self, keep: impl Fn(&PathElement) -> bool) {
        self.nodes.retain(|node| keep(&node.element));
    }

    /// Whether a field is in both sets.
    pub fn intersects(&self, other: &Set) -> bool {
        let (mut mine, mut theirs) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            match a.element.cmp(&b.element) {
                Ordering::Less => drop(mine.next()),
                Ordering::Greater => drop(theirs.next()),
                Ordering::Equal => {
                    if (a.member && b.member) || a.below.intersects(&b.below) {
                        return true;
                    }
                    mine.next();
                    theirs.next();
                }
            }
        }
        false
    }

    /// Fields that have no other field of the set below them.
    #[must_use]
    pub fn leaves(&self) -> Set {
        let leaf = |node: &Node| Node {
            element: node.element.clone(),
            member: node.below.is_empty(),
            below: node.below.leaves(),
        };
        Set {
            nodes: self.nodes.iter().map(leaf).collect(),
        }
    }

    /// Every field: those of one object first, then what is below each of them.
    pub fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, prefix: &mut Path, found: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            found.push(path);
        }
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            prefix.push(node.element.clone());
            node.below.collect(prefix, found);
            prefix.pop();
        }
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn get(&self, element: &PathElement) -> Option<&Node> {
        Some(&self.nodes[self.position(element).ok()?])
    }

    pub(super) fn get_field(&self, name: &str) -> Option<&Node> {
        let order = |node: &Node| match &node.element {
            PathElement::Field(field) => (**field).cmp(name),
            _ => Ordering::Greater,
        };
        Some(&self.nodes[self.nodes.binary_search_by(order).ok()?])
    }

    /// Adds an element with all that is below it. Elements that come in order cost no search.
    pub(super) fn put(&mut self, element: PathElement, member: bool, below: Set) {
        if !member && below.is_empty() {
            return;
        }
        let node = Node {
            element,
            member,
            below,
        };
        if self
            .nodes
            .last()
            .is_none_or(|last| last.element < node.element)
        {
            self.nodes.push(node);
            return;
        }
        match self.position(&node.element) {
            Err(at) => self.nodes.insert(at, node),
            Ok(at) => {
                let there = &mut self.nodes[at];
                there.member |= member;
                there.below.absorb(node.below);
            }
        }
    }

    fn position(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
    }

    /// Walks two sets side by side; `choose` says what becomes of each element.
    fn join(&self, other: &Set, choose: &Choice<'_>) -> Set {
        let mut joined = Set::new();
        let (mut mine, mut theirs) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        loop {
            let order = match (mine.peek(), theirs.peek()) {
                (None, None) => return joined,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.element.cmp(&b.element),
            };
            let a = order.is_le().then(|| mine.next()).flatten();
            let b = order.is_ge().then(|| theirs.next()).flatten();
            let Some(node) = a.or(b) else { continue };
            if let Some((member, below)) = choose(a, b)
                && (member || !below.is_empty())
            {
                joined.nodes.push(Node {
                    element: node.element.clone(),
                    member,
                    below,
                });
            }
        }
    }
}

/// What becomes of an element that one or both of two sets have: whether it is a member, and what is below.
type Choice<'a> = dyn Fn(Option<&Node>, Option<&Node>) -> Option<(bool, Set)> + 'a;

impl FromIterator<Path> for Set {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut paths: Vec<Path> = paths.into_iter().collect();
        // In order, every path goes to the end of what is there.
        paths.sort();
        let mut set = Set::new();
        paths.iter().for_each(|path| set.insert(path));
        set
    }
}
