//! Who may ask at all: nobody without a certificate, nobody as somebody else.

use kubewright_server::{Authorization, Server, User};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::call::Ask;
use crate::host::{CONFIG_MAPS, Host};
use crate::socket::{Identity, Site};

#[tokio::test]
async fn nobody_sees_more_than_health_and_version() {
    let site = Site::start().await;
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/readyz?verbose",
        "/version",
    ] {
        let mut wire = site.connect(&Identity::Nobody, "http/1.1").await;
        let answer = wire.get(path).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps/v1",
        "/openapi/v2",
        "/openapi/v3",
        "/metrics",
        "/api/v1/namespaces",
        "/api/v1/secrets",
        "/api/v1/namespaces/default/configmaps?watch=1",
        "/nothing",
        "/healthz/../api/v1/secrets",
        "//healthz",
        "/version/api",
    ] {
        let mut wire = site.connect(&Identity::Nobody, "http/1.1").await;
        let answer = wire.get(path).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
        assert!(
            answer.contains(r#""reason":"Unauthorized""#),
            "{path}: {answer}"
        );
    }
    site.serves().await;
}

#[tokio::test]
async fn claims_in_headers_are_not_believed() {
    let site = Site::start().await;
    for header in [
        "x-remote-user: kubernetes-admin\r\nx-remote-group: system:masters",
        "authorization: Bearer ",
        "authorization: Bearer x",
        "authorization: Basic YWRtaW46YWRtaW4=",
        "authorization: kubernetes-admin",
        "impersonate-user: kubernetes-admin",
        "x-forwarded-client-cert: kubernetes-admin",
        "ssl-client-verify: SUCCESS",
    ] {
        let mut wire = site.connect(&Identity::Nobody, "http/1.1").await;
        let request = format!("GET /api/v1/secrets HTTP/1.1\r\nhost: x\r\n{header}\r\n\r\n");
        wire.write(request).await.expect("written");
        let answer = wire.read_answer().await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{header}: {answer}");
    }
    site.serves().await;
}

#[tokio::test]
async fn nobody_acts_as_somebody_else_without_a_role_that_allows_it() {
    let server = Server::builder().authorization(Authorization::Rbac);
    let host = Host::with(server.start().await.expect("starts")).await;
    let mallory = host.server.service_as(User::new("mallory", ["testers"]));
    for header in [
        "impersonate-user",
        "impersonate-group",
        "impersonate-uid",
        "impersonate-extra-scopes",
    ] {
        let ask = Ask::get(CONFIG_MAPS).header(header, "system:admin");
        let answer = ask.send(&mallory).await;
        assert!(
            matches!(answer.code, 400 | 403),
            "{header}: {}",
            answer.text()
        );
        assert!(!answer.text().contains("victim"), "{header} shows nothing");
    }
    host.serves().await;
}

/// A client certificate for the administrator, from an authority with this key.
fn certificate(authority: KeyPair, expired: bool) -> Identity {
    let name = |common: &str| {
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, common);
        name
    };
    let mut issuing = CertificateParams::default();
    issuing.distinguished_name = name("kubewright-ca");
    issuing.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = Issuer::new(issuing, authority);
    let mut params = CertificateParams::default();
    params.distinguished_name = name("kubernetes-admin");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if expired {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    }
    let key = KeyPair::generate().expect("a key");
    let signed = params.signed_by(&key, &issuer).expect("signed");
    Identity::Certificate(signed.pem(), key.serialize_pem())
}

/// Whether a request with this identity is answered. With TLS 1.3 a refused certificate shows at the first read.
async fn gets_in(site: &Site, identity: &Identity) -> bool {
    let Ok(mut wire) = site.try_connect(identity, "http/1.1").await else {
        return false;
    };
    let request = "GET /api/v1/namespaces HTTP/1.1\r\nhost: x\r\n\r\n";
    let _ = wire.write(request).await;
    let answer = wire.read_answer().await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 200"),
        "{answer}"
    );
    !answer.is_empty()
}

#[tokio::test]
async fn certificates_are_checked_for_authority_and_age() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = kubewright_server::Server::builder().data_dir(directory.path());
    let site = Site::of(server.start().await.expect("starts")).await;
    let key_file = directory.path().join("pki/authority.key");
    let ours = || {
        let pem = std::fs::read_to_string(&key_file).expect("the key is kept");
        KeyPair::from_pem(&pem).expect("a key")
    };
    let other = KeyPair::generate().expect("a key");
    assert!(gets_in(&site, &certificate(ours(), false)).await);
    assert!(!gets_in(&site, &certificate(ours(), true)).await, "expired");
    assert!(
        !gets_in(&site, &certificate(other, false)).await,
        "another authority"
    );
    site.serves().await;
}

/// The first message of a handshake that offers nothing newer than this version, with old ciphers.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    let mut body = version.to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend([0, 4, 0x00, 0x2f, 0xc0, 0x13]);
    body.extend([1, 0]);
    let mut handshake = vec![1, 0, 0, body.len() as u8];
    handshake.extend(body);
    let mut record = vec![0x16, 3, 1, 0, handshake.len() as u8];
    record.extend(handshake);
    record
}

#[tokio::test]
async fn old_versions_of_tls_are_refused() {
    let site = Site::start().await;
    for version in [[3, 0], [3, 1], [3, 2]] {
        let mut stream = site.tcp().await;
        stream
            .write_all(&client_hello(version))
            .await
            .expect("written");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert_eq!(answer.first(), Some(&0x15), "an alert: {answer:?}");
        assert_eq!(answer.get(5), Some(&2), "a fatal one: {answer:?}");
    }
    for garbage in [
        &b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"[..],
        &[0xff; 100],
        &[0x16, 3, 1, 0xff, 0xff, 1],
    ] {
        let mut stream = site.tcp().await;
        stream.write_all(garbage).await.expect("written");
        stream.shutdown().await.expect("closed");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
    site.serves().await;
}
