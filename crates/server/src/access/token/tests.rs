//! Signatures: what this issuer has signed is believed, nothing else is.

use super::claims::{Bound, Reference};
use super::*;

fn issuer() -> Issuer {
    Issuer::load_or_generate(None).expect("a key")
}

fn claims() -> Claims {
    Claims {
        audiences: vec![ISSUER.into()],
        expires: 3600,
        issued: 0,
        issuer: ISSUER.into(),
        id: "id".into(),
        bound: Bound {
            namespace: "a".into(),
            node: None,
            pod: None,
            secret: None,
            service_account: Reference {
                name: "s".into(),
                uid: "u".into(),
            },
        },
        not_before: 0,
        subject: "system:serviceaccount:a:s".into(),
    }
}

#[test]
fn signed_claims_are_read_back() {
    let issuer = issuer();
    let token = issuer.sign(&claims()).expect("signed");
    for _ in 0..2 {
        assert_eq!(*issuer.verify(&token).expect("good"), claims());
    }
    assert_eq!(issuer.verified.lock().len(), 1);
}

#[test]
fn key_of_a_directory_outlives_the_issuer_and_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let first = Issuer::load_or_generate(Some(directory.path())).expect("a key");
    let token = first.sign(&claims()).expect("signed");
    let second = Issuer::load_or_generate(Some(directory.path())).expect("a key");
    assert!(second.verify(&token).is_ok());
    let file = std::fs::metadata(directory.path().join("service-account.key")).expect("a file");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn anything_else_is_refused() {
    let (issuer, other) = (issuer(), issuer());
    let token = issuer.sign(&claims()).expect("signed");
    let (signed, signature) = token.rsplit_once('.').expect("three parts");
    let (header, body) = signed.split_once('.').expect("three parts");
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut richer = serde_json::to_value(claims()).expect("plain data");
    richer["sub"] = json!("system:serviceaccount:kube-system:boss");
    let foreign = Claims {
        issuer: "https://elsewhere".into(),
        ..claims()
    };
    let none = encode(json!({ "alg": "none" }));
    for (what, forged) in [
        ("empty", String::new()),
        ("no JWT", "secret".to_owned()),
        ("another key", other.sign(&claims()).expect("signed")),
        ("another issuer", issuer.sign(&foreign).expect("signed")),
        (
            "other claims",
            format!("{header}.{}.{signature}", encode(richer)),
        ),
        ("no algorithm", format!("{none}.{body}.")),
        (
            "no algorithm, old signature",
            format!("{none}.{body}.{signature}"),
        ),
        ("no signature", format!("{signed}.")),
        ("too long", "a".repeat(MAX_TOKEN + 1)),
    ] {
        let refusal = issuer.verify(&forged).expect_err(what);
        assert!(
            forged.is_empty() || !refusal.to_string().contains(&forged),
            "{what}"
        );
    }
    assert_eq!(issuer.verified.lock().len(), 0);
}
