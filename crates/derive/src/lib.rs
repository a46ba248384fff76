//! Attributes of an operator: its kinds, controllers, permissions and webhooks.
//!
//! Use them through the facade: `#[kubewright::api]`, `#[kubewright::schema]`, `#[kubewright::controller]`,
//! `#[kubewright::rbac]`, `#[kubewright::webhook]`, `#[kubewright::conversion]`. What they register at link time is what
//! `kubewright::registered` tells; a wrong attribute is a compile error.

mod conversion;
mod hook;
mod item;
mod kind;
mod list;
mod marks;
mod names;
mod permission;
mod registration;
mod selector;
mod shape;
mod webhook;

use proc_macro::TokenStream;

/// Registers a kind, and translates `#[k8s(..)]` on its type and fields.
///
/// It stands above `#[derive(CustomResource, JsonSchema, ..)]`. Options: `conversion = "webhook"` when versions differ
/// and a webhook converts between them.
///
/// What `#[k8s(..)]` understands, beside schemars' own attributes, which work as ever:
///
/// | on | options |
/// |---|---|
/// | numbers | `min`, `max`, `exclusive_min`, `exclusive_max`, `multiple_of` |
/// | texts | `min_length`, `max_length`, `pattern`, `format` |
/// | lists | `min_items`, `max_items`, `list = map(key, ..)`, `list = set`, `list = atomic`, `items(..)` |
/// | maps | `min_properties`, `max_properties`, `map = atomic`, `map = granular` |
/// | structs | `atomic`, `preserve_unknown`, `embedded_resource`, `one_of(a, b)`, `at_most_one_of(..)`, `at_least_one_of(..)` |
/// | fields | `immutable`, `nullable`, `default = value` |
/// | all | `int_or_string`, `values(a, b)`, `example = value`, `title`, `docs(url = "", description = "")`, `description_limit`, `rule("CEL", message = "", ..)` |
///
/// An `Option` that is not `nullable` is left out of what is written when it is `None`, so that nobody owns a null.
#[proc_macro_attribute]
pub fn api(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kind::expand(arguments.into(), item.into()).into()
}

/// Translates `#[k8s(..)]` on a type that is part of a kind. See [`macro@api`] for what it understands.
#[proc_macro_attribute]
pub fn schema(arguments: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(arguments.into(), item.into()).into()
}

/// Registers a function that makes a controller: it returns a `Controller`, of objects or of requests of any type.
///
/// It may take `Option<&T>` for each state that it needs: what the manager was given with `Manager::state`, or the flags of
/// `Operator::arguments`. It is `None` if nothing of the type was given, and also when the program only says what is registered, to
/// make roles of it: the kinds that a controller watches must not depend on it.
#[proc_macro_attribute]
pub fn controller(arguments: TokenStream, item: TokenStream) -> TokenStream {
    registration::controller(arguments.into(), item.into()).into()
}

/// Declares a permission, on any item outside of an `impl`.
///
/// `groups`, `resources`, `resource_names`, `urls` and `verbs` are lists: `"get;list;watch"` or `["get", "list"]`.
/// `namespace` makes it a part of a Role there, `role` of a role of another name.
#[proc_macro_attribute]
pub fn rbac(arguments: TokenStream, item: TokenStream) -> TokenStream {
    permission::expand(arguments.into(), item.into()).into()
}

/// Registers an admission webhook: a function that answers, an `impl Validating<K>` or `impl Defaulting<K>` of a type that has
/// a default, or any other item outside of an `impl`, which only says that there is one.
///
/// A `mutating` function is `fn(&mut K)`, and may return a `Result`. A `validating` one is `fn(&K) -> Result<(), FieldErrors>`,
/// about the object as it is to be or the one that is deleted, or `fn(&K, Option<&K>) -> Result<(), FieldErrors>`, with the object
/// as it was before if it is not new. Both may be async, and may take the `&Request` last, which says who asks for what and gives
/// them the state of the operator.
///
/// Begins with `mutating` or `validating`. On what answers that is all: `groups`, `versions` and `resources` are those of `K`,
/// `verbs` are `create;update`, or the methods of an `impl Validating<K>`, `name` is `mguestbook-v1.kb.io` and `path` `/mutate-webapp-my-domain-v1-guestbook` (or `v..` and
/// `/validate-..`), as kubebuilder has them. On other items they have to be given. Further options are `failure_policy`, `match_policy`, `side_effects`, `timeout_seconds`, `reinvocation_policy`,
/// `admission_review_versions`, `url`, `service_name`, `service_namespace`, `service_port`, the label selectors
/// `namespace_selector` and `object_selector`, and `match_conditions`: expressions of CEL that have to hold, each after its name, as
/// in `["not-a-node: !('system:nodes' in request.userInfo.groups)"]`.
#[proc_macro_attribute]
pub fn webhook(arguments: TokenStream, item: TokenStream) -> TokenStream {
    webhook::expand(arguments.into(), item.into()).into()
}

/// Registers a version of a kind that is converted to and from the hub, on `impl Spoke<Hub> for Version`.
#[proc_macro_attribute]
pub fn conversion(arguments: TokenStream, item: TokenStream) -> TokenStream {
    conversion::expand(arguments.into(), item.into()).into()
}
