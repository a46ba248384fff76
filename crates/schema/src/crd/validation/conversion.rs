//! The conversion between versions, and the webhook that does it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::path::{child, index};
use super::{is_established, one_of};
use crate::field::FieldError;
use crate::names;

const PATH: &str = "spec.conversion";
const CLIENT: &str = "spec.conversion.webhookClientConfig";

/// What is wrong with `spec.conversion`. The webhook is named as in the server's own, older shape of it.
pub(super) fn errors(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let conversion = &spec["conversion"];
    let mut errors = Vec::new();
    if conversion.is_null() {
        return errors;
    }
    let strategy = conversion["strategy"].as_str().unwrap_or("");
    if strategy != "None" && spec["preserveUnknownFields"] == true {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(
            child(PATH, "strategy"),
            &json!(strategy),
            detail,
        ));
    }
    errors.extend(one_of(
        "spec.conversion.strategy",
        strategy,
        &["None", "Webhook"],
    ));
    let client = Some(&conversion["webhook"]["clientConfig"]).filter(|client| client.is_object());
    let versions = review_versions(conversion);
    if strategy == "Webhook" {
        match client {
            None => errors.push(FieldError::required(
                CLIENT,
                "required when strategy is set to Webhook",
            )),
            Some(client) => client_errors(client, old, &mut errors),
        }
        review_version_errors(&versions, old, &mut errors);
        return errors;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(CLIENT, detail));
    }
    if !versions.is_empty() {
        errors.push(FieldError::forbidden(
            child(PATH, "conversionReviewVersions"),
            detail,
        ));
    }
    errors
}

fn review_versions(conversion: &Value) -> Vec<&str> {
    let versions = conversion["webhook"]["conversionReviewVersions"].as_array();
    versions.map_or(Vec::new(), |list| {
        list.iter().filter_map(Value::as_str).collect()
    })
}

fn is_recognized(version: &&str) -> bool {
    matches!(*version, "v1" | "v1beta1")
}

fn review_version_errors(versions: &[&str], old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let path = child(PATH, "conversionReviewVersions");
    if versions.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    for (i, version) in versions.iter().enumerate() {
        let at = index(&path, i);
        if versions[..i].contains(version) {
            errors.push(FieldError::invalid(
                at,
                &json!(version),
                "duplicate version",
            ));
            continue;
        }
        let faults = names::dns1035_label(version);
        errors.extend(
            faults
                .iter()
                .map(|fault| FieldError::invalid(at.clone(), &json!(version), fault)),
        );
    }
    let before = old.map(|old| review_versions(&old["spec"]["conversion"]));
    let tolerated =
        before.is_some_and(|before| !before.is_empty() && !before.iter().any(is_recognized));
    if !tolerated && !versions.iter().any(is_recognized) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, &json!(versions), detail));
    }
}

fn client_errors(client: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let url = client["url"].as_str();
    let service = Some(&client["service"]).filter(|service| service.is_object());
    match (url, service) {
        (Some(url), None) => url_errors(url, &child(CLIENT, "url"), errors),
        (None, Some(service)) => service_errors(service, &child(CLIENT, "service"), errors),
        _ => errors.push(FieldError::required(
            CLIENT,
            "exactly one of url or service is required",
        )),
    }
    let bundle = bundle(client);
    let before = old.filter(|old| is_established(old)).map(|old| {
        let client = &old["spec"]["conversion"]["webhook"]["clientConfig"];
        bundle_is_valid(self::bundle(client)) || self::bundle(client).is_empty()
    });
    if !bundle.is_empty() && before == Some(true) && !bundle_is_valid(bundle) {
        let detail = "unable to load root certificates: unable to parse bytes as PEM block";
        errors.push(FieldError::invalid(
            child(CLIENT, "caBundle"),
            &json!(bundle),
            detail,
        ));
    }
}

fn bundle(client: &Value) -> &str {
    client["caBundle"].as_str().unwrap_or("")
}

fn bundle_is_valid(bundle: &str) -> bool {
    let decoded = STANDARD.decode(bundle).unwrap_or_default();
    let text = String::from_utf8_lossy(&decoded);
    let begin = text.find("-----BEGIN CERTIFICATE-----");
    begin.is_some_and(|begin| text[begin..].contains("-----END CERTIFICATE-----"))
}

fn url_errors(url: &str, path: &str, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest
        .strip_prefix("//")
        .map_or("", |rest| rest.split('/').next().unwrap_or(""));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut invalid =
        |value: &str, detail: &str| errors.push(FieldError::invalid(path, &json!(value), detail));
    if !scheme.eq_ignore_ascii_case("https") {
        invalid(
            scheme,
            &format!("'https' is the only allowed URL scheme{FORM}"),
        );
    }
    if host.is_empty() {
        invalid(host, &format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        invalid(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        invalid(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        invalid(query, "query parameters are not permitted in the URL");
    }
}

/// The server mixes up name and namespace here: it reports a missing name for the namespace, and the other way round.
fn service_errors(service: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let text = |key: &str| service[key].as_str().unwrap_or("");
    for (missing, reported) in [("namespace", "name"), ("name", "namespace")] {
        if text(missing).is_empty() {
            errors.push(FieldError::required(child(path, reported), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    for complaint in names::port_number(port) {
        let detail = format!("port is not valid: {complaint}");
        errors.push(FieldError::invalid(
            child(path, "port"),
            &json!(port),
            &detail,
        ));
    }
    path_errors(text("path"), &child(path, "path"), errors);
}

fn path_errors(path: &str, field: &str, errors: &mut Vec<FieldError>) {
    let mut invalid = |detail: &str| errors.push(FieldError::invalid(field, &json!(path), detail));
    if matches!(path, "" | "/") {
        return;
    }
    if path == "//" {
        return invalid("segment[0] may not be empty");
    }
    if !path.starts_with('/') {
        invalid("must start with a '/'");
    }
    let skipped = path.chars().next().map_or(0, char::len_utf8);
    let steps = &path[skipped..];
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            invalid(&format!("segment[{i}] may not be empty"));
            continue;
        }
        for fault in names::dns1123_subdomain(step) {
            invalid(&format!("segment[{i}]: {fault}"));
        }
    }
}
