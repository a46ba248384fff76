//! Certificate signing requests: who asks, who approves, who signs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::host::{Caller, rule, server, user};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A request for a certificate of this organization from a signer.
fn request(name: &str, organization: &str, signer: &str) -> Value {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(rcgen::DnType::OrganizationName, organization);
    let pem = params.serialize_request(&key).expect("a request").pem();
    json!({
        "metadata": { "name": name },
        "spec": {
            "request": STANDARD.encode(pem.expect("PEM")), "signerName": signer, "usages": ["client auth"],
            "username": "system:admin", "groups": ["system:masters"], "uid": "forged", "extra": { "a": ["b"] },
        },
    })
}

/// The certificate of an authority that signed itself.
fn authority() -> String {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.self_signed(&key).expect("signed").pem()
}

fn may(verb: &str, signers: &[&str]) -> Value {
    json!({
        "verbs": [verb], "apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": signers,
    })
}

#[tokio::test]
async fn a_request_names_its_maker_and_never_changes() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let group = "certificates.k8s.io";
    let rules = json!([rule(
        &["create", "get", "patch"],
        group,
        &["certificatesigningrequests"]
    )]);
    admin.grant("asks", "", user("mallory"), rules).await;
    let mallory = Caller::user(&server, "mallory");
    let made = mallory.create(REQUESTS, request("a", "o", "ex.io/s")).await;
    assert_eq!(made["spec"]["username"], "mallory");
    assert_eq!(made["spec"]["groups"], json!(["system:authenticated"]));
    assert!(made["spec"].get("uid").is_none() && made["spec"].get("extra").is_none());
    let change = json!({ "spec": { "signerName": "other.io/s", "username": "system:admin" } });
    let path = format!("{REQUESTS}/a");
    let (code, after) = mallory.send("PATCH", &path, &change).await;
    assert_eq!((code, &after["spec"]), (200, &made["spec"]));
    let client = "kubernetes.io/kube-apiserver-client";
    let text = mallory
        .refused(
            403,
            "POST",
            REQUESTS,
            &request("b", "system:masters", client),
        )
        .await;
    assert!(
        text.contains("signer with system:masters group is not allowed"),
        "{text}"
    );
    let (_, list) = admin
        .get(&format!(
            "{REQUESTS}?fieldSelector=spec.signerName%3Dex.io/s"
        ))
        .await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list:#}");
}

#[tokio::test]
async fn signers_have_approvers_and_signers_of_their_own() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let parts = [
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status",
    ];
    let write = || rule(&["get", "patch", "update"], "certificates.k8s.io", &parts);
    admin
        .grant("writes", "", user("bob"), json!([write()]))
        .await;
    let approver = json!([
        write(),
        may("approve", &["ex.io/s"]),
        may("sign", &["other.io/*"])
    ]);
    admin.grant("approves", "", user("ann"), approver).await;
    let signer = json!([write(), may("sign", &["ex.io/*"])]);
    admin.grant("signs", "", user("sue"), signer).await;
    admin.create(REQUESTS, request("a", "o", "ex.io/s")).await;
    let [bob, ann, sue] = ["bob", "ann", "sue"].map(|name| Caller::user(&server, name));
    let approved = json!([{ "type": "Approved", "status": "True", "reason": "r", "message": "m" }]);
    let approval = json!({ "status": { "conditions": approved } });
    let path = format!("{REQUESTS}/a/approval");
    for who in [&bob, &sue] {
        let text = who.refused(403, "PATCH", &path, &approval).await;
        assert!(
            text.ends_with("user not permitted to approve requests with signerName \"ex.io/s\""),
            "{text}"
        );
    }
    let (code, after) = ann.send("PATCH", &path, &approval).await;
    assert_eq!(code, 200, "{after:#}");
    let condition = &after["status"]["conditions"][0];
    assert!(condition["lastUpdateTime"].is_string() && condition["lastTransitionTime"].is_string());
    let gone = json!({ "status": { "conditions": [] } });
    let text = ann.refused(422, "PATCH", &path, &gone).await;
    assert!(
        text.contains("updates may not remove a condition of type \"Approved\""),
        "{text}"
    );
    let (chain, _) = kubewright_server::Certificates::generate(&[]).expect("certificates");
    let signed = json!({ "status": { "certificate": STANDARD.encode(chain) } });
    let path = format!("{REQUESTS}/a/status");
    for who in [&bob, &ann] {
        let text = who.refused(403, "PATCH", &path, &signed).await;
        assert!(
            text.contains("user not permitted to sign requests"),
            "{text}"
        );
    }
    let junk = json!({ "status": { "certificate": STANDARD.encode("junk") } });
    sue.refused(422, "PATCH", &path, &junk).await;
    let (code, after) = sue.send("PATCH", &path, &signed).await;
    assert_eq!(code, 200, "{after:#}");
    let denied = json!({ "status": { "conditions": [{ "type": "Denied", "status": "True" }] } });
    sue.refused(422, "PATCH", &path, &denied).await;
}

#[tokio::test]
async fn authorities_of_a_signer_are_published_by_who_may_attest_for_it() {
    let server = server().await;
    let admin = Caller::admin(&server);
    let bundles = "/apis/certificates.k8s.io/v1/clustertrustbundles";
    let writes = || {
        let verbs = ["create", "get", "patch", "delete"];
        rule(&verbs, "certificates.k8s.io", &["clustertrustbundles"])
    };
    admin
        .grant("writes", "", user("bob"), json!([writes()]))
        .await;
    let attests = json!([writes(), may("attest", &["ex.io/*"])]);
    admin.grant("attests", "", user("ann"), attests).await;
    let [bob, ann] = ["bob", "ann"].map(|name| Caller::user(&server, name));
    let authority = authority();
    let bundle = |name: &str, signer: &str| {
        json!({
            "metadata": { "name": name },
            "spec": { "signerName": signer, "trustBundle": authority },
        })
    };
    let (own, other) = (bundle("ex.io:s:a", "ex.io/s"), bundle("b.io:s:a", "b.io/s"));
    for (who, refused) in [(&bob, &own), (&ann, &other)] {
        let text = who.refused(403, "POST", bundles, refused).await;
        assert!(text.contains("user not permitted to attest"), "{text}");
    }
    ann.create(bundles, own).await;
    let path = format!("{bundles}/ex.io:s:a");
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    bob.refused(403, "PATCH", &path, &label).await;
    let change = json!({ "spec": { "signerName": "b.io/s" } });
    let text = admin.refused(422, "PATCH", &path, &change).await;
    assert!(text.contains("field is immutable"), "{text}");
    let (code, _) = ann.send("PATCH", &path, &label).await;
    assert_eq!(code, 200);
    let (code, _) = bob.send("DELETE", &path, &json!({})).await;
    assert_eq!(code, 200, "whoever may delete bundles may delete this one");
    bob.create(bundles, bundle("of-nobody", "")).await;
}
