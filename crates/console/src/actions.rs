//! Changes that the page asks for: edit, scale, restart, delete, cordon. Each is one request with the user's credentials.

use http::{Method, Response};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{Call, ClusterError, FieldCause};
use crate::http::{Body, Problem, json_of};
use crate::kinds::Kind;
use crate::mask::MASK;
use crate::state::State;

/// The name under which the server notes what is changed from the page.
const MANAGER: &str = "kubewright-console";
const MERGE: &str = "application/merge-patch+json";

/// The object that is to be changed.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    kind: String,
    #[serde(default)]
    ns: Option<String>,
    name: String,
}

/// A new text of an object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Edit {
    #[serde(flatten)]
    target: Target,
    yaml: String,
    /// Whether the server only says what it would do.
    #[serde(default)]
    dry_run: bool,
}

/// A number of replicas.
#[derive(Debug, Deserialize)]
pub(crate) struct Scale {
    #[serde(flatten)]
    target: Target,
    replicas: u32,
}

/// A deletion of exactly the object that the page shows, not of another one with its name.
#[derive(Debug, Deserialize)]
pub(crate) struct Delete {
    #[serde(flatten)]
    target: Target,
    uid: String,
    #[serde(default)]
    propagation: Propagation,
}

/// What becomes of the objects that belong to a deleted one.
#[derive(Debug, Default, Deserialize)]
enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

/// Whether a node takes new pods.
#[derive(Debug, Deserialize)]
pub(crate) struct Cordon {
    #[serde(flatten)]
    target: Target,
    unschedulable: bool,
}

impl Target {
    /// The kind and the path of the object.
    pub(crate) async fn resolve(&self, state: &State) -> Result<(Kind, String), Problem> {
        if self.name.is_empty() || self.name == "." || self.name == ".." {
            let message = format!("{:?} is not the name of an object", self.name);
            return Err(Problem::BadRequest(message));
        }
        let unknown = || Problem::BadRequest(format!("the cluster serves no kind {:?}", self.kind));
        let kind = state.feeds.kind(&self.kind).await.ok_or_else(unknown)?;
        let path = kind.object_path(self.ns.as_deref(), &self.name);
        Ok((kind, path))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Replaces an object by its edited text, or says what would come of it.
///
/// # Errors
/// When the text is not YAML, has another name or kind, or the server refuses it; causes name the fields.
pub(crate) async fn edit(state: &State, edit: Edit) -> Result<Response<Body>, Problem> {
    let (kind, path) = edit.target.resolve(state).await?;
    let object = parse(&edit.yaml)?;
    check(&kind, &edit.target, &object)?;
    let dry_run = if edit.dry_run { "&dryRun=All" } else { "" };
    let uri = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict{dry_run}");
    let call = Call::new(Method::PUT, uri).body("application/json", object.to_string().into());
    let written = state.feeds.shared.connection.json(call).await;
    let mut written = written.map_err(with_fields)?;
    crate::mask::secret(&kind, &mut written);
    Ok(json_of(&written))
}

fn parse(yaml: &str) -> Result<Value, Problem> {
    serde_saphyr::from_str(yaml).map_err(|error| {
        let line = error.location().map(|location| location.line());
        let message = error.without_snippet().to_string();
        Problem::Unreadable {
            message: format!("this is not YAML: {message}"),
            line,
        }
    })
}

/// Refuses a text that is about another object, or that would write the mask of a Secret as its value.
fn check(kind: &Kind, target: &Target, object: &Value) -> Result<(), Problem> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if object["kind"] != kind.kind.as_str() || name != target.name {
        let message = format!(
            "kind and name cannot be changed here; they are {} and {}",
            kind.kind, target.name
        );
        return Err(Problem::BadRequest(message));
    }
    let masked = |field: &str| {
        let values = object[field].as_object();
        values.is_some_and(|values| values.values().any(|value| value == MASK))
    };
    if kind.is("", "Secret") && (masked("data") || masked("stringData")) {
        let message = "the values are masked; show them before you edit them".to_owned();
        return Err(Problem::BadRequest(message));
    }
    Ok(())
}

/// Strict validation names unknown fields in its message alone; the page needs them as causes.
fn with_fields(mut error: ClusterError) -> ClusterError {
    if error.causes.is_empty() {
        let unknown = error.message.split("unknown field \"").skip(1);
        let named = unknown.filter_map(|rest| rest.split_once('"'));
        error.causes = named
            .map(|(field, _)| FieldCause {
                field: field.to_owned(),
                message: "the kind has no such field".to_owned(),
            })
            .collect();
    }
    error
}

/// Sets the number of replicas by the scale subresource.
pub(crate) async fn scale(state: &State, scale: Scale) -> Result<Response<Body>, Problem> {
    let (_, path) = scale.target.resolve(state).await?;
    let patch = json!({"spec": {"replicas": scale.replicas}});
    patched(
        state,
        format!("{path}/scale?fieldManager={MANAGER}"),
        &patch,
    )
    .await
}

/// Replaces all pods of a workload, as `kubectl rollout restart` does.
pub(crate) async fn restart(state: &State, target: Target) -> Result<Response<Body>, Problem> {
    let (_, path) = target.resolve(state).await?;
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let annotations = json!({"kubectl.kubernetes.io/restartedAt": now});
    let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
    patched(state, format!("{path}?fieldManager={MANAGER}"), &patch).await
}

/// Lets a node take no new pods, or take them again.
pub(crate) async fn cordon(state: &State, cordon: Cordon) -> Result<Response<Body>, Problem> {
    let (_, path) = cordon.target.resolve(state).await?;
    let patch = json!({"spec": {"unschedulable": cordon.unschedulable}});
    patched(state, format!("{path}?fieldManager={MANAGER}"), &patch).await
}

async fn patched(state: &State, uri: String, patch: &Value) -> Result<Response<Body>, Problem> {
    let call = Call::new(Method::PATCH, uri).body(MERGE, patch.to_string().into());
    let written = state.feeds.shared.connection.json(call).await?;
    Ok(json_of(
        &json!({"resourceVersion": written["metadata"]["resourceVersion"]}),
    ))
}

/// Deletes an object.
pub(crate) async fn delete(state: &State, delete: Delete) -> Result<Response<Body>, Problem> {
    let (_, path) = delete.target.resolve(state).await?;
    let policy = match delete.propagation {
        Propagation::Background => "Background",
        Propagation::Foreground => "Foreground",
        Propagation::Orphan => "Orphan",
    };
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy,
        "preconditions": {"uid": delete.uid},
    });
    let call = Call::new(Method::DELETE, path).body("application/json", options.to_string().into());
    state.feeds.shared.connection.call(call).await?;
    Ok(json_of(&json!({"deleted": delete.target.name})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_yaml_is_refused_with_its_line() {
        let refused = parse("a: 1\nb: [1\nc: 2\n");
        let Err(Problem::Unreadable { line, message }) = refused else {
            panic!("{refused:?}")
        };
        assert!(line.is_some_and(|line| line >= 2), "{line:?} {message}");
    }

    #[test]
    fn unknown_fields_of_strict_validation_become_causes() {
        let message = r#"Toy in version "v1" cannot be handled: strict decoding error: unknown field "spec.sise", unknown field "spec.colour""#;
        let error = ClusterError {
            code: 400,
            reason: "BadRequest".to_owned(),
            message: message.to_owned(),
            causes: Vec::new(),
        };
        let fields: Vec<String> = with_fields(error)
            .causes
            .into_iter()
            .map(|cause| cause.field)
            .collect();
        assert_eq!(fields, ["spec.sise", "spec.colour"]);
    }
}
