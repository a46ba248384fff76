//! The variables that expressions of webhooks and policies see: validation and admission must agree about them.

use kubewright_schema::cel::{Opaque, Type, Variable};

/// The variable that answers questions about access.
pub(crate) const AUTHORIZER: &str = "authorizer";

/// Names of what every expression over a request sees.
pub(crate) const NAMES: [&str; 5] = [
    "object",
    "oldObject",
    "request",
    "namespaceObject",
    "params",
];

/// What expressions of a policy see.
pub(crate) const SCOPE: [&str; 6] = [
    NAMES[0],
    NAMES[1],
    NAMES[2],
    NAMES[3],
    NAMES[4],
    "variables",
];

/// Variables of nothing known but their names, and the authorizer.
pub(crate) fn declare(names: &[&str]) -> Vec<Variable> {
    let names = names.iter().map(|name| Variable::new(name, Type::Dyn));
    let authorizer = Variable::new(AUTHORIZER, Type::Opaque(Opaque::Authorizer));
    names.chain([authorizer]).collect()
}
