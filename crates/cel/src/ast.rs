//! The tree of a parsed expression. Macros are nodes of their own, so that checking, estimating and evaluating them
//! needs no generated loops.

/// A node and the byte offset that errors about it point to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: usize,
    /// Nodes on the longest way down from here, this one included. At most [`super::parser::MAX_DEPTH`].
    pub(crate) depth: u16,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(Box<str>),
    /// Reads a field: `operand.field`.
    Select(Box<Node>, Box<str>),
    /// Tests whether a field is present: `has(operand.field)`.
    Has(Box<Node>, Box<str>),
    /// Reads a field that may be missing, as an optional: `operand.?field`.
    OptionalSelect(Box<Node>, Box<str>),
    Call(Call),
    /// `a && b && c`
    And(Vec<Node>),
    /// `a || b || c`
    Or(Vec<Node>),
    /// `condition ? yes : no`
    Conditional(Box<[Node; 3]>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// Makes an object of a named type: `Type{field: value}`.
    Construct(Box<Construct>),
    Fold(Box<Fold>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

/// A function, a method or an operator. A function in a namespace has a dotted name and no target. Operators have the names that the type checker reports: `_+_`, `!_`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) function: Box<str>,
    pub(crate) target: Option<Box<Node>>,
    pub(crate) args: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Element {
    /// Written `?value`: left out when the optional is empty.
    pub(crate) optional: bool,
    pub(crate) value: Node,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) optional: bool,
    pub(crate) key: Node,
    pub(crate) value: Node,
}

/// An object with named fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Construct {
    /// The name of the type, with its dots.
    pub(crate) type_name: Box<str>,
    pub(crate) fields: Vec<FieldEntry>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldEntry {
    pub(crate) optional: bool,
    pub(crate) name: Box<str>,
    pub(crate) value: Node,
}

/// A macro that evaluates an expression for every item of a range, or for the value of an optional.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fold {
    pub(crate) kind: FoldKind,
    pub(crate) range: Node,
    pub(crate) variable: Box<str>,
    /// The value of an entry, in macros of two variables; the first one is the key or index then.
    pub(crate) second: Option<Box<str>>,
    /// Items for which this is false are left out.
    pub(crate) filter: Option<Node>,
    pub(crate) body: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// The macros `map` and `transformList`.
    Map,
    TransformMap,
    TransformMapEntry,
    SortBy,
    OptionalMap,
    OptionalFlatMap,
}

impl Node {
    pub(crate) fn new(at: usize, kind: Kind) -> Self {
        let deepest = |nodes: &[Node]| nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        let below = match &kind {
            Kind::Literal(_) | Kind::Ident(_) => 0,
            Kind::Select(node, _) | Kind::Has(node, _) | Kind::OptionalSelect(node, _) => {
                node.depth
            }
            Kind::Call(call) => {
                deepest(&call.args).max(call.target.as_ref().map_or(0, |target| target.depth))
            }
            Kind::And(nodes) | Kind::Or(nodes) => deepest(nodes),
            Kind::Conditional(nodes) => deepest(nodes.as_slice()),
            Kind::List(items) => items.iter().map(|item| item.value.depth).max().unwrap_or(0),
            Kind::Map(entries) => entries
                .iter()
                .map(|entry| entry.key.depth.max(entry.value.depth))
                .max()
                .unwrap_or(0),
            Kind::Construct(construct) => {
                let depths = construct.fields.iter().map(|field| field.value.depth);
                depths.max().unwrap_or(0)
            }
            Kind::Fold(fold) => {
                let filter = fold.filter.as_ref().map_or(0, |filter| filter.depth);
                fold.range.depth.max(fold.body.depth).max(filter)
            }
        };
        Self {
            at,
            depth: below.saturating_add(1),
            kind,
        }
    }

    /// `a.b.c` as text, when the node is nothing but names.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select(operand, field) => {
                let mut name = operand.qualified_name()?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            _ => None,
        }
    }
}
