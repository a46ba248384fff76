//! Webhooks for tests: HTTPS on loopback, a function that answers, and a record of what was asked.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Answers a review with a status code and a body.
type Answer = dyn Fn(&Value) -> (u16, String) + Send + Sync;

/// A webhook that listens until it is dropped.
pub(crate) struct Webhook {
    pub(crate) address: SocketAddr,
    pub(crate) bundle: String,
    asked: Arc<Mutex<Vec<Value>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Webhook {
    /// A webhook whose answers are made by a function of the whole review.
    pub(crate) async fn raw(
        answer: impl Fn(&Value) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let names = ["127.0.0.1".to_owned(), "hook.system.svc".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a configuration");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let tls = TlsAcceptor::from(Arc::new(tls));
        let task = tokio::spawn(listen(listener, tls, Arc::new(answer), asked.clone()));
        Self {
            address,
            bundle: base64::engine::general_purpose::STANDARD.encode(made.cert.pem()),
            asked,
            task,
        }
    }

    /// An admission webhook whose response is made by a function of the request.
    pub(crate) async fn admission(
        respond: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self::raw(move |review| {
            let mut response = respond(&review["request"]);
            response["uid"] = review["request"]["uid"].clone();
            let answer = json!({
                "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
            });
            (200, answer.to_string())
        })
        .await
    }

    /// How a configuration refers to it by address.
    pub(crate) fn client_config(&self) -> Value {
        json!({"url": format!("https://{}/hook", self.address), "caBundle": self.bundle})
    }

    /// What it was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(
    listener: TcpListener,
    tls: TlsAcceptor,
    answer: Arc<Answer>,
    asked: Arc<Mutex<Vec<Value>>>,
) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, answer, asked) = (tls.clone(), answer.clone(), asked.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request: Request<Incoming>| {
                let (answer, asked) = (answer.clone(), asked.clone());
                async move {
                    let body = request.into_body().collect().await;
                    let body = body.map(|b| b.to_bytes()).unwrap_or_default();
                    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
                    asked.lock().expect("not poisoned").push(review.clone());
                    let (status, text) = answer(&review);
                    let response = Response::builder().status(status);
                    let response = response.body(Full::new(Bytes::from(text)));
                    Ok::<_, Infallible>(response.expect("a response"))
                }
            });
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// A response that applies a JSON patch.
pub(crate) fn patch(operations: Value) -> Value {
    let patch = base64::engine::general_purpose::STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

/// A configuration with one webhook for some resource.
pub(crate) fn configuration(kind: &str, name: &str, webhook: Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    });
    let (hook, webhook) = (hook.as_object_mut(), webhook.as_object().cloned());
    let mut hook = hook.cloned().unwrap_or_default();
    hook.extend(webhook.unwrap_or_default());
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": [hook],
    })
}
