//! Certificates, keys and names from outside, as tools pass them that start a server with their own.

mod client;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client::create;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubewright_server::{Certificates, Server};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use serde_json::json;

/// An authority of clients.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "others");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed").pem();
        let issuer = Issuer::new(params, key);
        Self {
            issuer,
            certificate,
        }
    }

    /// A certificate and its key.
    fn client(&self, name: &str, group: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let signed = params.signed_by(&key, &self.issuer).expect("signed");
        (signed.pem(), key.serialize_pem())
    }
}

/// A client that trusts this chain and shows this certificate.
async fn connect(url: &str, chain: &str, identity: (String, String)) -> kube::Client {
    let yaml = format!(
        "clusters: [{{name: c, cluster: {{server: '{url}', certificate-authority-data: {}}}}}]\n\
         users: [{{name: u, user: {{client-certificate-data: {}, client-key-data: {}}}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n",
        STANDARD.encode(chain),
        STANDARD.encode(identity.0),
        STANDARD.encode(identity.1),
    );
    let kubeconfig = Kubeconfig::from_yaml(&yaml).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    kube::Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn who_am_i(client: kube::Client) -> Option<UserInfo> {
    let api: Api<SelfSubjectReview> = Api::all(client);
    let (params, review) = (PostParams::default(), SelfSubjectReview::default());
    let answer = api.create(&params, &review).await.ok()?;
    answer.status?.user_info
}

#[tokio::test]
async fn clients_of_a_given_authority_are_who_their_certificate_says() {
    let (known, unknown) = (Authority::new(), Authority::new());
    let (chain, key) = Certificates::generate(&[]).expect("certificates");
    let certificates = Certificates::default()
        .serving(chain.clone(), key)
        .client_authorities(known.certificate.clone());
    let server = Server::builder().start().await.expect("starts");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server
        .listen_with(address, &certificates)
        .await
        .expect("listens");

    let bob = connect(endpoint.url(), &chain, known.client("bob", "team")).await;
    let user = who_am_i(bob).await.expect("bob gets in");
    assert_eq!(user.username.as_deref(), Some("bob"));
    assert_eq!(
        user.groups.unwrap_or_default(),
        ["team", "system:authenticated"]
    );

    let mallory = connect(endpoint.url(), &chain, unknown.client("bob", "team")).await;
    assert_eq!(who_am_i(mallory).await, None);
}

#[tokio::test]
async fn tokens_name_the_given_issuer_and_are_for_it() {
    let key = KeyPair::generate().expect("a key").serialize_pem();
    let server = Server::builder()
        .token_issuer("https://127.0.0.1:6443/")
        .token_key(key)
        .start()
        .await
        .expect("starts");
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let robot = json!({"metadata": {"name": "robot"}});
    create(&server, accounts, robot).await;
    let made = create(&server, &format!("{accounts}/robot/token"), json!({})).await;
    assert_eq!(
        made["spec"]["audiences"],
        json!(["https://127.0.0.1:6443/"])
    );
    let token = made["status"]["token"].as_str().expect("a token");
    let request = http::Request::get("https://localhost/api/v1/namespaces/default")
        .header("authorization", format!("Bearer {token}"))
        .body(http_body_util::Full::new(bytes::Bytes::new()))
        .expect("a request");
    let answer = tower::ServiceExt::oneshot(server.service_by_token(), request).await;
    assert_eq!(answer.expect("never fails").status(), 200);
}

#[tokio::test]
async fn a_key_of_another_kind_is_refused_at_the_start() {
    let server = Server::builder().token_key("no key").start().await;
    assert!(server.is_err());
}

#[tokio::test]
async fn administrators_certificate_ends_and_every_client_can_read_its_key() {
    let server = Server::builder().start().await.expect("starts");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = server.listen(address).await.expect("listens");
    let decoded = |name: &str| {
        let mut lines = endpoint.kubeconfig().as_str().lines();
        let value = lines.find_map(|line| line.trim().strip_prefix(name));
        STANDARD.decode(value.expect("a field")).expect("base64")
    };
    let certificate = decoded("client-certificate-data: ");
    let (_, pem) = x509_parser::pem::parse_x509_pem(&certificate).expect("PEM");
    let validity = pem.parse_x509().expect("a certificate").validity().clone();
    let day = 24 * 60 * 60;
    let left = validity.time_to_expiration().expect("still good");
    assert!(
        (364 * day..=365 * day).contains(&left.whole_seconds()),
        "{left}"
    );
    let key = decoded("client-key-data: ");
    assert!(key.starts_with(b"-----BEGIN EC PRIVATE KEY-----\n"));
    let kubeconfig = Kubeconfig::from_yaml(endpoint.kubeconfig().as_str()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = kube::Client::try_from(config.expect("a configuration")).expect("a client");
    let user = who_am_i(client).await.expect("the administrator gets in");
    assert_eq!(user.username.as_deref(), Some("kubernetes-admin"));
}
