use base64::Engine as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::admission::Operation;
use crate::conversion::Spoke;
use crate::field_error::{FieldError, FieldErrors};

/// A review as API servers send it.
fn review(operation: &str, object: Value, old: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "name": "a", "namespace": "n", "operation": operation, "userInfo": {"username": "alice"},
            "object": object, "oldObject": old, "dryRun": false, "options": null,
        },
    })
}

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data, "unheardOf": 1})
}

async fn ask(webhooks: &Webhooks, path: &str, question: &Value) -> Value {
    match webhooks.answer(path, question.to_string().as_bytes()).await {
        Answer::Review(review) => serde_json::from_slice(&review).expect("a review is JSON"),
        other => panic!("no review: {other:?}"),
    }
}

/// The response to a review, without its envelope and uid.
async fn respond(webhooks: &Webhooks, path: &str, question: &Value) -> Value {
    let mut answer = ask(webhooks, path, question).await;
    assert_eq!(answer["apiVersion"], question["apiVersion"]);
    assert_eq!(answer["kind"], question["kind"]);
    let mut response = answer["response"].take();
    let fields = response.as_object_mut().expect("a response");
    assert_eq!(
        fields.remove("uid"),
        Some(question["request"]["uid"].clone())
    );
    response
}

fn patch(response: &Value) -> Value {
    let encoded = response["patch"].as_str().expect("there is a patch");
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded);
    serde_json::from_slice(&decoded.expect("it is base64")).expect("it is JSON")
}

fn set_defaults(map: &mut ConfigMap) {
    map.data
        .get_or_insert_default()
        .entry("color".into())
        .or_insert("red".into());
}

