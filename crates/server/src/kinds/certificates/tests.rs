//! Rules of certificate signing requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::testing::{create_errors, update_errors};
use super::*;

const GROUP: &str = "certificates.k8s.io";
const KIND: &str = "CertificateSigningRequest";

/// A request for a certificate of this organization.
fn request(organization: &str) -> String {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    params
        .distinguished_name
        .push(rcgen::DnType::OrganizationName, organization);
    let request = params.serialize_request(&key).expect("a request");
    STANDARD.encode(request.pem().expect("PEM"))
}

fn object() -> Value {
    json!({
        "metadata": { "name": "a" },
        "spec": { "request": request("o"), "signerName": "ex.io/signer", "usages": ["client auth"] },
    })
}

#[test]
fn requests_are_checked() {
    assert_eq!(create_errors(GROUP, KIND, object()), Vec::<String>::new());
    let check = |field: &str, value: Value, expected: &str| {
        let mut object = object();
        object["spec"][field] = value;
        let errors = create_errors(GROUP, KIND, object);
        assert!(
            errors.iter().any(|e| e.contains(expected)),
            "{field}: {errors:?}"
        );
    };
    check(
        "request",
        json!("bm90IGEgY3Ny"),
        "PEM block type must be CERTIFICATE REQUEST",
    );
    check(
        "signerName",
        json!("nodomain"),
        "must be a fully qualified domain and path",
    );
    check("signerName", json!("a/b"), "at least two segments");
    check("signerName", json!(""), "spec.signerName: Required value");
    check("usages", json!([]), "spec.usages: Required value");
    check(
        "usages",
        json!(["any", "any"]),
        "spec.usages[1]: Duplicate value",
    );
    check(
        "usages",
        json!(["fun"]),
        "spec.usages[0]: Unsupported value",
    );
    check("expirationSeconds", json!(1), "less than 600 seconds");
}

#[test]
fn a_signature_of_another_key_is_refused() {
    let pem = STANDARD.decode(request("o")).expect("base64");
    let pem = String::from_utf8(pem).expect("text");
    let der: Vec<&str> = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let mut der = STANDARD.decode(der.concat()).expect("base64");
    let last = der.len() - 1;
    der[last] ^= 1;
    let forged = format!(
        "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
        STANDARD.encode(der)
    );
    let forged = json!(STANDARD.encode(forged));
    assert_eq!(pem::organizations(&forged), Err(pem::PemError::Signature));
    assert_eq!(
        pem::organizations(&json!(request("team"))),
        Ok(vec!["team".to_owned()])
    );
}

#[test]
fn the_spec_never_changes() {
    let errors = update_errors(GROUP, KIND, object(), |new| {
        new["spec"]["signerName"] = json!("other.io/signer");
    });
    assert_eq!(errors, Vec::<String>::new());
    let (mut new, old) = (object(), object());
    new["spec"]["usages"] = json!(["any"]);
    CERTIFICATE_SIGNING_REQUEST.prepare_for_update(&mut new, &old);
    assert_eq!(new["spec"], old["spec"]);
}

#[test]
fn the_requester_is_whoever_asked() {
    let mut object = object();
    object["spec"]["username"] = json!("system:admin");
    object["spec"]["groups"] = json!(["system:masters"]);
    object["spec"]["uid"] = json!("forged");
    set_requester(&mut object, &User::new("mallory", ["team"]));
    let spec = &object["spec"];
    assert_eq!(
        (&spec["username"], &spec["groups"]),
        (&json!("mallory"), &json!(["team"]))
    );
    assert!(spec.get("uid").is_none());
}

#[test]
fn a_verdict_is_kept() {
    let with = |conditions: Value| {
        let mut object = object();
        object["status"] = json!({ "conditions": conditions });
        object
    };
    let condition = |kind: &str| json!({ "type": kind, "status": "True" });
    let check = |new: Value, old: Value, own: &str, status: &str| {
        let joined = |validate: fn(&Value, &Value, &mut Errors)| {
            let mut errors = Errors::new();
            validate(&new, &old, &mut errors);
            errors
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        };
        let own_errors = joined(validate_status);
        assert!(
            own_errors.contains(own) && own.is_empty() == own_errors.is_empty(),
            "{own_errors}"
        );
        let status_errors = joined(CERTIFICATE_SIGNING_REQUEST.validate_status);
        assert!(status_errors.contains(status), "{status_errors}");
    };
    let approved = || with(json!([condition("Approved")]));
    check(
        approved(),
        object(),
        "",
        "may not add a condition of type \"Approved\"",
    );
    check(
        object(),
        approved(),
        "may not remove a condition of type \"Approved\"",
        "may not remove",
    );
    check(
        with(json!([condition("Approved"), condition("Denied")])),
        approved(),
        "mutually exclusive",
        "may not add a condition of type \"Denied\"",
    );
    check(
        with(json!([{ "type": "Approved", "status": "False" }])),
        object(),
        "Unsupported value",
        "",
    );
}
