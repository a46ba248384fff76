//! Certificates: replaced while books are written, without a request that meets one that is not trusted.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::books::Load;
use super::cluster::Cluster;
use super::{NAMESPACE, replicas};

const SECRET: &str = "library-server-cert";
const CONFIGURATIONS: [&str; 2] = ["mutating", "validating"];
/// Certificates that live for a minute are replaced after forty seconds.
const FLAGS: [&str; 2] = ["--cert-lifetime=60s", "--cert-settle=5s"];
/// How many replacements are waited for: one that is brought about, and one that comes by itself.
const REPLACEMENTS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(150);

fn path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
}

fn decoded(value: &Value) -> Result<Vec<u8>> {
    let text = value.as_str().context("a field of the Secret is missing")?;
    STANDARD.decode(text).context("base64")
}

/// The certificate that is served, as the Secret has it.
async fn served(c: &Cluster<'_>) -> Result<Vec<u8>> {
    decoded(&c.get(&path()).await?["data"]["tls.crt"])
}

/// How many authorities each of the configurations and the definition trusts.
async fn trusted(c: &Cluster<'_>) -> Result<BTreeSet<usize>> {
    let count = |bundle: &Value| -> Result<usize> {
        let text = String::from_utf8(decoded(bundle)?)?;
        Ok(text.matches("BEGIN CERTIFICATE").count())
    };
    let mut counts = BTreeSet::new();
    for kind in CONFIGURATIONS {
        let path = format!(
            "/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/library-{kind}-webhook-configuration"
        );
        let configuration = c.get(&path).await?;
        counts.insert(count(
            &configuration["webhooks"][0]["clientConfig"]["caBundle"],
        )?);
    }
    let definition =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/books.shelf.my.domain";
    let definition = c.get(definition).await?;
    counts.insert(count(
        &definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"],
    )?);
    Ok(counts)
}

/// Has certificates live for a minute, and counts their replacements while books are written.
pub(super) async fn replaced(c: &Cluster<'_>) -> Result<String> {
    let load = Load::start(c);
    let replaced = replace(c).await;
    let outcome = load.end().await;
    Ok(format!("{}; {}", replaced?, outcome?))
}

async fn replace(c: &Cluster<'_>) -> Result<String> {
    let deployment = c.get(&c.deployment()).await?;
    let mut arguments = replicas::arguments(&deployment);
    arguments.extend(FLAGS.map(str::to_owned));
    let place = "/spec/template/spec/containers/0/args";
    let patch = json!([{"op": "replace", "path": place, "value": arguments}]);
    c.send(
        Method::PATCH,
        &c.deployment(),
        "application/json-patch+json",
        &patch,
    )
    .await?;
    c.rolled_out().await?;
    age(c).await?;
    let (mut seen, mut most) = (vec![served(c).await?], 0);
    let end = Instant::now() + PATIENCE;
    while seen.len() <= REPLACEMENTS {
        let now = served(c).await?;
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        most = most.max(trusted(c).await?.last().copied().unwrap_or_default());
        if Instant::now() > end {
            bail!("{} replacements within {PATIENCE:?}", seen.len() - 1);
        }
        sleep(Duration::from_millis(100)).await;
    }
    ensure!(most == 2, "at most {most} authorities were trusted at once");
    Ok(format!(
        "{} replacements, 2 authorities trusted in between",
        seen.len() - 1
    ))
}

/// Makes the certificate look as old as one that is due to be replaced.
async fn age(c: &Cluster<'_>) -> Result<()> {
    let mut secret = c.get(&path()).await?;
    let state = decoded(&secret["data"]["certificates.json"])?;
    let mut state: Value = serde_json::from_slice(&state)?;
    let issued = state["served"]["issued"].as_i64().context("a time")?;
    state["served"]["issued"] = json!(issued - 365 * 24 * 60 * 60);
    secret["data"]["certificates.json"] = json!(STANDARD.encode(state.to_string()));
    c.send(Method::PUT, &path(), "application/json", &secret)
        .await?;
    Ok(())
}
