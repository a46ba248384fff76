//! Security contexts of pods and containers.

use kubewright_schema::FieldError;
use serde_json::Value;

use crate::kinds::checks::{Errors, in_range, one_of, one_of_if_set};
use crate::kinds::path::Path;
use crate::kinds::value::{is_empty, is_true, items, strings, text};

const LARGEST_ID: i64 = i32::MAX as i64;

/// Checks the security context of a container.
pub(super) fn validate_container(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["runAsUser", "runAsGroup"] {
        in_range(&context[field], 0, LARGEST_ID, &path.child(field), errors);
    }
    one_of_if_set(
        &context["procMount"],
        &["Default", "Unmasked"],
        &path.child("procMount"),
        errors,
    );
    validate_profile(context, "seccompProfile", path, errors);
    if context["allowPrivilegeEscalation"].as_bool() == Some(false) {
        if is_true(&context["privileged"]) {
            let text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(FieldError::invalid(path, context, text));
        }
        if strings(&context["capabilities"]["add"]).any(|c| c == "CAP_SYS_ADMIN") {
            let text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(FieldError::invalid(path, context, text));
        }
    }
    validate_profile(context, "appArmorProfile", path, errors);
}

/// Checks the security context of a pod.
pub(super) fn validate_pod(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let context = &spec["securityContext"];
    let path = path.child("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        in_range(&context[field], 0, LARGEST_ID, &path.child(field), errors);
    }
    let groups = path.child("supplementalGroups");
    for (i, group) in items(&context["supplementalGroups"]).iter().enumerate() {
        in_range(group, 0, LARGEST_ID, &groups.index(i), errors);
    }
    validate_sysctls(&context["sysctls"], &path.child("sysctls"), errors);
    if is_true(&spec["shareProcessNamespace"]) && is_true(&spec["hostPID"]) {
        errors.push(FieldError::invalid(
            path.child("shareProcessNamespace"),
            &true.into(),
            "ShareProcessNamespace and HostPID cannot both be enabled",
        ));
    }
    one_of_if_set(
        &context["fsGroupChangePolicy"],
        &["Always", "OnRootMismatch"],
        &path.child("fsGroupChangePolicy"),
        errors,
    );
    validate_profile(context, "seccompProfile", &path, errors);
    validate_profile(context, "appArmorProfile", &path, errors);
    one_of_if_set(
        &context["supplementalGroupsPolicy"],
        &["Merge", "Strict"],
        &path.child("supplementalGroupsPolicy"),
        errors,
    );
}

/// Names of kernel parameters: segments of `[a-z0-9]([-_a-z0-9]*[a-z0-9])?` between dots and slashes
/// (validation.go: `validateSysctls`).
fn validate_sysctls(list: &Value, path: &Path<'_>, errors: &mut Errors) {
    const LONGEST: usize = 253;
    const SEGMENT: &str = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    let is_segment = |segment: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        segment.starts_with(plain)
            && segment.ends_with(plain)
            && segment.chars().all(|c| plain(c) || matches!(c, '-' | '_'))
    };
    let mut seen: Vec<&str> = Vec::new();
    for (i, sysctl) in items(list).iter().enumerate() {
        let (at, name) = (path.index(i), text(&sysctl["name"]));
        let at = at.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if name.len() > LONGEST || !name.split(['.', '/']).all(is_segment) {
            let why = format!(
                "must have at most {LONGEST} characters and match regex ^({SEGMENT}[\\./])*{SEGMENT}$"
            );
            errors.push(FieldError::invalid(at, &name.into(), &why));
        } else if seen.contains(&name) {
            errors.push(FieldError::duplicate(at, &name.into()));
        }
        seen.push(name);
    }
}

/// Checks `seccompProfile` or `appArmorProfile`.
fn validate_profile(context: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let profile = &context[field];
    if profile.is_null() {
        return;
    }
    let technique = if field == "seccompProfile" {
        "seccomp"
    } else {
        "AppArmor"
    };
    let path = path.child(field);
    let kind = text(&profile["type"]);
    if kind.is_empty() {
        let text = format!("type is required when {field} is set");
        errors.push(FieldError::required(path.child("type"), &text));
    } else {
        let kinds = ["Localhost", "RuntimeDefault", "Unconfined"];
        one_of(&profile["type"], &kinds, &path.child("type"), errors);
    }
    let file = path.child("localhostProfile");
    if kind == "Localhost" && is_empty(&profile["localhostProfile"]) {
        let text = format!("must be set when {technique} type is Localhost");
        errors.push(FieldError::required(file, &text));
    } else if kind != "Localhost" && !profile["localhostProfile"].is_null() {
        let text = format!("can only be set when {technique} type is Localhost");
        errors.push(FieldError::invalid(file, profile, &text));
    }
}
