//! Samples are accepted by a server that has just been given their definition.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_manifests::{sample, yaml};
use kubewright_server::Server;
use serde_json::Value;
use tower::ServiceExt;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind that asks for more than the examples do.
const DEMANDING: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gateways.ex.io}
spec:
  group: ex.io
  scope: Cluster
  names: {kind: Gateway, plural: gateways}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        x-kubernetes-validations: [{rule: "self.metadata.name == 'cluster'"}]
        properties:
          spec:
            type: object
            required: [listeners, host, size]
            oneOf: [{required: [internal]}, {required: [external]}]
            x-kubernetes-validations:
            - {rule: "self.minimum <= self.maximum", message: minimum must not exceed maximum}
            - {rule: "self.mode != 'Static' || has(self.address)"}
            properties:
              internal: {type: object, properties: {zone: {type: string}}}
              external: {type: object, properties: {zone: {type: string}}}
              host: {type: string, pattern: '^[a-z]+\.[a-z]{2,5}$', minLength: 8}
              size: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: '^[0-9]+%$'}
              minimum: {type: integer, format: int32, minimum: 5}
              maximum: {type: integer, format: int32, maximum: 9}
              mode: {type: string, enum: [Static, Dynamic]}
              address: {type: string, format: ipv4}
              since: {type: string, format: date-time}
              listeners:
                type: array
                minItems: 2
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, port]
                items:
                  type: object
                  required: [name, port]
                  properties:
                    name: {type: string, maxLength: 15}
                    port: {type: integer, minimum: 1, maximum: 65535}
                    protocol: {type: string, default: TCP}
              template:
                type: object
                x-kubernetes-embedded-resource: true
                x-kubernetes-preserve-unknown-fields: true
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

async fn create(server: &Server, path: &str, body: String, content_type: &str) -> (u16, Value) {
    let request = http::Request::builder()
        .method("POST")
        .uri(format!("https://localhost{path}?fieldValidation=Strict"))
        .header("content-type", content_type)
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let answer = server
        .service()
        .oneshot(request)
        .await
        .expect("never fails");
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.expect("never fails").to_bytes();
    (
        parts.status.as_u16(),
        serde_json::from_slice(&bytes).unwrap_or_default(),
    )
}

#[tokio::test]
async fn samples_are_accepted_by_a_server() {
    let server = Server::builder().start().await.expect("starts");
    for text in [
        include_str!("../../../examples/foo/crd.yaml"),
        include_str!("../../../examples/fruit/crd.yaml"),
        include_str!("../../../examples/secsynch/crd.yaml"),
        DEMANDING,
    ] {
        let definition: CustomResourceDefinition =
            serde_saphyr::from_str(text).expect("a definition");
        let written = yaml::document(&definition);
        let (status, answer) = create(&server, DEFINITIONS, written, "application/yaml").await;
        assert_eq!(status, 201, "{answer:#}");
        let spec = &definition.spec;
        let version = &spec.versions[0].name;
        let sample = sample::of(&definition, version).unwrap_or_else(|error| panic!("{error}"));
        let namespace = if spec.scope == "Cluster" {
            ""
        } else {
            "/namespaces/default"
        };
        let path = format!(
            "/apis/{}/{version}{namespace}/{}",
            spec.group, spec.names.plural
        );
        let (status, answer) =
            create(&server, &path, yaml::document(&sample), "application/yaml").await;
        assert_eq!(status, 201, "{sample:#}\n{answer:#}");
    }
}
