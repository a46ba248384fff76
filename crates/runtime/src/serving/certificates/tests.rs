use jiff::Timestamp;
use kube::api::PostParams;
use kubewright_server::Server;
use kubewright_testing::limit;
use serde_json::json;

use super::rotation::{Issued, decide as next_of};
use super::*;
use crate::environment::VirtualClock;

const SETTLE: Duration = Duration::from_secs(60);
const LIFE: i64 = 3600;

fn issued(number: i64, now: i64) -> Issued {
    Issued {
        authority: format!("[{number}]"),
        certificate: format!("certificate {number}"),
        key: "a key".to_owned(),
        names: vec!["a".to_owned()],
        issued: now,
        expires: now + LIFE,
    }
}

/// What is stored after one look at this moment.
fn look(stored: Option<&Stored>, now: i64, trust: Trust) -> Option<Stored> {
    let names = ["a".to_owned()];
    let view = View {
        now,
        names: &names,
        trust,
        settle: SETTLE,
    };
    next_of::<()>(stored, view, || Ok(issued(now, now))).expect("it can be issued")
}

#[test]
fn a_certificate_is_replaced_in_two_moves_that_everybody_can_follow() {
    let first = look(None, 0, Trust::Incomplete).expect("nothing is served yet");
    assert_eq!(first.bundle(), "[0]");
    assert_eq!(look(Some(&first), 2399, Trust::Everywhere), None);

    let second = look(Some(&first), 2400, Trust::Everywhere).expect("two thirds are over");
    assert_eq!(
        (&*second.bundle(), &second.served),
        ("[0][2400]", &first.served)
    );
    assert_eq!(
        look(Some(&second), 2459, Trust::Everywhere),
        None,
        "not settled"
    );
    assert_eq!(
        look(Some(&second), 2500, Trust::Incomplete),
        None,
        "not trusted"
    );

    let third = look(Some(&second), 2500, Trust::Everywhere).expect("it is trusted");
    assert_eq!((&*third.bundle(), third.served.issued), ("[2400][0]", 2400));
    assert_eq!(
        look(Some(&third), 2559, Trust::Everywhere),
        None,
        "not settled"
    );

    let fourth = look(Some(&third), 2560, Trust::Everywhere).expect("it has settled");
    assert_eq!(
        (&*fourth.bundle(), fourth.phase),
        ("[2400]", Phase::Settled)
    );
}

#[test]
fn an_expired_certificate_is_replaced_at_once() {
    let first = look(None, 0, Trust::Incomplete).expect("nothing is served yet");
    let fresh = look(Some(&first), LIFE, Trust::Everywhere).expect("it has expired");
    assert_eq!((&*fresh.bundle(), fresh.served.issued), ("[3600]", LIFE));
    let introducing = look(Some(&first), 2400, Trust::Everywhere).expect("two thirds are over");
    let forced = look(Some(&introducing), LIFE, Trust::Incomplete).expect("it has expired");
    assert_eq!(
        forced.served.issued, 2400,
        "nobody takes the old one any more"
    );
    let late = look(Some(&forced), 2400 + LIFE, Trust::Incomplete).expect("it has expired too");
    assert_eq!(late.served.issued, 2400 + LIFE);
}

#[test]
fn a_service_of_another_name_gets_its_certificate_at_once() {
    let mut first = look(None, 0, Trust::Incomplete).expect("nothing is served yet");
    first.served.names = vec!["b".to_owned()];
    let next = look(Some(&first), 10, Trust::Incomplete).expect("the name is another");
    assert_eq!((&*next.bundle(), next.served.issued), ("[10][0]", 10));
}

#[test]
fn keys_are_not_shown() {
    let shown = format!("{:?}", look(None, 0, Trust::Incomplete));
    assert!(!shown.contains("a key"), "{shown}");
}

#[test]
fn only_entries_of_our_services_are_changed_and_only_where_they_differ() {
    let services = ["webhook-service".to_owned()];
    let own = Own {
        namespace: "system",
        services: &services,
    };
    let client = |namespace: &str, bundle: &str| {
        let service = json!({"namespace": namespace, "name": "webhook-service"});
        json!({"clientConfig": {"service": service, "caBundle": bundle}})
    };
    let object = json!({
        "metadata": {"resourceVersion": "7"},
        "webhooks": [client("system", "new"), client("other", "old"), client("system", "old")],
    });
    let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"});
    let change = json!({"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": "new"});
    assert_eq!(
        inject::patch(&object, own, "new"),
        Some(json!([version, change]))
    );
    let url = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"url": "https://a"}}}}});
    assert_eq!(inject::patch(&url, own, "new"), None);
}

#[test]
fn times_that_leave_no_room_for_a_replacement_are_refused() {
    let options = || CertificateOptions::new("system", "cert");
    assert!(options().times(SETTLE * 11, SETTLE).is_err());
    assert!(options().times(SETTLE, Duration::ZERO).is_err());
    assert!(options().times(SETTLE * 12, SETTLE).is_ok());
}

/// A server with a configuration that refers to the operator's Service.
async fn server() -> (Server, kube::Client) {
    let server = Server::builder().start().await.expect("a server starts");
    let kube = kube::Client::new(server.service(), "default");
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "a.b.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": "webhook-service"}},
            "rules": [{"apiGroups": ["b.io"], "apiVersions": ["v1"], "resources": ["as"], "operations": ["CREATE"]}],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(configuration.to_string().into_bytes())
        .expect("a request");
    kube.request::<Value>(request).await.expect("it is created");
    (server, kube)
}