fn validate(map: &ConfigMap, old: Option<&ConfigMap>) -> Result<(), String> {
    match old {
        Some(old) if old.data != map.data => Err("data does not change".to_owned()),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn defaulting_answers_with_a_patch_of_what_it_changed() {
    let webhooks = Webhooks::new().defaulting("/mutate", set_defaults);
    let bare = review("CREATE", map(json!({"size": "l"})), Value::Null);
    let response = respond(&webhooks, "/mutate", &bare).await;
    assert_eq!(response["allowed"], true);
    assert_eq!(response["patchType"], "JSONPatch");
    assert_eq!(
        patch(&response),
        json!([{"op": "add", "path": "/data/color", "value": "red"}])
    );

    let whole = review("UPDATE", map(json!({"color": "blue"})), map(json!({})));
    assert_eq!(
        respond(&webhooks, "/mutate", &whole).await,
        json!({"allowed": true})
    );
    let deleted = review("DELETE", Value::Null, map(json!({})));
    assert_eq!(
        respond(&webhooks, "/mutate", &deleted).await,
        json!({"allowed": true})
    );
}

#[tokio::test]
async fn validating_says_why_not() {
    let webhooks = Webhooks::new().validating("/validate", validate);
    let created = review("CREATE", map(json!({"a": "1"})), Value::Null);
    assert_eq!(
        respond(&webhooks, "/validate", &created).await,
        json!({"allowed": true})
    );
    let changed = review("UPDATE", map(json!({"a": "1"})), map(json!({"a": "2"})));
    let refused = json!({
        "allowed": false,
        "status": {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "data does not change"},
    });
    assert_eq!(respond(&webhooks, "/validate", &changed).await, refused);
    for passes in ["DELETE", "CONNECT"] {
        let question = review(passes, Value::Null, map(json!({})));
        assert_eq!(
            respond(&webhooks, "/validate", &question).await,
            json!({"allowed": true})
        );
    }
}

/// Validates with warnings, deletions too, and in other words.
struct Strict;

impl Validating<ConfigMap> for Strict {
    async fn create(&self, _: &ConfigMap, request: &Request) -> crate::ValidationResult {
        Ok(vec![format!(
            "{} is new here",
            request.user_info.username.clone().unwrap_or_default()
        )])
    }

    async fn update(&self, _: &ConfigMap, _: &ConfigMap, _: &Request) -> crate::ValidationResult {
        Err(Denial::invalid("data: Invalid value"))
    }

    async fn delete(&self, _: &ConfigMap, _: &Request) -> crate::ValidationResult {
        Err(Denial::new("it stays"))
    }
}

#[tokio::test]
async fn validator_can_warn_and_refuse_deletions() {
    let webhooks = Webhooks::new().validating("/validate", Strict);
    let (new, old) = (map(json!({})), map(json!({})));
    let created = respond(
        &webhooks,
        "/validate",
        &review("CREATE", new.clone(), Value::Null),
    )
    .await;
    assert_eq!(
        created,
        json!({"allowed": true, "warnings": ["alice is new here"]})
    );
    let updated = respond(&webhooks, "/validate", &review("UPDATE", new, old.clone())).await;
    assert_eq!(updated["status"]["code"], 422);
    let deleted = respond(&webhooks, "/validate", &review("DELETE", Value::Null, old)).await;
    assert_eq!(deleted["status"]["message"], "it stays");
}

/// Needs a value that the program gives.
struct Budget(usize);

struct Sized;

impl Validating<ConfigMap> for Sized {
    async fn create(&self, map: &ConfigMap, request: &Request) -> crate::ValidationResult {
        let size = map.data.as_ref().map_or(0, std::collections::BTreeMap::len);
        if size > request.state::<Budget>()?.0 {
            return Err(Denial::new("it is too large"));
        }
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn requests_lead_to_what_the_program_gives() {
    let question = review("CREATE", map(json!({"a": "1", "b": "2"})), Value::Null);
    let message = async |webhooks: Webhooks| {
        let response = respond(&webhooks, "/validate", &question).await;
        response["status"]["message"].as_str().map(str::to_owned)
    };
    let webhooks = || Webhooks::new().validating("/validate", Sized);
    let missing = message(webhooks()).await.expect("it is denied");
    assert!(
        missing.starts_with("there is no state of type"),
        "{missing}"
    );

    let small = || Webhooks::new().state(Budget(1));
    let too_large = Some("it is too large".to_owned());
    assert_eq!(message(webhooks().and(small())).await, too_large);
    assert_eq!(message(small().and(webhooks())).await, too_large);
    assert_eq!(
        message(small().and(webhooks().state(Budget(2)))).await,
        None
    );

    let mut given = crate::States::default();
    given.insert(Budget(2));
    assert_eq!(message(webhooks().with_states(&given)).await, None);
    let own = webhooks().state(Budget(1)).with_states(&given);
    assert_eq!(message(own).await, too_large, "its own value counts");
}

#[tokio::test]
async fn denial_has_the_code_and_reason_of_its_kind() {
    for (denial, code, reason) in [
        (Denial::new("no"), 403, "Forbidden"),
        (Denial::bad_request("no"), 400, "BadRequest"),
        (Denial::invalid("no"), 422, "Invalid"),
        (Denial::internal("no"), 500, "InternalError"),
    ] {
        let answer = move |_: Request| {
            let denial = denial.clone();
            async move { Response::denied(denial) }
        };
        let webhooks = Webhooks::new().admission("/any", answer);
        let question = review("CREATE", map(json!({})), Value::Null);
        let refused = respond(&webhooks, "/any", &question).await;
        let status = &refused["status"];
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&json!(code), &json!(reason))
        );
    }
}

#[tokio::test]
async fn any_function_can_read_the_state_before() {
    let answer = async |request: Request| match request.decode_old::<ConfigMap>() {
        Ok(old) => Response::allowed().warn(format!("{:?}", old.data.unwrap_or_default())),
        Err(denial) => Response::denied(denial),
    };
    let webhooks = Webhooks::new().admission("/any", answer);
    let changed = review("UPDATE", map(json!({})), map(json!({"a": "1"})));
    let response = respond(&webhooks, "/any", &changed).await;
    assert_eq!(response["warnings"], json!([r#"{"a": "1"}"#]));
    let created = review("CREATE", map(json!({})), Value::Null);
    let response = respond(&webhooks, "/any", &created).await;
    assert_eq!(response["status"]["code"], 400, "{response}");
}

#[tokio::test]
async fn refusal_because_of_a_field_names_the_object_for_kubectl() {
    let webhooks =
        Webhooks::new().validating("/validate", |_: &ConfigMap, _: Option<&ConfigMap>| {
            Err::<(), _>(FieldErrors::from(FieldError::required("data.color", "")))
        });
    let mut question = review("CREATE", map(json!({})), Value::Null);
    question["request"]["kind"]["group"] = "example.com".into();
    let refused = respond(&webhooks, "/validate", &question).await;
    let details = &refused["status"]["details"];
    assert_eq!(details["name"], "a");
    assert_eq!(details["group"], "example.com");
    assert_eq!(details["kind"], "ConfigMap");
    assert_eq!(details["causes"][0]["field"], "data.color");
}

#[tokio::test]
async fn what_cannot_be_answered_is_said_and_ends_nothing() {
    let webhooks = Webhooks::new()
        .defaulting("/panic", |_: &mut ConfigMap| panic!("on purpose"))
        .validating("/validate", validate);
    let question = review("CREATE", map(json!({})), Value::Null);
    let panicked = respond(&webhooks, "/panic", &question).await;
    assert_eq!(panicked["status"]["code"], 500);
    let wrong = review("CREATE", map(json!("no map")), Value::Null);
    let refused = respond(&webhooks, "/validate", &wrong).await;
    assert_eq!(refused["status"]["code"], 400);

    assert_eq!(webhooks.answer("/elsewhere", b"{}").await, Answer::NotFound);
    let bad = async |body: &str| match webhooks.answer("/validate", body.as_bytes()).await {
        Answer::BadRequest(problem) => problem,
        other => panic!("{body} was answered: {other:?}"),
    };
    assert!(bad("{").await.starts_with("this is no AdmissionReview"));
    assert!(
        bad("{}")
            .await
            .starts_with("AdmissionReview of admission.k8s.io/v1 or")
    );
    let empty = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
    assert_eq!(
        bad(&empty.to_string()).await,
        "the AdmissionReview has no request"
    );
}

#[tokio::test]
async fn any_function_can_answer_in_the_version_of_the_question() {
    let webhooks = Webhooks::new().admission("/any", async |request: Request| {
        match (request.operation, request.dry_run) {
            (Operation::Connect, _) => Response::denied("nobody connects"),
            _ => Response::allowed().warn("seen"),
        }
    });
    let mut old = review("CONNECT", Value::Null, Value::Null);
    old["apiVersion"] = "admission.k8s.io/v1beta1".into();
    assert_eq!(respond(&webhooks, "/any", &old).await["allowed"], false);
}

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Job",
    namespaced,
    schema = "disabled"
)]
struct JobSpec {
    at: String,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v2",
        kind = "Job",
        namespaced,
        schema = "disabled"
    )]
    pub(super) struct JobSpec {
        pub(super) minute: String,
        pub(super) hour: String,
    }
}

impl Spoke<Job> for v2::Job {
    fn to_hub(self) -> Result<Job, String> {
        let at = format!("{} {}", self.spec.minute, self.spec.hour);
        let mut hub = Job::new("ignored", JobSpec { at });
        hub.metadata.annotations = Some([("was".to_owned(), "v2".to_owned())].into());
        Ok(hub)
    }

    fn from_hub(hub: Job) -> Result<Self, String> {
        let at = hub.spec.at;
        let (minute, hour) = at
            .split_once(' ')
            .ok_or_else(|| format!("{at:?} is not a time"))?;
        let (minute, hour) = (minute.to_owned(), hour.to_owned());
        Ok(v2::Job::new("ignored", v2::JobSpec { minute, hour }))
    }
}

#[tokio::test]
async fn request_says_what_the_user_sent_where_the_server_converted_it() {
    let look = async |request: Request| {
        let (kind, resource) = (request.request_kind, request.request_resource);
        let seen = json!({
            "resource": request.resource.resource, "version": request.resource.version,
            "sent": kind.map(|kind| kind.version), "path": resource.map(|it| it.resource),
            "subresources": [request.sub_resource, request.request_sub_resource],
        });
        Response::denied(seen.to_string())
    };
    let webhooks = Webhooks::new().admission("/look", look);
    let seen = async |question: &Value| {
        let response = respond(&webhooks, "/look", question).await;
        let message = response["status"]["message"].as_str().expect("words");
        serde_json::from_str::<Value>(message).expect("they are JSON")
    };
    let mut question = review("UPDATE", map(json!({})), map(json!({})));
    let expected = json!({
        "resource": "configmaps", "version": "v1", "sent": null, "path": null, "subresources": ["", ""],
    });
    assert_eq!(seen(&question).await, expected);
    let request = &mut question["request"];
    request["requestKind"] = json!({"group": "old", "version": "v1beta1", "kind": "ConfigMap"});
    request["requestResource"] = json!({"group": "old", "version": "v1beta1", "resource": "maps"});
    request["subResource"] = "scale".into();
    request["requestSubResource"] = "scale".into();
    let expected = json!({
        "resource": "configmaps", "version": "v1", "sent": "v1beta1", "path": "maps",
        "subresources": ["scale", "scale"],
    });
    assert_eq!(seen(&question).await, expected);
}

fn annotated(response: Response) -> Response {
    let response = response.audit_annotation("policy", "first");
    response.audit_annotation("policy", "frozen")
}

#[tokio::test]
async fn answer_carries_annotations_for_the_audit_log() {
    let webhooks = Webhooks::new()
        .admission("/yes", async |_: Request| annotated(Response::allowed()))
        .admission("/no", async |_: Request| {
            annotated(Response::denied("frozen"))
        });
    let question = review("CREATE", map(json!({})), Value::Null);
    for path in ["/yes", "/no"] {
        let response = respond(&webhooks, path, &question).await;
        assert_eq!(
            response["auditAnnotations"],
            json!({"policy": "frozen"}),
            "{path}"
        );
    }
}

fn conversion(desired: &str, objects: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u-2", "desiredAPIVersion": desired, "objects": objects},
    })
}

