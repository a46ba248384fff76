//! The options of connections to pods, services and nodes, as the objects that admission is asked about for `CONNECT`.
//!
//! They exist in queries alone, so the type table does not know them (pkg/apis/core: PodExecOptions and its like).

use serde_json::{Value, json};

use crate::http::query::Query;
use crate::kinds::value::set;

/// What a field of options holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionField {
    Flag,
    Text,
    /// Every value of the parameter.
    List,
    /// Numbers, of which one parameter may hold many.
    Ports,
    /// What follows `proxy` in the path of the request; the query has no say in it.
    Path,
}

type OptionFields = [(&'static str, OptionField)];

/// The fields of an attach, then the one that an exec has besides.
static EXEC: [(&str, OptionField); 6] = [
    ("stdin", OptionField::Flag),
    ("stdout", OptionField::Flag),
    ("stderr", OptionField::Flag),
    ("tty", OptionField::Flag),
    ("container", OptionField::Text),
    ("command", OptionField::List),
];
static PORT_FORWARD: [(&str, OptionField); 1] = [("ports", OptionField::Ports)];
static PROXY: [(&str, OptionField); 1] = [("path", OptionField::Path)];

/// Why a query or an object cannot be the options of a connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidConnectOptions {
    #[error("ports must be numbers from 1 to 65535")]
    Ports,
    #[error("{0} has a field {1:?} of another type")]
    Type(String, &'static str),
}

fn fields(kind: &str) -> &'static OptionFields {
    match kind {
        "PodExecOptions" => &EXEC,
        "PodAttachOptions" => &EXEC[..EXEC.len() - 1],
        "PodPortForwardOptions" => &PORT_FORWARD,
        _ => &PROXY,
    }
}

fn empty(kind: &str) -> Value {
    json!({ "kind": kind, "apiVersion": "v1" })
}

/// The options of this kind that a request has. `path` is what follows `proxy`, with its slash.
pub(crate) fn read(kind: &str, query: &Query, path: &str) -> Result<Value, InvalidConnectOptions> {
    let mut options = empty(kind);
    for (name, field) in fields(kind) {
        if let Some(value) = field.read(name, query, path)? {
            set(&mut options, name, value);
        }
    }
    Ok(options)
}

/// Makes options of what admission has made of them: fields that there are not go, the others are of their types.
pub(super) fn conform(kind: &str, object: &mut Value) -> Result<(), InvalidConnectOptions> {
    let mut options = empty(kind);
    for (name, field) in fields(kind) {
        match object.get_mut(name).map(Value::take) {
            None | Some(Value::Null) => {}
            Some(value) if field.fits(&value) => set(&mut options, name, value),
            Some(_) => return Err(InvalidConnectOptions::Type(kind.to_owned(), name)),
        }
    }
    *object = options;
    Ok(())
}

impl OptionField {
    /// The value that a request gives the field of this name; nothing for the one that is left out.
    fn read(
        self,
        name: &str,
        query: &Query,
        path: &str,
    ) -> Result<Option<Value>, InvalidConnectOptions> {
        let value = match self {
            OptionField::Flag => query.flag(name).then_some(Value::Bool(true)),
            OptionField::Text => query.get(name).map(|text| json!(text)),
            OptionField::Path => (!path.is_empty()).then(|| json!(path)),
            OptionField::List => list(query.all(name).collect()),
            OptionField::Ports => {
                let ports = query.all(name).flat_map(|list| list.split(','));
                let ports: Result<Vec<u16>, _> = ports.map(str::parse).collect();
                list(ports.map_err(|_| InvalidConnectOptions::Ports)?)
            }
        };
        Ok(value)
    }

    fn fits(self, value: &Value) -> bool {
        let all = |fits: fn(&Value) -> bool| value.as_array().is_some_and(|a| a.iter().all(fits));
        match self {
            OptionField::Flag => value.is_boolean(),
            OptionField::Text | OptionField::Path => value.is_string(),
            OptionField::List => all(Value::is_string),
            OptionField::Ports => all(|port| {
                port.as_u64()
                    .is_some_and(|port| port <= u64::from(u16::MAX))
            }),
        }
    }
}

/// A list as a field that is left out when it is empty.
fn list<T: serde::Serialize>(items: Vec<T>) -> Option<Value> {
    (!items.is_empty()).then(|| json!(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kind: &str, query: &str, path: &str) -> Result<Value, InvalidConnectOptions> {
        read(kind, &Query::parse(query).expect("a query"), path)
    }

    #[test]
    fn queries_are_read_as_options() {
        for (kind, query, path, expect) in [
            (
                "PodExecOptions",
                "command=a&command=b%20c&stdin&tty=false&container=x&other=1",
                "",
                json!({"stdin": true, "container": "x", "command": ["a", "b c"]}),
            ),
            (
                "PodAttachOptions",
                "stdout=1&command=a",
                "",
                json!({"stdout": true}),
            ),
            (
                "PodPortForwardOptions",
                "ports=80,81&ports=82",
                "",
                json!({"ports": [80, 81, 82]}),
            ),
            (
                "PodProxyOptions",
                "path=/q&stdin=true",
                "/a/b",
                json!({"path": "/a/b"}),
            ),
            ("NodeProxyOptions", "path=/q", "", json!({})),
        ] {
            let mut expect = expect;
            set(&mut expect, "kind", kind);
            set(&mut expect, "apiVersion", "v1");
            assert_eq!(options(kind, query, path), Ok(expect), "{query}");
        }
        let refused = options("PodPortForwardOptions", "ports=80,no", "");
        assert_eq!(refused, Err(InvalidConnectOptions::Ports));
    }

    #[test]
    fn changed_options_keep_their_kind_and_types() {
        let changed = |object: Value| {
            let mut object = object;
            conform("PodExecOptions", &mut object).map(|()| object)
        };
        assert_eq!(
            changed(json!({"kind": "Pod", "command": ["a"], "tty": null, "metadata": {}})),
            Ok(json!({"kind": "PodExecOptions", "apiVersion": "v1", "command": ["a"]}))
        );
        for object in [
            json!({"stdin": "yes"}),
            json!({"command": "a"}),
            json!({"command": [1]}),
        ] {
            assert!(changed(object.clone()).is_err(), "{object}");
        }
    }
}
