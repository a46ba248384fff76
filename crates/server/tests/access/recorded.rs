//! Exchanges about access that were recorded with a real server.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

use crate::golden::{Exchange, Rules, compare, find, kube_apiserver};
use crate::host::server;

async fn replay(name: &str, rules: &Rules<'_>) -> (Exchange, Value, Vec<String>) {
    let server = server().await;
    let exchanges = kube_apiserver();
    let exchange = find(&exchanges, name).clone();
    let asked = exchange.request.clone().expect("recorded with its request");
    let mut request = http::Request::builder()
        .method(asked.method.as_str())
        .uri(format!("https://localhost{}", asked.path))
        .header("user-agent", "curl/8");
    if let Some(content_type) = &asked.content_type {
        request = request.header("content-type", content_type);
    }
    for (name, value) in &asked.headers {
        request = request.header(name, value);
    }
    let body = Full::new(Bytes::from(asked.body.unwrap_or_default()));
    let request = request.body(body).expect("a request");
    let answer = server
        .service()
        .oneshot(request)
        .await
        .expect("never fails");
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.expect("never fails").to_bytes();
    let differences = compare(
        &exchange,
        parts.status.as_u16(),
        &parts.headers,
        &bytes,
        rules,
    );
    let value = serde_json::from_slice(&bytes).expect("JSON");
    (
        exchange,
        value,
        differences.iter().map(ToString::to_string).collect(),
    )
}

#[tokio::test]
async fn refusals_and_reviews_are_those_of_a_real_server() {
    for name in ["impersonate forbidden", "SAR"] {
        let (_, _, differences) = replay(name, &Rules::default()).await;
        assert_eq!(differences, Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn rules_are_those_of_a_real_server_in_another_order() {
    let ignored = ["/status/resourceRules", "/status/nonResourceRules"];
    let rules = Rules {
        ignored: &ignored,
        ..Rules::default()
    };
    let (_, value, differences) = replay("rules review", &rules).await;
    assert_eq!(differences, Vec::<String>::new());
    // A real server lists bindings in whatever order its cache has them.
    let mut verbs: Vec<String> = Vec::new();
    for place in ["resourceRules", "nonResourceRules"] {
        let rules = value["status"][place].as_array().expect("rules");
        verbs.extend(
            rules
                .iter()
                .map(|rule| rule["verbs"][0].as_str().unwrap_or("").to_owned()),
        );
    }
    verbs.sort();
    assert_eq!(verbs, ["*", "*", "create", "create", "get", "get"]);
}