#[tokio::test]
async fn objects_are_converted_by_way_of_the_hub_and_keep_their_metadata() {
    let webhooks =
        Webhooks::new().converting("/convert", Converter::<Job>::hub().spoke::<v2::Job>());
    let metadata = json!({"name": "a", "uid": "1", "labels": {"x": "y"}});
    let one = json!({"apiVersion": "example.com/v1", "kind": "Job", "metadata": metadata, "spec": {"at": "5 *"}});
    let two = json!({
        "apiVersion": "example.com/v2", "kind": "Job", "metadata": metadata,
        "spec": {"minute": "5", "hour": "*"},
    });
    let to_two = conversion("example.com/v2", json!([one, two]));
    let response = respond(&webhooks, "/convert", &to_two).await;
    assert_eq!(response["result"], json!({"status": "Success"}));
    assert_eq!(response["convertedObjects"], json!([two, two]));

    let to_one = conversion("example.com/v1", json!([two]));
    let response = respond(&webhooks, "/convert", &to_one).await;
    let mut expected = one;
    expected["metadata"]["annotations"] = json!({"was": "v2"});
    assert_eq!(response["convertedObjects"], json!([expected]));
}

/// Says what annotations an object has after a conversion to the hub that sets `was`.
async fn annotations_after<S: Spoke<Job> + kube::Resource<DynamicType = ()>>(
    converter: Converter<Job>,
    uid: Option<&str>,
) -> Value {
    let webhooks = Webhooks::new().converting("/convert", converter);
    let object = json!({
        "apiVersion": S::api_version(&()), "kind": "Job",
        "metadata": {"name": "a", "uid": uid, "annotations": {"other": "theirs", "stash": "x"}},
        "spec": {"minute": "5", "hour": "*"},
    });
    let to_one = conversion("example.com/v1", json!([object]));
    let response = respond(&webhooks, "/convert", &to_one).await;
    response["convertedObjects"][0]["metadata"]["annotations"].clone()
}

