//! CertificateSigningRequests: who asks for a certificate is what the server knows, not what the request says, and
//! nothing but their approval and their certificate changes later (pkg/registry/certificates, pkg/apis/certificates).

pub(crate) mod pem;
mod trust_bundle;

use kubewright_schema::{FieldError, names};
use serde_json::{Value, json};

use super::checks::Errors;
use super::name_rule::NameRule;
use super::path::Path;
use super::strategy::{FieldLabels, StatusMeta, Strategy};
use super::value::{copy, ensure, items, remove, set, strings, text};
use crate::auth::User;

pub(super) use trust_bundle::CLUSTER_TRUST_BUNDLE;

const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
/// Conditions that stay once they are there, and that are true or absent.
const FINAL: [&str; 3] = [APPROVED, DENIED, "Failed"];
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// Shortest time that a certificate may be asked for.
const SHORTEST: i64 = 600;
const CONDITIONS: Path<'static> = Path::Root("status.conditions");

pub(super) static CERTIFICATE_SIGNING_REQUEST: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    has_status: true,
    status_meta: StatusMeta::Open,
    field_labels: FieldLabels::Listed(&["metadata.name", "spec.signerName"]),
    update: |new, old| copy(new, old, "spec"),
    validate: validate_spec,
    validate_create_only: validate_signer,
    status_update: keep_verdict,
    validate_status: |new, old, errors| {
        validate_status(new, old, errors);
        validate_verdict_is_kept(new, old, errors);
    },
    validate_own: Some(validate_status),
    fields: |object| {
        let signer = text(&object["spec"]["signerName"]).to_owned();
        vec![("spec.signerName", signer)]
    },
    ..Strategy::PLAIN
};

/// Writes down who made a new request, whatever it says itself (strategy.go: `PrepareForCreate`).
pub(crate) fn set_requester(request: &mut Value, user: &User) {
    let spec = ensure(request, "spec");
    for field in ["username", "uid", "groups", "extra"] {
        remove(spec, field);
    }
    set(spec, "username", user.name.as_str());
    if !user.uid.is_empty() {
        set(spec, "uid", user.uid.as_str());
    }
    if !user.groups.is_empty() {
        set(spec, "groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        set(spec, "extra", json!(user.extra));
    }
}

/// Gives conditions that have no time the present one, or that of the same condition before
/// (strategy.go: `populateConditionTimestamps`).
pub(crate) fn date_conditions(new: &mut Value, old: &Value, now: &str) {
    let before = items(&old["status"]["conditions"]);
    let Some(conditions) = new["status"]["conditions"].as_array_mut() else {
        return;
    };
    for condition in conditions {
        if text(&condition["lastUpdateTime"]).is_empty() {
            set(condition, "lastUpdateTime", now);
        }
        if text(&condition["lastTransitionTime"]).is_empty() {
            let same =
                |c: &&Value| c["type"] == condition["type"] && c["status"] == condition["status"];
            let since = before
                .iter()
                .find(same)
                .map(|c| text(&c["lastTransitionTime"]));
            let since = since
                .filter(|since| !since.is_empty())
                .unwrap_or(now)
                .to_owned();
            set(condition, "lastTransitionTime", since);
        }
    }
}

fn validate_spec(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root("spec"));
    if let Err(error) = pem::organizations(&spec["request"]) {
        errors.push(FieldError::invalid(
            path.child("request"),
            &spec["request"],
            &error.to_string(),
        ));
    }
    let usages: Vec<&str> = strings(&spec["usages"]).collect();
    let at = path.child("usages");
    if usages.is_empty() {
        errors.push(FieldError::required(at, ""));
    }
    for (i, usage) in usages.iter().enumerate() {
        if !USAGES.contains(usage) {
            errors.push(FieldError::not_supported(
                at.index(i),
                &json!(usage),
                &USAGES,
            ));
        }
    }
    for (i, usage) in usages.iter().enumerate() {
        if usages[..i].contains(usage) {
            errors.push(FieldError::duplicate(at.index(i), &json!(usage)));
        }
    }
    if let Some(seconds) = spec["expirationSeconds"].as_i64().filter(|s| *s < SHORTEST) {
        errors.push(FieldError::invalid(
            path.child("expirationSeconds"),
            &json!(seconds),
            "may not specify a duration less than 600 seconds (10 minutes)",
        ));
    }
}

