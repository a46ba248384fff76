//! What the user may do with an object, asked with SelfSubjectAccessReviews. What is not allowed is not offered.

use futures::future::join_all;
use http::{Method, Response};
use serde_json::{Value, json};

use crate::cluster::{Call, Connection};
use crate::http::{Body, Problem, json_of};
use crate::kinds::Kind;
use crate::query::Query;
use crate::read;
use crate::state::{Mode, State};

/// One thing that can be done with an object, and what the API server is asked for it.
#[derive(Debug, PartialEq, Eq)]
struct Action {
    name: &'static str,
    verb: &'static str,
    subresource: &'static str,
}

/// Kinds whose pods are replaced when their template changes.
const RESTARTABLE: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Answers which actions the page may offer for an object.
pub(crate) async fn rights(state: &State, query: &Query) -> Result<Response<Body>, Problem> {
    let kind = read::kind(state, query).await?;
    let name = read::name(query)?;
    if state.mode == Mode::ReadOnly {
        return Ok(json_of(&json!({"actions": [], "readOnly": true})));
    }
    let actions = actions(&kind);
    let asked = actions
        .iter()
        .map(|action| is_allowed(state, &kind, (query.get("ns"), name), action));
    let answers = join_all(asked).await;
    let allowed: Vec<&str> = actions
        .iter()
        .zip(answers)
        .filter_map(|(action, allowed)| allowed.then_some(action.name))
        .collect();
    Ok(json_of(&json!({"actions": allowed, "readOnly": false})))
}

/// The actions that make sense for a kind, whoever asks.
fn actions(kind: &Kind) -> Vec<Action> {
    let action = |name, verb, subresource| Action {
        name,
        verb,
        subresource,
    };
    let can = |verb: &str| kind.verbs.iter().any(|known| known == verb);
    let mut actions = Vec::new();
    if can("update") {
        actions.push(action("edit", "update", ""));
    }
    if kind.subresources.iter().any(|name| name == "scale") {
        actions.push(action("scale", "patch", "scale"));
    }
    if kind.group == "apps" && RESTARTABLE.contains(&kind.kind.as_str()) {
        actions.push(action("restart", "patch", ""));
    }
    if kind.is("", "Node") {
        actions.push(action("cordon", "patch", ""));
        actions.push(action("drain", "patch", ""));
    }
    if kind.is("", "Pod") {
        actions.push(action("exec", "create", "exec"));
    }
    if can("delete") {
        actions.push(action("delete", "delete", ""));
    }
    actions
}

async fn is_allowed(
    state: &State,
    kind: &Kind,
    (namespace, name): (Option<&str>, &str),
    action: &Action,
) -> bool {
    let connection = &state.feeds.shared.connection;
    let attributes = json!({
        "namespace": namespace, "verb": action.verb, "group": kind.group, "version": kind.version,
        "resource": kind.plural, "subresource": action.subresource, "name": name,
    });
    let allowed = review(connection, attributes).await;
    if action.name != "drain" {
        return allowed;
    }
    let eviction =
        json!({"verb": "create", "group": "", "resource": "pods", "subresource": "eviction"});
    allowed && review(connection, eviction).await
}

/// Asks the API server. An answer that does not come counts as no.
async fn review(connection: &Connection, attributes: Value) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let call = Call::new(Method::POST, path).body("application/json", review.to_string().into());
    match connection.json(call).await {
        Ok(answer) => answer["status"]["allowed"] == true,
        Err(error) => {
            tracing::debug!(%error, "an access review was not answered");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(group: &str, kind: &str, subresources: &[&str]) -> Vec<&'static str> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let kind = Kind {
            id: String::new(),
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: String::new(),
            kind: kind.to_owned(),
            namespaced: true,
            short_names: Vec::new(),
            verbs: owned(&["list", "watch", "update", "delete"]),
            subresources: owned(subresources),
        };
        actions(&kind).iter().map(|action| action.name).collect()
    }

    #[test]
    fn actions_are_those_that_make_sense_for_the_kind() {
        assert_eq!(names("", "ConfigMap", &[]), ["edit", "delete"]);
        assert_eq!(
            names("apps", "Deployment", &["status", "scale"]),
            ["edit", "scale", "restart", "delete"]
        );
        assert_eq!(
            names("", "Node", &[]),
            ["edit", "cordon", "drain", "delete"]
        );
        assert_eq!(names("", "Pod", &["exec"]), ["edit", "exec", "delete"]);
        assert_eq!(names("example.com", "Deployment", &[]), ["edit", "delete"]);
    }
}
