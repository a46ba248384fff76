//! Who we are to a registry, as docker keeps it: in `config.json`, or with a program that it names.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A user and a password. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

impl Credentials {
    /// As the header of a request has it.
    pub(super) fn basic(&self) -> String {
        let both = format!("{}:{}", self.user, self.password);
        format!("Basic {}", STANDARD.encode(both))
    }
}

/// What is kept for a registry; nothing if it is not known there.
///
/// # Errors
/// When what is kept cannot be read.
pub(super) fn find(registry: &str) -> anyhow::Result<Option<Credentials>> {
    let Some(file) = file() else {
        return Ok(None);
    };
    let Ok(text) = std::fs::read_to_string(&file) else {
        return Ok(None);
    };
    let config: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    match helper(&config, registry) {
        Some(helper) => ask(&helper, key(registry)),
        None => kept(&config, registry).with_context(|| file.display().to_string()),
    }
}

fn file() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker"));
    Some(folder.or_else(home)?.join("config.json"))
}

/// What a registry is called in the file.
fn key(registry: &str) -> &str {
    match registry {
        "docker.io" => "https://index.docker.io/v1/",
        other => other,
    }
}

/// The program that keeps the password of a registry.
fn helper(config: &Value, registry: &str) -> Option<String> {
    let own = config["credHelpers"][key(registry)].as_str();
    let common = config["credsStore"].as_str();
    own.or(common).map(str::to_owned)
}

/// What the file itself has.
fn kept(config: &Value, registry: &str) -> anyhow::Result<Option<Credentials>> {
    let name = key(registry);
    let auths = &config["auths"];
    let with_scheme = format!("https://{name}");
    let entry = [name, &with_scheme]
        .into_iter()
        .map(|name| &auths[name])
        .find(|it| !it.is_null());
    let Some(encoded) = entry.and_then(|entry| entry["auth"].as_str()) else {
        return Ok(None);
    };
    let decoded = STANDARD
        .decode(encoded.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let Some((user, password)) = decoded.as_deref().and_then(|text| text.split_once(':')) else {
        bail!("what it has for {registry} is not base64 of a user and a password");
    };
    Ok(Some(Credentials {
        user: user.to_owned(),
        password: password.to_owned(),
    }))
}

/// Asks a program of docker's.
fn ask(helper: &str, name: &str) -> anyhow::Result<Option<Credentials>> {
    let program = format!("docker-credential-{helper}");
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{program} cannot be run; docker's config.json names it"))?;
    if let Some(mut input) = child.stdin.take() {
        // It may have ended already; then its answer says so.
        let _ = input.write_all(name.as_bytes());
    }
    let output = child
        .wait_with_output()
        .with_context(|| format!("{program} was lost"))?;
    if !output.status.success() {
        return Ok(None);
    }
    let answer: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{program} did not answer with JSON"))?;
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    Ok(Some(Credentials {
        user: text("Username"),
        password: text("Secret"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn passwords_are_found_where_docker_keeps_them() {
        let encoded = STANDARD.encode("me:a:b");
        let config = json!({
            "auths": {"r.io": {"auth": encoded}, "https://index.docker.io/v1/": {"auth": encoded}, "bad.io": {"auth": "?"}},
            "credHelpers": {"gcr.io": "gcloud"},
        });
        for registry in ["r.io", "docker.io"] {
            let found = kept(&config, registry).ok().flatten().expect("it is there");
            assert_eq!((&*found.user, &*found.password), ("me", "a:b"));
        }
        assert!(kept(&config, "bad.io").is_err());
        assert!(kept(&config, "other.io").is_ok_and(|found| found.is_none()));
        assert_eq!(helper(&config, "gcr.io").as_deref(), Some("gcloud"));
        assert_eq!(helper(&config, "r.io"), None);
    }
}