mod v3 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v3",
        kind = "Job",
        namespaced,
        schema = "disabled"
    )]
    pub(super) struct JobSpec {
        pub(super) minute: String,
    }

    /// Takes the metadata over, and an annotation out of it.
    impl Spoke<super::Job> for Job {
        fn to_hub(self) -> Result<super::Job, String> {
            let at = self.spec.minute;
            let mut hub = super::Job::new("ignored", super::JobSpec { at });
            hub.metadata = self.metadata;
            let annotations = hub.metadata.annotations.get_or_insert_default();
            annotations.remove("stash");
            annotations.insert("was".to_owned(), "v3".to_owned());
            Ok(hub)
        }

        fn from_hub(hub: super::Job) -> Result<Self, String> {
            Ok(Job::new(
                "ignored",
                JobSpec {
                    minute: hub.spec.at,
                },
            ))
        }
    }
}

#[tokio::test]
async fn annotations_of_others_survive_a_conversion_that_sets_one() {
    let converter = Converter::<Job>::hub().spoke::<v2::Job>();
    let added = json!({"other": "theirs", "stash": "x", "was": "v2"});
    let found = annotations_after::<v2::Job>(converter, Some("1")).await;
    assert_eq!(found, added);
    let converter = || Converter::<Job>::hub().spoke::<v3::Job>();
    let removed = json!({"other": "theirs", "was": "v3"});
    let found = annotations_after::<v3::Job>(converter(), Some("1")).await;
    assert_eq!(found, removed);
    // Without a uid nobody can tell that the metadata was taken over.
    let added = json!({"other": "theirs", "stash": "x", "was": "v3"});
    let found = annotations_after::<v3::Job>(converter(), None).await;
    assert_eq!(found, added);
}

#[tokio::test]
async fn object_that_cannot_be_converted_fails_the_whole_and_says_why() {
    let webhooks =
        Webhooks::new().converting("/convert", Converter::<Job>::hub().spoke::<v2::Job>());
    let check = async |desired: &str, object: Value, expected: &str| {
        let response = respond(&webhooks, "/convert", &conversion(desired, json!([object]))).await;
        assert_eq!(response["result"]["status"], "Failure");
        let message = response["result"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(expected), "{message}");
        assert_eq!(response.get("convertedObjects"), None);
    };
    let job = |version: &str, spec: Value| json!({"apiVersion": format!("example.com/{version}"), "kind": "Job", "metadata": {"name": "a"}, "spec": spec});
    check(
        "example.com/v2",
        job("v1", json!({"at": "never"})),
        "\"never\" is not a time",
    )
    .await;
    check("example.com/v2", job("v1", json!({})), "does not decode").await;
    check(
        "example.com/v3",
        job("v1", json!({"at": "5 *"})),
        "no version \"v3\"",
    )
    .await;
    check(
        "other.com/v1",
        job("v1", json!({"at": "5 *"})),
        "group \"other.com\"",
    )
    .await;
    let stranger = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {}});
    check("example.com/v2", stranger, "nobody converts").await;
}
