//! Who the manager is to the cluster: its service account's token, and roles that are exactly what it uses.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use http::{Method, Request};
use kube::config::AuthInfo;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::roles::{Grant, Use};
use super::{MANAGER, NAME, NAMESPACE};

/// The user of the image.
const USER: &str = "65532";
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";
/// Variables of whoever started the cluster, which containers must not have.
const FOREIGN: [&str; 4] = ["KUBECONFIG=", "HOME=", "USER=", "CARGO"];

/// The name of the manager's account among users.
pub(super) fn user() -> String {
    format!("system:serviceaccount:{NAMESPACE}:{MANAGER}")
}

/// Checks each manager: an ordinary user in the image's files, with a token that is the account's and nobody else's credentials.
pub(super) async fn has_its_token_alone(c: &Cluster<'_>) -> Result<String> {
    let mut files = String::new();
    for (pid, _) in c.processes()? {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let ids = status.lines().find(|line| line.starts_with("Uid:"));
        let ids = ids.context("a process has a user")?;
        ensure!(ids.split_whitespace().skip(1).all(|id| id == USER), "{ids}");
        let environment = fs::read(format!("/proc/{pid}/environ"))?;
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let foreign = |variable: &&str| FOREIGN.iter().any(|it| variable.starts_with(it));
        if let Some(variable) = environment.split('\0').find(foreign) {
            bail!("the manager has the variable {variable}");
        }
        let root = format!("/proc/{pid}/root");
        files = names(&root)?.join(" ");
        ensure!(
            !files.contains("home") && !files.contains("usr"),
            "it sees {files}"
        );
        let token = fs::read_to_string(format!("{root}/{ACCOUNT}/token"))?;
        let name = who(c, &token).await?;
        ensure!(name == user(), "its token is that of {name}");
    }
    Ok(format!("user {USER}, files: {files}"))
}

fn names(folder: &str) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| folder.to_owned())?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Asks the server whose token this is.
async fn who(c: &Cluster<'_>, token: &str) -> Result<String> {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": token.trim()},
    });
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let answer = c
        .send(Method::POST, path, "application/json", &review)
        .await?;
    Ok(answer["status"]["user"]["username"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

/// Reads metrics as Prometheus does: through their Service, with a token, trusting the authority in the manager's Secret.
pub(super) async fn metrics_are_read(c: &Cluster<'_>) -> Result<String> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "scraper"},
    });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    c.send(Method::POST, accounts, "application/json", &account)
        .await?;
    let before = scrape(c).await;
    ensure!(before.is_err(), "metrics are for everybody");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "scraper"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("{NAME}-metrics-reader"),
        },
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    c.send(Method::POST, bindings, "application/json", &binding)
        .await?;
    let text = c
        // Replicas take turns, and the one that leads has those of its controllers.
        .until("metrics of controllers are read", async || {
            let text = scrape(c).await?;
            ensure!(
                text.contains("controller_runtime_reconcile_total"),
                "{text}"
            );
            Ok(text)
        })
        .await?;
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    Ok(format!("{series} series"))
}

async fn scrape(c: &Cluster<'_>) -> Result<String> {
    let name = format!("{MANAGER}-metrics-service");
    let service = c
        .get(&format!("/api/v1/namespaces/{NAMESPACE}/services/{name}"))
        .await?;
    let address = service["spec"]["clusterIP"]
        .as_str()
        .context("an address")?;
    let secret = c
        .get(&format!(
            "/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-server-cert"
        ))
        .await?;
    let mut config = kube::Config::new(format!("https://{address}:8443").parse()?);
    config.root_cert = Some(vec![der(&secret["data"]["ca.crt"])?]);
    // The certificate is for this name; that of the metrics' Service is added with a ServiceMonitor alone.
    config.tls_server_name = Some(format!("{NAME}-webhook-service.{NAMESPACE}.svc"));
    config.auth_info = AuthInfo {
        token: Some(token(c).await?.into()),
        ..AuthInfo::default()
    };
    let client = kube::Client::try_from(config)?;
    Ok(client
        .request_text(Request::get("/metrics").body(Vec::new())?)
        .await?)
}

/// The first certificate of a bundle in the data of a Secret.
fn der(value: &Value) -> Result<Vec<u8>> {
    use base64::Engine as _;
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text);
    let pem = String::from_utf8(decode(value.as_str().context("a bundle")?)?)?;
    let lines = pem
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with("-----"));
    Ok(decode(&lines.collect::<String>())?)
}

async fn token(c: &Cluster<'_>) -> Result<String> {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}});
    let path = "/api/v1/namespaces/default/serviceaccounts/scraper/token";
    let made = c
        .send(Method::POST, path, "application/json", &request)
        .await?;
    Ok(made["status"]["token"]
        .as_str()
        .context("a token")?
        .to_owned())
}

/// Compares the manager's roles with what it did: nothing was refused, and without any one rule something would have been.
pub(super) fn roles_are_exact(c: &Cluster<'_>) -> Result<String> {
    let grants: &[Grant] = &c.grants;
    let events = c.audit()?;
    let own = user();
    let mut used: Vec<Use> = Vec::new();
    for event in events
        .iter()
        .filter(|event| event["user"]["username"] == *own)
    {
        let refused = event["responseStatus"]["code"] == 403;
        ensure!(
            !refused,
            "refused: {} {}",
            event["verb"],
            event["requestURI"]
        );
        used.extend(Use::of(event));
    }
    used.sort();
    used.dedup();
    ensure!(!used.is_empty(), "the audit log has nothing of the manager");
    for (place, grant) in grants.iter().enumerate() {
        let others = || {
            grants
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place)
        };
        let is_needed =
            |it: &&Use| grant.allows(it) && !others().any(|(_, grant)| grant.allows(it));
        ensure!(
            used.iter().any(|it| is_needed(&it)),
            "nothing needs {grant}"
        );
    }
    let verbs: Vec<String> = grants
        .iter()
        .flat_map(|grant| grant.unused_verbs(&used))
        .collect();
    Ok(format!(
        "{} rules, {} uses, each rule is needed; verbs granted with a kind and not used: {}",
        grants.len(),
        used.len(),
        verbs.join(", ")
    ))
}
