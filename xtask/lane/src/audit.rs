//! What an account did, as the audit log of the API server has it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use http::Method;
use kubewright::testing::Access;
use serde_json::Value;

/// What a user asked for so far, refused requests included.
pub(crate) fn accesses(log: &Path, user: &str) -> Result<Vec<Access>> {
    let text = fs::read_to_string(log).context("there is no audit log")?;
    let mut all = Vec::new();
    for line in text.lines() {
        // The last line may be half written.
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if event["user"]["username"] == user {
            all.extend(of_event(&event));
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// What roles have to allow for a request. A watch that begins with a list is a list for servers that do not stream lists, and a
/// patch that made its object has created it.
fn of_event(event: &Value) -> Vec<Access> {
    let verb = event["verb"].as_str().unwrap_or_default();
    let method = match verb {
        "create" => Method::POST,
        "update" => Method::PUT,
        "patch" => Method::PATCH,
        "delete" | "deletecollection" => Method::DELETE,
        _ => Method::GET,
    };
    let uri = event["requestURI"].as_str().unwrap_or_default();
    let parsed = uri.parse().ok();
    let Some(access) = parsed.and_then(|uri| Access::of(&method, &uri)) else {
        return Vec::new();
    };
    let more = match verb {
        "watch" if uri.contains("sendInitialEvents=true") => Some("list"),
        "patch" if event["responseStatus"]["code"] == 201 => Some("create"),
        _ => None,
    };
    let more = more.map(|verb| access.with_verb(verb));
    std::iter::once(access).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_of_one_user_are_read_as_accesses() {
        let line = |user: &str, verb: &str, uri: &str, code: u16| {
            json!({
                "user": {"username": user}, "verb": verb, "requestURI": uri,
                "responseStatus": {"code": code},
            })
            .to_string()
        };
        let pods = "/api/v1/namespaces/a/pods";
        let lines = [
            line(
                "me",
                "watch",
                "/api/v1/pods?watch=true&sendInitialEvents=true",
                200,
            ),
            line("me", "patch", &format!("{pods}/x"), 201),
            line("me", "create", &format!("{pods}/x:8008/proxy/order"), 200),
            line("me", "get", "/apis", 200),
            line("other", "delete", &format!("{pods}/x"), 200),
            "{\"half".to_owned(),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("audit.log");
        fs::write(&log, lines.join("\n")).expect("it is written");
        let used = accesses(&log, "me").expect("it is read");
        let mut used: Vec<String> = used.iter().map(ToString::to_string).collect();
        used.sort();
        assert_eq!(
            used,
            [
                "create pods a/x",
                "create pods/proxy a/x:8008",
                "list pods",
                "patch pods a/x",
                "watch pods",
            ]
        );
    }
}
