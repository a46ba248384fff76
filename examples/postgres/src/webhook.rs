//! What the API server asks before it stores a PostgresCluster.

use kube::ResourceExt;
use kubewright::webhook::{FieldError, FieldErrors};

use crate::api::PostgresCluster;

/// Settings that the agent decides: where clients come in, who is followed, and what a commit waits for.
const RESERVED: [&str; 16] = [
    "archive_command",
    "archive_mode",
    "config_file",
    "data_directory",
    "hba_file",
    "hot_standby",
    "listen_addresses",
    "port",
    "primary_conninfo",
    "primary_slot_name",
    "restore_command",
    "ssl",
    "synchronous_commit",
    "synchronous_standby_names",
    "unix_socket_directories",
    "wal_level",
];

/// Refuses names that pods cannot have, settings that are the agent's, and primaries that are not members.
///
/// # Errors
/// When something is wrong; all of it is reported at once.
#[kubewright::webhook(validating)]
pub fn validate(
    cluster: &PostgresCluster,
    _old: Option<&PostgresCluster>,
) -> Result<(), FieldErrors> {
    let spec = &cluster.spec;
    let name = cluster.name_any();
    let mut errors = FieldErrors::new();
    if name.len() > 40 || name.contains('.') || name.starts_with(|c: char| c.is_ascii_digit()) {
        let problem = "must begin with a letter and have no dot and at most 40 characters";
        errors.push(FieldError::invalid("metadata.name", &name, problem));
    }
    for setting in spec.parameters.keys() {
        let is_name = setting
            .chars()
            .all(|c| c.is_ascii_lowercase() || "_.0123456789".contains(c));
        if RESERVED.contains(&setting.as_str()) || !is_name || setting.is_empty() {
            let problem = "is not a setting that can be chosen";
            errors.push(FieldError::invalid("spec.parameters", setting, problem));
        }
    }
    let members = || (0..spec.members).map(|member| format!("{name}-{member}"));
    if let Some(primary) = spec
        .primary
        .as_ref()
        .filter(|it| !members().any(|name| name == **it))
    {
        errors.push(FieldError::invalid(
            "spec.primary",
            primary,
            "is not a member",
        ));
    }
    errors.into_result()
}
