//! What expressions of a policy see, with its types (`admission/plugin/cel/compile.go`, `composition.go`). Pure.

use std::sync::Arc;

use kubewright_schema::cel::{
    Declaration, Form, ListKind, Object, Opaque, Type, Variable as Visible,
};

/// The parameters of a policy.
#[derive(Debug, Clone)]
pub(super) enum Params {
    /// It has none, and its expressions do not see any.
    None,
    /// They are of a kind that nothing is known of yet.
    Unknown,
    /// Objects of this type.
    Of(Arc<Declaration>),
}

/// What every expression sees of a request for an object of this type.
pub(super) fn of_request(object: &Arc<Declaration>, params: &Params) -> Vec<Visible> {
    let mut visible = vec![
        Visible::declared("object", object),
        Visible::declared("oldObject", object),
        Visible::declared("request", &request()),
        Visible::declared("namespaceObject", &namespace()),
        Visible::new("authorizer", Type::Opaque(Opaque::Authorizer)),
    ];
    match params {
        Params::None => {}
        Params::Unknown => visible.push(Visible::new("params", Type::Dyn)),
        Params::Of(declaration) => visible.push(Visible::declared("params", declaration)),
    }
    visible
}

/// The variables of a policy so far, by their names.
pub(super) fn variables(known: &[(String, Arc<Declaration>)]) -> Visible {
    let known = known.iter();
    let fields = known.map(|(name, declared)| (name.as_str(), declared.clone()));
    Visible::declared("variables", &object(fields))
}

/// The type of an expression as that of a field. Types of objects have no name by which a field could refer to them.
pub(super) fn as_field(ty: &Type) -> Arc<Declaration> {
    match ty {
        Type::Bool => plain(Form::Bool),
        Type::Int => plain(Form::Int),
        Type::Double => plain(Form::Double),
        Type::String => plain(Form::String),
        Type::Bytes => plain(Form::Bytes),
        Type::Duration => plain(Form::Duration),
        Type::Timestamp => plain(Form::DateTime),
        Type::List(item) => list(as_field(item)),
        Type::Map(key, value) if **key == Type::String => map(as_field(value)),
        _ => unknown(),
    }
}

pub(super) fn unknown() -> Arc<Declaration> {
    plain(Form::Dynamic)
}

fn request() -> Arc<Declaration> {
    let named =
        |last: &'static str| object([("group", text()), ("version", text()), (last, text())]);
    let user = object([
        ("username", text()),
        ("uid", text()),
        ("groups", list(text())),
        ("extra", map(list(text()))),
    ]);
    object([
        ("kind", named("kind")),
        ("resource", named("resource")),
        ("subResource", text()),
        ("requestKind", named("kind")),
        ("requestResource", named("resource")),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", user),
        ("dryRun", plain(Form::Bool)),
        ("options", unknown()),
    ])
}

fn namespace() -> Arc<Declaration> {
    let condition = object([
        ("type", text()),
        ("status", text()),
        ("lastTransitionTime", plain(Form::DateTime)),
        ("reason", text()),
        ("message", text()),
    ]);
    let metadata = object([
        ("name", text()),
        ("generateName", text()),
        ("namespace", text()),
        ("labels", map(text())),
        ("annotations", map(text())),
        ("uid", text()),
        ("creationTimestamp", plain(Form::DateTime)),
        ("deletionTimestamp", plain(Form::DateTime)),
        ("deletionGracePeriodSeconds", plain(Form::Int)),
        ("generation", plain(Form::Int)),
        ("resourceVersion", text()),
        ("finalizers", list(text())),
    ]);
    object([
        ("metadata", metadata),
        ("spec", object([("finalizers", list(text()))])),
        (
            "status",
            object([("conditions", list(condition)), ("phase", text())]),
        ),
    ])
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Arc<Declaration>)>) -> Arc<Declaration> {
    let fields = fields.into_iter();
    let fields = fields.map(|(name, declared)| (name.into(), declared));
    plain(Form::Object(Arc::new(Object::new(fields.collect()))))
}

fn list(item: Arc<Declaration>) -> Arc<Declaration> {
    Arc::new(Declaration::list(item, ListKind::Atomic, None))
}

fn map(value: Arc<Declaration>) -> Arc<Declaration> {
    Arc::new(Declaration::map(value, None))
}

fn text() -> Arc<Declaration> {
    plain(Form::String)
}

fn plain(form: Form) -> Arc<Declaration> {
    Arc::new(Declaration::plain(form))
}