fn validate_signer(object: &Value, errors: &mut Errors) {
    let path = Path::Root("spec.signerName");
    match text(&object["spec"]["signerName"]) {
        LEGACY_SIGNER => errors.push(FieldError::invalid(
            path,
            &json!(LEGACY_SIGNER),
            "the legacy signerName is not allowed via this API version",
        )),
        name => validate_signer_name(name, &path, errors),
    }
}

/// The name of a signer is `example.com/name` (names.go: `ValidateSignerName`).
fn validate_signer_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut invalid = |value: &str, why: &str| {
        errors.push(FieldError::invalid(path, &json!(value), why));
    };
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let [domain, signer] = name.split('/').collect::<Vec<_>>()[..] else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return invalid(name, why);
    };
    let bad = |label: &str, complaints: Vec<String>| {
        let complaint = complaints.into_iter().next()?;
        Some(format!("validating label {label:?}: {complaint}"))
    };
    let mut labels = domain.split('.');
    if let Some(why) = labels.find_map(|label| bad(label, names::dns1123_label(label))) {
        invalid(domain, &why);
    }
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        invalid(domain, why);
    }
    let mut labels = signer.split('.');
    if let Some(why) = labels.find_map(|label| bad(label, names::dns1123_subdomain(label))) {
        invalid(signer, &why);
    }
}

/// The conditions of a type.
fn of_type<'v>(object: &'v Value, wanted: &str) -> Vec<&'v Value> {
    let conditions = items(&object["status"]["conditions"]).iter();
    conditions.filter(|c| c["type"] == wanted).collect()
}

/// A write of the status keeps the conditions about approval, as far as it names the same conditions.
fn keep_verdict(new: &mut Value, old: &Value) {
    for verdict in [APPROVED, DENIED] {
        let before: Vec<Value> = of_type(old, verdict).into_iter().cloned().collect();
        if of_type(new, verdict).len() != before.len() {
            continue;
        }
        let conditions = super::value::items_mut(new["status"].get_mut("conditions"));
        let same = conditions.iter_mut().filter(|c| c["type"] == verdict);
        for (condition, before) in same.zip(before) {
            *condition = before;
        }
    }
}

fn validate_verdict_is_kept(new: &Value, old: &Value, errors: &mut Errors) {
    for verdict in [APPROVED, DENIED] {
        if of_type(new, verdict).len() > of_type(old, verdict).len() {
            let why = format!("updates may not add a condition of type {verdict:?}");
            errors.push(FieldError::forbidden(CONDITIONS, &why));
        }
    }
    let (after, before) = (&new["status"]["certificate"], &old["status"]["certificate"]);
    if !text(before).is_empty() && after != before {
        let why = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden("status.certificate", why));
    }
    if after != before
        && let Err(error) = pem::validate_certificates(after)
    {
        errors.push(FieldError::invalid(
            "status.certificate",
            &json!("<certificate data>"),
            &error.to_string(),
        ));
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, condition) in items(&new["status"]["conditions"]).iter().enumerate() {
        let at = CONDITIONS.index(i);
        let (kind, status) = (text(&condition["type"]), text(&condition["status"]));
        if kind.is_empty() {
            errors.push(FieldError::required(at.child("type"), ""));
        }
        let allowed: &[&str] = if FINAL.contains(&kind) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        super::checks::required_one_of(&json!(status), allowed, &at.child("status"), errors);
        let rival = match kind {
            APPROVED => DENIED,
            DENIED => APPROVED,
            _ => "",
        };
        if !rival.is_empty() && seen.contains(&rival) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(CONDITIONS, &json!(kind), why));
        }
        if seen.contains(&kind) {
            errors.push(FieldError::duplicate(at.child("type"), &json!(kind)));
        }
        seen.push(kind);
    }
    for kind in FINAL {
        if of_type(new, kind).len() < of_type(old, kind).len() {
            let why = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(CONDITIONS, &why));
        }
    }
}

#[cfg(test)]
mod tests;
