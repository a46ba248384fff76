//! Objects of the operator's kind, in both versions: everything here goes through its deployed webhooks.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use http::Request;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::cluster::Cluster;
use super::project::REFUSALS;
use crate::process::{self, End, Output};

const GROUP: &str = "shelf.my.domain";
/// How many clients write at once.
const WRITERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a book is.
fn path(version: &str, name: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/default/books/{name}")
}

/// A book as the field manager of this lane applies it.
fn book(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "Book", "metadata": {"name": name}, "spec": spec,
    })
}

async fn apply(
    client: &kube::Client,
    version: &str,
    name: &str,
    spec: Value,
) -> Result<Value, kube::Error> {
    let uri = format!("{}?fieldManager=lane&force=true", path(version, name));
    let request = Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
    let body = book(version, name, spec).to_string().into_bytes();
    let request = request.body(body).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// Writes a book in each version and reads it in the other; one without a title is refused.
pub(super) async fn both_versions(c: &Cluster<'_>) -> Result<String> {
    let first = apply(&c.client, "v1", "emma", json!({"title": "Emma"})).await?;
    ensure!(first["spec"]["pages"] == 7, "not defaulted: {first}");
    let second = c.get(&path("v2", "emma")).await?;
    ensure!(
        second["spec"]["heading"] == "Emma",
        "not converted: {second}"
    );
    apply(
        &c.client,
        "v2",
        "evelina",
        json!({"heading": "Evelina", "pages": 5}),
    )
    .await?;
    let first = c.get(&path("v1", "evelina")).await?;
    ensure!(
        first["spec"]["title"] == "Evelina",
        "not converted: {first}"
    );
    refused(c, REFUSALS[0]).await?;
    reconciled(c, "evelina").await?;
    Ok("v1 read as v2, v2 read as v1, a nameless one refused, the status written".to_owned())
}

/// Checks that the deployed manager refuses a book without a title in these words.
pub(super) async fn refused(c: &Cluster<'_>, words: &str) -> Result<()> {
    match apply(&c.client, "v2", "nameless", json!({})).await {
        Ok(stored) => bail!("a book without a title is stored: {stored}"),
        Err(error) if error.to_string().contains(words) => Ok(()),
        Err(error) => Err(error).context("refused, but not because the title is missing"),
    }
}

/// Waits until the controller has written the status of the current generation.
pub(super) async fn reconciled(c: &Cluster<'_>, name: &str) -> Result<()> {
    c.until("the book is reconciled", async || {
        let book = c.get(&path("v1", name)).await?;
        let is_current = book["status"]["observedGeneration"] == book["metadata"]["generation"];
        let is_ready = book["status"]["conditions"][0]["status"] == "True";
        ensure!(is_current && is_ready, "{}", book["status"]);
        Ok(())
    })
    .await
}

/// Does the same with kubectl.
pub(super) fn through_kubectl(c: &Cluster<'_>) -> Result<String> {
    let written = [
        ("v1", json!({"title": "Persuasion"}), "persuasion"),
        ("v2", json!({"heading": "Cecilia", "pages": 3}), "cecilia"),
    ];
    for (version, spec, name) in written {
        let text = book(version, name, spec).to_string();
        succeed(kubectl(c, &["apply", "-f", "-"], &text)?)?;
    }
    for (resource, field, name, expected) in [
        (
            "books.v2.shelf.my.domain",
            "heading",
            "persuasion",
            "Persuasion",
        ),
        ("books.v1.shelf.my.domain", "title", "cecilia", "Cecilia"),
        ("books.v2.shelf.my.domain", "pages", "persuasion", "7"),
    ] {
        let output = format!("jsonpath={{.spec.{field}}}");
        let read = succeed(kubectl(c, &["get", resource, name, "-o", &output], "")?)?;
        ensure!(
            read == expected,
            "{resource} {name} has the {field} {read:?}"
        );
    }
    let nameless = book("v1", "nameless", json!({})).to_string();
    let refused = kubectl(c, &["apply", "-f", "-"], &nameless)?;
    ensure!(
        refused.shows(REFUSALS[0]),
        "not refused: {}",
        refused.stdout
    );
    Ok("both versions written and read".to_owned())
}

/// Runs kubectl on the cluster. Without it, the error is `Missing`, which leaves the step out.
pub(super) fn kubectl(c: &Cluster<'_>, arguments: &[&str], input: &str) -> Result<Output> {
    let program = c.kubectl()?;
    let mut command = Command::new(program);
    command
        .current_dir(&c.project.folder)
        .env("KUBECONFIG", c.project.kubeconfig())
        .env("HOME", &c.project.around)
        .args(arguments);
    process::run(&mut command, input, PATIENCE)
}

/// What a command printed, if it succeeded.
pub(super) fn succeed(output: Output) -> Result<String> {
    if output.end != End::Exited(0) {
        bail!("{}{}", output.stdout, output.stderr);
    }
    Ok(output.stdout)
}

/// Clients that write and read books in both versions, one request after the other.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    writers: JoinSet<Written>,
}

/// What came of the requests of a client.
#[derive(Debug, Default)]
struct Written {
    requests: usize,
    failed: Vec<String>,
    /// Requests that the server asked to send again, because the kind was just defined anew, as clients in Go do by themselves.
    repeated: usize,
}

impl Load {
    /// Starts clients, which go on until they are ended.
    pub(super) fn start(c: &Cluster<'_>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for number in 0..WRITERS {
            writers.spawn(write(c.client.clone(), number, stop.clone()));
        }
        Self { stop, writers }
    }

    /// Ends the clients. Fails if a request did, and says how many there were.
    pub(super) async fn end(mut self) -> Result<String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Written::default();
        while let Some(written) = self.writers.join_next().await {
            let written = written.context("a client panicked")?;
            all.requests += written.requests;
            all.repeated += written.repeated;
            all.failed.extend(written.failed);
        }
        let Written {
            requests,
            failed,
            repeated,
        } = all;
        if let Some(first) = failed.first() {
            bail!("{} of {requests} requests failed: {first}", failed.len());
        }
        ensure!(requests > 20, "{requests} requests are not a load");
        Ok(format!(
            "{requests} requests, 0 failed, {repeated} repeated as the server asked"
        ))
    }
}

/// Writes one version and reads the other, in turn.
async fn write(client: kube::Client, number: usize, stop: Arc<AtomicBool>) -> Written {
    let mut written = Written::default();
    let name = format!("load-{number}");
    while !stop.load(Ordering::Relaxed) {
        written.requests += 1;
        let pages = written.requests % 10 + 1;
        let (version, spec) = if written.requests % 2 == 0 {
            ("v1", json!({"title": "Camilla", "pages": pages}))
        } else {
            ("v2", json!({"heading": "Camilla", "pages": pages}))
        };
        match apply(&client, version, &name, spec).await {
            Ok(book) if book["spec"]["pages"] == pages => {}
            Ok(book) => written
                .failed
                .push(format!("another book came back: {book}")),
            Err(error) if is_to_be_repeated(&error) => written.repeated += 1,
            Err(error) => written.failed.push(error.to_string()),
        }
        sleep(Duration::from_millis(10)).await;
    }
    written
}

fn is_to_be_repeated(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let after = status
        .details
        .as_ref()
        .map(|details| details.retry_after_seconds);
    status.code == 503 && after > Some(0) && status.message.contains("definition")
}
