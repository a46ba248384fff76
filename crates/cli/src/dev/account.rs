//! Who the program under development is to the server: the service account and the roles that it is deployed with.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use kubewright_manifests::Inventory;
use kubewright_manifests::layout::{self, Settings};
use kubewright_manifests::project::Project;
use serde_json::{Value, json};

use super::hooks::private;

/// What says who the program is, and what it may do.
const KINDS: [&str; 6] = [
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "Role",
    "ClusterRoleBinding",
    "RoleBinding",
];
/// How long the program's token is good: longer than anybody develops without a pause.
const TOKEN_SECONDS: i64 = 30 * 24 * 3600;

/// As whom the program asks.
pub(super) enum Identity {
    /// With its own service account, by this kubeconfig.
    Own(PathBuf),
    /// As the administrator of the cluster.
    Admin,
}

/// The service account of a program, and the objects that make it.
pub(super) struct Account {
    pub(super) objects: Vec<Value>,
    namespace: String,
    name: String,
    /// Where a program of a namespaced project works.
    pub(super) watched: Option<String>,
}

impl Account {
    /// The account that a program is deployed with.
    ///
    /// # Errors
    /// When manifests cannot be made of what it says.
    pub(super) fn of(project: &Project, inventory: &Inventory) -> anyhow::Result<Self> {
        let deployed = layout::deployed(project, inventory, &Settings::default())?;
        let watched = deployed.iter().find_map(watched_namespaces);
        let mut objects = deployed;
        objects.retain(|it| {
            it["kind"]
                .as_str()
                .is_some_and(|kind| KINDS.contains(&kind))
        });
        let account = objects.iter().find(|it| it["kind"] == "ServiceAccount");
        let account = account.context("the program is deployed without a service account")?;
        let text = |field: &str| {
            account["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let missing = namespaces(&objects);
        objects.splice(0..0, missing);
        Ok(Self {
            objects,
            namespace,
            name,
            watched,
        })
    }

    /// Its name as a user of the server.
    pub(super) fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// Writes a kubeconfig with a token of this account, made from the administrator's.
    ///
    /// # Errors
    /// When there is no token to be had, or the file cannot be written.
    pub(super) async fn write_kubeconfig(
        &self,
        client: &kube::Client,
        admin: &str,
        path: &Path,
    ) -> anyhow::Result<()> {
        let token = self.token(client).await?;
        let mut config: Value = serde_saphyr::from_str(admin)?;
        config["users"] = json!([{ "name": self.name, "user": { "token": token } }]);
        let context = &mut config["contexts"][0]["context"];
        context["user"] = json!(self.name);
        context["namespace"] = json!(self.namespace);
        // JSON is YAML too.
        let write = || private(path)?.write_all(config.to_string().as_bytes());
        write().with_context(|| format!("{} cannot be written", path.display()))
    }

    async fn token(&self, client: &kube::Client) -> anyhow::Result<String> {
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &self.namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let how = PostParams::default();
        let made = accounts
            .create_token_request(&self.name, &how, &request)
            .await
            .context("the program's token could not be made")?;
        let token = made.status.and_then(|status| status.token);
        token.context("the program's token is missing")
    }
}

impl Identity {
    /// The kubeconfig of the program.
    pub(super) fn kubeconfig<'a>(&'a self, admin: &'a Path) -> &'a Path {
        match self {
            Self::Own(path) => path,
            Self::Admin => admin,
        }
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        if let Self::Own(path) = self {
            // What cannot be removed is in nobody's way: its token is for a cluster that is no more.
            let _ = fs::remove_file(path);
        }
    }
}

/// Namespaces that objects are in and that are not among them.
fn namespaces(objects: &[Value]) -> Vec<Value> {
    let named = objects
        .iter()
        .filter_map(|it| it["metadata"]["namespace"].as_str());
    let mut names: BTreeSet<&str> = named.collect();
    let there = objects.iter().filter(|it| it["kind"] == "Namespace");
    for name in there.filter_map(|it| it["metadata"]["name"].as_str()) {
        names.remove(name);
    }
    let namespace =
        |name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    names.into_iter().map(namespace).collect()
}

/// The namespaces that a manager is configured to watch, as `WATCH_NAMESPACE` has them.
fn watched_namespaces(object: &Value) -> Option<String> {
    let container = &object["spec"]["template"]["spec"]["containers"][0];
    let mut environment = container["env"].as_array()?.iter();
    let watched = environment.find(|variable| variable["name"] == "WATCH_NAMESPACE")?;
    watched["value"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_is_the_deployed_one_with_its_roles_and_namespaces() {
        let project = Project::new("guestbook", "my.domain", "0");
        let inventory = Inventory::default();
        let account = Account::of(&project, &inventory).expect("it can be made");
        assert_eq!(
            account.user(),
            "system:serviceaccount:guestbook-system:guestbook-controller-manager"
        );
        assert_eq!(account.watched, None);
        let kinds: BTreeSet<&str> = account
            .objects
            .iter()
            .filter_map(|it| it["kind"].as_str())
            .collect();
        assert!(
            kinds.contains("ServiceAccount") && kinds.contains("RoleBinding"),
            "{kinds:?}"
        );
        assert!(!kinds.contains("Deployment"), "{kinds:?}");
    }

    #[test]
    fn program_of_a_namespaced_project_knows_where_to_work() {
        let mut project = Project::new("guestbook", "my.domain", "0");
        project.namespaced = true;
        let account = Account::of(&project, &Inventory::default()).expect("it can be made");
        assert_eq!(account.watched.as_deref(), Some("guestbook-system"));
    }

    #[test]
    fn namespaces_that_roles_are_in_are_made() {
        let role = |namespace: &str| json!({"kind": "Role", "metadata": {"namespace": namespace}});
        let there = json!({"kind": "Namespace", "metadata": {"name": "a"}});
        let made = namespaces(&[there, role("a"), role("b"), role("b")]);
        assert_eq!(made.len(), 1);
        assert_eq!(made[0]["metadata"]["name"], "b");
    }
}
