//! Requests of the program that its roles do not allow, from the server's audit log: which rule is missing.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

/// How often the log is read.
const LOOK: Duration = Duration::from_millis(300);
/// A log that is longer is emptied: what it says has been read.
const MAX_LOG: u64 = 4 << 20;

/// The audit log of a cluster, while it is read.
pub(super) struct Refusals {
    path: PathBuf,
    read: u64,
    /// The beginning of a line whose end has not been written yet.
    rest: String,
    /// Rules that were named.
    named: BTreeSet<String>,
}

impl Refusals {
    /// The refusals in this log, which begins empty.
    pub(super) fn in_log(path: PathBuf) -> Self {
        // Of another session, if there is one.
        let _ = std::fs::remove_file(&path);
        Self {
            path,
            read: 0,
            rest: String::new(),
            named: BTreeSet::new(),
        }
    }

    pub(super) fn log(&self) -> &Path {
        &self.path
    }

    /// Names missing rules as they are found, for ever.
    pub(super) async fn follow(&mut self) -> ! {
        loop {
            // A log that cannot be read names nothing, and the program's own log has its errors.
            for refusal in self.look().unwrap_or_default() {
                eprintln!("{refusal}");
            }
            sleep(LOOK).await;
        }
    }

    /// What is new in the log.
    fn look(&mut self) -> std::io::Result<Vec<String>> {
        let mut file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        let text = self.read_on(&mut file)?;
        let text = std::mem::take(&mut self.rest) + &text;
        let (lines, rest) = text.rsplit_once('\n').unwrap_or(("", &text));
        rest.clone_into(&mut self.rest);
        let missing = lines.lines().filter_map(Missing::read);
        let new = missing.filter(|missing| self.named.insert(missing.attribute()));
        Ok(new.map(|missing| missing.text()).collect())
    }

    fn read_on(&mut self, file: &mut File) -> std::io::Result<String> {
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.take(MAX_LOG).read_to_end(&mut bytes)?;
        self.read += bytes.len() as u64;
        if self.read > MAX_LOG {
            // The server adds at the end, wherever that is.
            file.set_len(0)?;
            self.read = 0;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A request that no role allows.
struct Missing {
    user: String,
    verb: String,
    group: String,
    resource: String,
    object: String,
}

impl Missing {
    /// What a line of the audit log says, if a service account was refused something.
    fn read(line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let user = text(&event["user"]["username"]);
        let forbidden = event["annotations"]["authorization.k8s.io/decision"] == "forbid";
        if !forbidden || !user.starts_with("system:serviceaccount:") {
            return None;
        }
        let about = &event["objectRef"];
        let mut resource = text(&about["resource"]);
        if let Some(part) = about["subresource"].as_str() {
            resource = format!("{resource}/{part}");
        }
        let parts = [text(&about["namespace"]), text(&about["name"])];
        let parts: Vec<&str> = parts
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        Some(Self {
            user,
            verb: text(&event["verb"]),
            group: text(&about["apiGroup"]),
            resource,
            object: parts.join("/"),
        })
    }

    fn attribute(&self) -> String {
        let Self {
            group, resource, ..
        } = self;
        let verbs = self.verbs();
        format!(
            "#[kubewright::rbac(groups = {group:?}, resources = {resource:?}, verbs = {verbs:?})]"
        )
    }

    /// The verbs of the rule. Lists and watches are the cache's, whose first request is refused before it sends the others.
    fn verbs(&self) -> &str {
        match self.verb.as_str() {
            "list" | "watch" => "get;list;watch",
            verb => verb,
        }
    }

    fn text(&self) -> String {
        let Self {
            user,
            verb,
            resource,
            object,
            ..
        } = self;
        let what = if object.is_empty() {
            format!("{verb} {resource}")
        } else {
            format!("{verb} {resource} {object}")
        };
        let attribute = self.attribute();
        format!(
            "Refused: {user} may not {what}. Add this above a reconciler or a controller:\n  {attribute}\n\
             or start with --as-admin."
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn event(user: &str, decision: &str, resource: &str) -> String {
        event_of("get", user, decision, resource)
    }

    fn event_of(verb: &str, user: &str, decision: &str, resource: &str) -> String {
        let event = json!({
            "verb": verb, "user": {"username": user},
            "objectRef": {"resource": resource, "apiGroup": "apps", "namespace": "a", "name": "x"},
            "annotations": {"authorization.k8s.io/decision": decision},
        });
        format!("{event}\n")
    }

    #[test]
    fn each_missing_rule_is_named_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut refusals = Refusals::in_log(folder.path().join("audit"));
        assert!(refusals.look().is_err(), "nothing is written yet");
        let program = "system:serviceaccount:a:program";
        let mut text =
            event(program, "allow", "pods") + &event("kubernetes-admin", "forbid", "pods");
        let refused = event(program, "forbid", "deployments");
        text.push_str(&refused.repeat(2));
        text.push_str(&refused[..20]);
        fs::write(refusals.log(), &text).expect("it can be written");
        let named = refusals.look().expect("it can be read");
        let rule =
            r#"#[kubewright::rbac(groups = "apps", resources = "deployments", verbs = "get")]"#;
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(
            named[0].contains("may not get deployments a/x") && named[0].contains(rule),
            "{named:?}"
        );
        let more = refused[20..].to_owned() + &event(program, "forbid", "replicasets/scale");
        fs::write(refusals.log(), text + &more).expect("it can be written");
        let named = refusals.look().expect("it can be read");
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(named[0].contains("replicasets/scale"), "{named:?}");
    }

    #[test]
    fn cached_read_is_given_all_verbs_that_it_needs_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut refusals = Refusals::in_log(folder.path().join("audit"));
        let refused = ["watch", "list"]
            .map(|verb| event_of(verb, "system:serviceaccount:a:b", "forbid", "pods"));
        fs::write(refusals.log(), refused.concat()).expect("it can be written");
        let named = refusals.look().expect("it can be read");
        assert_eq!(named.len(), 1, "{named:?}");
        let verbs = r#"verbs = "get;list;watch""#;
        assert!(named[0].contains(verbs), "{named:?}");
    }

    #[test]
    fn long_log_is_emptied_and_read_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut refusals = Refusals::in_log(folder.path().join("audit"));
        let long = "x".repeat(usize::try_from(MAX_LOG).expect("it fits"));
        fs::write(refusals.log(), format!("{long}\n")).expect("it can be written");
        while refusals.read > 0
            || refusals.rest.is_empty() && fs::metadata(refusals.log()).is_ok_and(|it| it.len() > 0)
        {
            refusals.look().expect("it can be read");
        }
        fs::write(
            refusals.log(),
            event("system:serviceaccount:a:b", "forbid", "pods"),
        )
        .expect("it can be written");
        assert_eq!(refusals.look().expect("it can be read").len(), 1);
    }
}
