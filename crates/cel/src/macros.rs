//! The macros: calls whose arguments are not simply evaluated.

use super::ast::{Call, Fold, FoldKind, Kind, Node};
use super::signatures;
use super::source::Issue;

/// How the arguments of a macro are laid out.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// A variable and a body: `(x, body)`.
    One,
    /// A variable, a filter and a body: `(x, filter, body)`.
    OneFiltered,
    /// Two variables and a body: `(key, value, body)`.
    Two,
    /// `(key, value, filter, body)`
    TwoFiltered,
}

const METHODS: [(&str, usize, FoldKind, Form); 20] = [
    ("all", 2, FoldKind::All, Form::One),
    ("all", 3, FoldKind::All, Form::Two),
    ("exists", 2, FoldKind::Exists, Form::One),
    ("exists", 3, FoldKind::Exists, Form::Two),
    ("exists_one", 2, FoldKind::ExistsOne, Form::One),
    ("existsOne", 2, FoldKind::ExistsOne, Form::One),
    ("exists_one", 3, FoldKind::ExistsOne, Form::Two),
    ("existsOne", 3, FoldKind::ExistsOne, Form::Two),
    ("filter", 2, FoldKind::Filter, Form::One),
    ("map", 2, FoldKind::Map, Form::One),
    ("map", 3, FoldKind::Map, Form::OneFiltered),
    ("transformList", 3, FoldKind::Map, Form::Two),
    ("transformList", 4, FoldKind::Map, Form::TwoFiltered),
    ("transformMap", 3, FoldKind::TransformMap, Form::Two),
    ("transformMap", 4, FoldKind::TransformMap, Form::TwoFiltered),
    (
        "transformMapEntry",
        3,
        FoldKind::TransformMapEntry,
        Form::Two,
    ),
    (
        "transformMapEntry",
        4,
        FoldKind::TransformMapEntry,
        Form::TwoFiltered,
    ),
    ("sortBy", 2, FoldKind::SortBy, Form::One),
    ("optMap", 2, FoldKind::OptionalMap, Form::One),
    ("optFlatMap", 2, FoldKind::OptionalFlatMap, Form::One),
];

/// `target.name(args)`: a macro, or a call.
pub(super) fn method(at: usize, name: &str, target: Node, args: Vec<Node>) -> Result<Node, Issue> {
    let found = METHODS
        .iter()
        .find(|(known, count, ..)| *known == name && *count == args.len());
    match found {
        Some((_, _, kind, form)) => fold(at, *kind, *form, target, args),
        None => Ok(match qualified(&target, name) {
            Some(name) => call(at, &name, None, args),
            None => call(at, name, Some(target), args),
        }),
    }
}

/// The function in a namespace that `target.name` means, if there is one: `sets.contains`.
fn qualified(target: &Node, name: &str) -> Option<String> {
    let qualified = format!("{}.{name}", target.qualified_name()?);
    signatures::overloads(&qualified).map(|_| qualified)
}

/// `name(args)`: a macro, or a call.
pub(super) fn function(at: usize, name: &str, mut args: Vec<Node>) -> Result<Node, Issue> {
    if name != "has" || args.len() != 1 {
        return Ok(call(at, name, None, args));
    }
    let argument = args.remove(0);
    match argument.kind {
        Kind::Select(operand, field) => Ok(Node::new(at, Kind::Has(operand, field))),
        _ => Err(Issue {
            at: argument.at,
            message: "invalid argument to has() macro".to_owned(),
        }),
    }
}

fn call(at: usize, name: &str, target: Option<Node>, args: Vec<Node>) -> Node {
    let call = Call {
        function: name.into(),
        target: target.map(Box::new),
        args,
    };
    Node::new(at, Kind::Call(call))
}

fn fold(
    at: usize,
    kind: FoldKind,
    form: Form,
    range: Node,
    args: Vec<Node>,
) -> Result<Node, Issue> {
    let mut args = args.into_iter();
    let mut next = || {
        args.next()
            .expect("the table gives the number of arguments")
    };
    let variable = simple_name(next())?;
    let second = match form {
        Form::Two | Form::TwoFiltered => Some(simple_name(next())?),
        Form::One | Form::OneFiltered => None,
    };
    let filter = match form {
        Form::OneFiltered | Form::TwoFiltered => Some(next()),
        Form::One | Form::Two => None,
    };
    let body = next();
    let fold = Fold {
        kind,
        range,
        variable,
        second,
        filter,
        body,
    };
    Ok(Node::new(at, Kind::Fold(Box::new(fold))))
}

fn simple_name(node: Node) -> Result<Box<str>, Issue> {
    match node.kind {
        Kind::Ident(name) => Ok(name),
        _ => Err(Issue {
            at: node.at,
            message: "argument must be a simple name".to_owned(),
        }),
    }
}
