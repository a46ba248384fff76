//! Which part of a volume a container mounts.
//!
//! Mirrors `kubelet_pods.go: makeMounts` and `container/helpers.go: ExpandContainerVolumeMounts`.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, VolumeMount};

use super::environment::{ConfigError, expand};

/// Whether a container mounts a part that depends on its environment.
pub(crate) fn is_expanded(container: &Container) -> bool {
    let mut mounts = container.volume_mounts.iter().flatten();
    mounts.any(|mount| given(&mount.sub_path_expr).is_some())
}

/// Whether the parts of volumes that a container mounts are known.
///
/// # Errors
/// Which variables are missing.
pub(crate) fn check(container: &Container, env: &[(String, String)]) -> Result<(), ConfigError> {
    let mut mounts = container.volume_mounts.iter().flatten();
    mounts.try_for_each(|mount| sub_path(mount, env).map(drop))
}

/// The part of a volume that is mounted, with variables replaced; nothing for all of it.
///
/// # Errors
/// Which variables are missing.
pub(crate) fn sub_path(
    mount: &VolumeMount,
    env: &[(String, String)],
) -> Result<Option<String>, ConfigError> {
    let Some(expression) = given(&mount.sub_path_expr) else {
        return Ok(given(&mount.sub_path).map(str::to_owned));
    };
    let known: BTreeMap<String, String> = env.iter().cloned().collect();
    let missing = missing(expression, &known);
    if !missing.is_empty() {
        let names: Vec<_> = missing.into_iter().collect();
        let text = format!("missing value for {}", names.join(", "));
        return Err(ConfigError(text));
    }
    let part = expand(expression, &known, &BTreeMap::new());
    Ok(Some(part).filter(|part| !part.is_empty()))
}

fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// The variables of an expression that have no value.
fn missing<'a>(expression: &'a str, known: &BTreeMap<String, String>) -> BTreeSet<&'a str> {
    let (mut names, mut rest) = (BTreeSet::new(), expression);
    while let Some((_, after)) = rest.split_once('$') {
        let name = after
            .strip_prefix('(')
            .and_then(|name| name.split_once(')'));
        rest = match (after.strip_prefix('$'), name) {
            (Some(escaped), _) => escaped,
            (None, Some((name, further))) => {
                if known.get(name).is_none_or(String::is_empty) {
                    names.insert(name);
                }
                further
            }
            (None, None) => after,
        };
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `container/helpers.go: ExpandContainerVolumeMounts`.
    #[test]
    fn part_of_a_volume_follows_the_environment() {
        let env = [("POD", "web-0"), ("EMPTY", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        for (part, expression, expected) in [
            ("", "", Ok(None)),
            ("logs", "", Ok(Some("logs"))),
            ("", "logs/$(POD)", Ok(Some("logs/web-0"))),
            ("", "$$(POD)", Ok(Some("$(POD)"))),
            ("", "$(B)/$(POD)/$(A)", Err("missing value for A, B")),
            ("", "x/$(EMPTY)", Err("missing value for EMPTY")),
        ] {
            let mount = VolumeMount {
                sub_path: Some(part.to_owned()),
                sub_path_expr: Some(expression.to_owned()),
                ..VolumeMount::default()
            };
            let found = sub_path(&mount, &env).map_err(|error| error.0);
            let found = found.as_ref().map(Option::as_deref).map_err(String::as_str);
            assert_eq!(found, expected, "{part} {expression}");
        }
    }
}