fn options(settle: Duration) -> CertificateOptions {
    let target = TrustTarget::Validating("hooks".to_owned());
    let options = CertificateOptions::new("default", "cert").service("webhook-service");
    let times = options.target(target).times(settle * 12, settle);
    times.expect("they fit together")
}

fn environment(seed: u64) -> Environment {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a moment");
    Environment::seeded(VirtualClock::starting_at(start), seed)
}

async fn replica(kube: &kube::Client, seed: u64) -> Certificates {
    let options = options(Duration::from_secs(300));
    let prepared = Certificates::prepare(kube.clone(), options, environment(seed)).await;
    prepared.expect("there is a certificate")
}

/// What the configuration trusts, in PEM.
async fn trusted(kube: &kube::Client) -> String {
    let target = TrustTarget::Validating("hooks".to_owned());
    let request = Request::get(target.path()).body(Vec::new());
    let object: Value = kube
        .request(request.expect("a request"))
        .await
        .expect("it is there");
    let bundle = object["webhooks"][0]["clientConfig"]["caBundle"].as_str();
    let bundle = STANDARD.decode(bundle.unwrap_or_default());
    String::from_utf8(bundle.expect("base64")).expect("PEM")
}

/// The authorities of all certificates that were stored, by the certificate that they signed.
async fn authority_of(kube: &kube::Client, served: &str) -> Option<String> {
    let secrets = secret::Keeper::new(kube.clone(), &options(Duration::from_secs(300)));
    let stored = secret::stored(&secrets.read().await.ok()?)?;
    (stored.served.certificate == served).then_some(stored.served.authority)
}

#[limited::test(start_paused = true)]
async fn replicas_serve_what_is_trusted_through_many_replacements() {
    let (_server, kube) = server().await;
    let (stop, mut tasks) = (CancellationToken::new(), tokio::task::JoinSet::new());
    let mut serving = Vec::new();
    for seed in [1, 2] {
        let certificates = replica(&kube, seed).await;
        serving.push(certificates.tls());
        tasks.spawn(certificates.follow(stop.clone()));
    }
    let mut authorities = std::collections::BTreeMap::new();
    sleep(Duration::from_secs(5)).await;
    // Four hours of certificates that live for one, looked at more often than anything changes.
    for _ in 0..960 {
        sleep(Duration::from_secs(15)).await;
        let bundle = trusted(&kube).await;
        for tls in &serving {
            let served = tls.certificate_pem();
            if let Some(authority) = authority_of(&kube, &served).await {
                authorities.insert(served.clone(), authority);
            }
            let authority = authorities.get(&served).expect("it was stored before");
            assert!(bundle.contains(authority), "served and not trusted");
        }
    }
    stop.cancel();
    while limit(tasks.join_next()).await.is_some() {}
    assert!(authorities.len() >= 5, "{} certificates", authorities.len());
}

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_that_start_at_once_agree_on_one_certificate() {
    let (_server, kube) = server().await;
    let mut starting = tokio::task::JoinSet::new();
    for seed in 0..8 {
        let kube = kube.clone();
        starting.spawn(async move { replica(&kube, seed).await.tls().certificate_pem() });
    }
    let served = limit(starting.join_all()).await;
    assert!(served.iter().all(|one| *one == served[0]));
}

#[limited::test(start_paused = true)]
async fn a_replica_is_ready_once_it_is_trusted() {
    let (_server, kube) = server().await;
    let certificates = replica(&kube, 1).await;
    let ready = certificates.readiness();
    assert!(ready().is_err());
    let stop = CancellationToken::new();
    let task = tokio::spawn(certificates.follow(stop.clone()));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(ready(), Ok(()));
    assert!(!trusted(&kube).await.is_empty());
    stop.cancel();
    limit(task).await.expect("it ends");
}

/// Who has written an object, as the server keeps account of it.
fn managers(object: &Value) -> Vec<&str> {
    let fields = object["metadata"]["managedFields"].as_array();
    let managers = fields.into_iter().flatten();
    managers.filter_map(|it| it["manager"].as_str()).collect()
}

#[limited::test(start_paused = true)]
async fn secret_and_configurations_are_written_under_the_name_of_the_operator() {
    let (_server, kube) = server().await;
    let options = options(Duration::from_secs(300)).field_manager("guest & book");
    let prepared = Certificates::prepare(kube.clone(), options, environment(1)).await;
    let mut certificates = prepared.expect("there is a certificate");
    certificates.round().await.expect("it looks after them");
    let target = TrustTarget::Validating("hooks".to_owned()).path();
    for path in [&target, "/api/v1/namespaces/default/secrets/cert"] {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        let object: Value = kube.request(request).await.expect("it is there");
        let managers = managers(&object);
        assert!(managers.contains(&"guest & book"), "{path}: {managers:?}");
    }
}

#[limited::test(start_paused = true)]
async fn a_secret_that_was_emptied_is_filled_again() {
    let (_server, kube) = server().await;
    let certificates = replica(&kube, 1).await;
    let before = certificates.tls().certificate_pem();
    let tls = certificates.tls();
    let stop = CancellationToken::new();
    let task = tokio::spawn(certificates.follow(stop.clone()));
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> =
        kube::Api::default_namespaced(kube.clone());
    let mut secret = secrets.get("cert").await.expect("it is there");
    secret.data = None;
    let emptied = secrets
        .replace("cert", &PostParams::default(), &secret)
        .await;
    emptied.expect("it is emptied");
    sleep(Duration::from_secs(120)).await;
    assert_ne!(tls.certificate_pem(), before);
    let authority = authority_of(&kube, &tls.certificate_pem()).await;
    assert!(
        trusted(&kube)
            .await
            .contains(&authority.expect("it is stored"))
    );
    stop.cancel();
    limit(task).await.expect("it ends");
}
