//! Pushes to registries and pulls from them, over the distribution API of the OCI.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use super::credentials::{self, Credentials};
use super::oci::{self, Base, INDEX, Image, MANIFEST};
use super::program::Machine;
use super::reference::Reference;

/// How long one exchange may take; a layer may be large and the line slow.
const PATIENCE: Duration = Duration::from_secs(300);
/// The largest manifest, and the largest layer that is read.
const LARGEST_MANIFEST: usize = 4 << 20;
const LARGEST_BLOB: usize = 1 << 30;
/// Docker's own names for the same things.
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// One repository of a registry.
pub(super) struct Repository {
    reference: Reference,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    credentials: Option<Credentials>,
    /// What requests are authorized with, once the registry has asked.
    authorization: Option<String>,
}

/// What is to be done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Pull,
    Push,
}

impl Access {
    fn scope(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

/// A request that can be sent again.
struct Call<'a> {
    method: Method,
    uri: String,
    content_type: Option<&'a str>,
    body: Bytes,
    largest: usize,
}

impl<'a> Call<'a> {
    fn new(method: Method, uri: String) -> Self {
        Self {
            method,
            uri,
            content_type: None,
            body: Bytes::new(),
            largest: LARGEST_MANIFEST,
        }
    }

    fn body(mut self, content_type: &'a str, body: &[u8]) -> Self {
        self.content_type = Some(content_type);
        self.body = Bytes::copy_from_slice(body);
        self
    }
}

impl Repository {
    /// Opens a repository for reading or writing, with the credentials that docker has for it.
    ///
    /// # Errors
    /// When the registry cannot be reached or does not let us in.
    pub(super) async fn open(reference: &Reference, access: Access) -> anyhow::Result<Self> {
        let tls = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .context("the certificates of this machine cannot be read")?;
        let connector = tls.https_or_http().enable_http1().build();
        let mut repository = Self {
            reference: reference.clone(),
            client: Client::builder(TokioExecutor::new()).build(connector),
            credentials: credentials::find(&reference.registry)?,
            authorization: None,
        };
        repository.enter(access).await?;
        Ok(repository)
    }

    /// Pushes an image: what is not there yet, and the name last.
    ///
    /// # Errors
    /// When the registry refuses.
    pub(super) async fn push(&self, image: &Image) -> anyhow::Result<()> {
        let is_manifest = |digest: &str| {
            let of = |descriptor: &Value| descriptor["digest"] == digest;
            of(&image.root) || image.manifests.iter().any(of)
        };
        for (digest, bytes) in image
            .blobs
            .iter()
            .filter(|(digest, _)| !is_manifest(digest))
        {
            self.push_blob(digest, bytes).await?;
        }
        for descriptor in image
            .manifests
            .iter()
            .filter(|it| it["digest"] != image.root["digest"])
        {
            let digest = descriptor["digest"].as_str().unwrap_or_default();
            self.push_manifest(image, descriptor, digest).await?;
        }
        self.push_manifest(image, &image.root, &self.reference.version)
            .await
    }

    /// Reads what an image for a machine begins with.
    ///
    /// # Errors
    /// When there is no such image, or it is not for that machine.
    pub(super) async fn base(&self, machine: Machine) -> anyhow::Result<Base> {
        let mut manifest = self.manifest(&self.reference.version).await?;
        if let Some(manifests) = manifest["manifests"].as_array() {
            let is_for = |it: &&Value| {
                let platform = &it["platform"];
                platform["architecture"] == machine.architecture && platform["os"] == "linux"
            };
            let found = manifests
                .iter()
                .find(is_for)
                .and_then(|it| it["digest"].as_str());
            let digest = found.with_context(|| {
                format!("{} has no image for {}", self.reference, machine.platform())
            })?;
            let digest = digest.to_owned();
            manifest = self.manifest(&digest).await?;
        }
        let config = manifest["config"]["digest"].as_str().unwrap_or_default();
        let config: Value = serde_json::from_slice(&self.blob(config).await?)
            .with_context(|| format!("the configuration of {} is not JSON", self.reference))?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut base = Base {
            layers: list(&manifest["layers"]),
            diff_ids: list(&config["rootfs"]["diff_ids"]),
            ..Base::default()
        };
        for layer in &base.layers {
            let digest = layer["digest"].as_str().unwrap_or_default().to_owned();
            let bytes = self.blob(&digest).await?;
            base.blobs.insert(digest, bytes);
        }
        Ok(base)
    }

    /// Finds out how the registry wants to be asked.
    async fn enter(&mut self, access: Access) -> anyhow::Result<()> {
        let call = Call::new(Method::GET, format!("{}/v2/", self.reference.url()));
        let answer = self.send(&call).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(());
        }
        let wanted = answer.headers().get(WWW_AUTHENTICATE);
        let wanted = wanted
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let basic = self.credentials.as_ref().map(Credentials::basic);
        let (scheme, rest) = wanted.split_once(' ').unwrap_or((&wanted, ""));
        self.authorization = if scheme.eq_ignore_ascii_case("bearer") {
            Some(self.token(rest, access, basic).await?)
        } else {
            basic
        };
        if self.authorization.is_none() {
            return Err(self.wants_password());
        }
        Ok(())
    }

    fn wants_password(&self) -> anyhow::Error {
        let registry = &self.reference.registry;
        anyhow::anyhow!(
            "{registry} wants a password, and docker keeps none for it; run: docker login {registry}, or write \
             ~/.docker/config.json"
        )
    }

    /// A token for this repository, from where the registry says.
    async fn token(
        &self,
        challenge: &str,
        access: Access,
        basic: Option<String>,
    ) -> anyhow::Result<String> {
        let realm =
            parameter(challenge, "realm").context("the registry does not say who gives tokens")?;
        let mut query = vec![format!(
            "scope=repository:{}:{}",
            self.reference.repository,
            access.scope()
        )];
        query.extend(
            parameter(challenge, "service").map(|service| format!("service={}", encoded(&service))),
        );
        let mark = if realm.contains('?') { '&' } else { '?' };
        let call = Call::new(Method::GET, format!("{realm}{mark}{}", query.join("&")));
        let answer = self.send_as(&call, basic.as_deref()).await?;
        if basic.is_none() && !answer.status().is_success() {
            return Err(self.wants_password());
        }
        let answer = accepted(answer, "a token")?;
        let answer: Value = serde_json::from_slice(answer.body())
            .context("the token of the registry is not JSON")?;
        let token = answer["token"].as_str().or(answer["access_token"].as_str());
        let token = token.context("the registry gave no token")?;
        Ok(format!("Bearer {token}"))
    }

    async fn push_blob(&self, digest: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let there = Call::new(Method::HEAD, self.place(&format!("blobs/{digest}")));
        if self.send(&there).await?.status().is_success() {
            return Ok(());
        }
        let begin = Call::new(Method::POST, self.place("blobs/uploads/"));
        let answer = accepted(self.send(&begin).await?, "an upload")?;
        let location = answer.headers().get(LOCATION);
        let location = location.and_then(|value| value.to_str().ok());
        let location = location.context("the registry does not say where to upload")?;
        let location = if location.starts_with('/') {
            format!("{}{location}", self.reference.url())
        } else {
            location.to_owned()
        };
        let mark = if location.contains('?') { '&' } else { '?' };
        let call = Call::new(
            Method::PUT,
            format!("{location}{mark}digest={}", encoded(digest)),
        );
        let call = call.body("application/octet-stream", bytes);
        accepted(self.send(&call).await?, digest)?;
        Ok(())
    }

    async fn push_manifest(
        &self,
        image: &Image,
        descriptor: &Value,
        name: &str,
    ) -> anyhow::Result<()> {
        let text = |field: &str| descriptor[field].as_str().unwrap_or_default();
        let bytes = image
            .blobs
            .get(text("digest"))
            .context("the image lacks a manifest")?;
        let call = Call::new(Method::PUT, self.place(&format!("manifests/{name}")));
        let call = call.body(text("mediaType"), bytes);
        accepted(self.send(&call).await?, name)?;
        Ok(())
    }

    async fn manifest(&self, name: &str) -> anyhow::Result<Value> {
        let call = Call::new(Method::GET, self.place(&format!("manifests/{name}")));
        let answer = accepted(self.send(&call).await?, &self.reference.to_string())?;
        verified(name, answer.body())?;
        serde_json::from_slice(answer.body())
            .with_context(|| format!("the manifest of {} is not JSON", self.reference))
    }

    async fn blob(&self, digest: &str) -> anyhow::Result<Vec<u8>> {
        let mut call = Call::new(Method::GET, self.place(&format!("blobs/{digest}")));
        call.largest = LARGEST_BLOB;
        let mut answer = self.send(&call).await?;
        // Registries keep blobs elsewhere. That host must not get our password.
        if answer.status().is_redirection() {
            let location = answer
                .headers()
                .get(LOCATION)
                .and_then(|value| value.to_str().ok());
            call.uri = location
                .context("the registry does not say where a layer is")?
                .to_owned();
            answer = self.send_as(&call, None).await?;
        }
        let answer = accepted(answer, digest)?;
        verified(digest, answer.body())?;
        Ok(answer.into_body())
    }

    fn place(&self, rest: &str) -> String {
        format!(
            "{}/v2/{}/{rest}",
            self.reference.url(),
            self.reference.repository
        )
    }

    async fn send(&self, call: &Call<'_>) -> anyhow::Result<Response<Vec<u8>>> {
        // An upload may be somewhere else, which does not get our password unless it is the registry.
        let is_registry = call.uri.starts_with(&format!("{}/", self.reference.url()));
        let authorization = self.authorization.as_deref().filter(|_| is_registry);
        self.send_as(call, authorization).await
    }

    async fn send_as(
        &self,
        call: &Call<'_>,
        authorization: Option<&str>,
    ) -> anyhow::Result<Response<Vec<u8>>> {
        let uri: Uri = call
            .uri
            .parse()
            .with_context(|| format!("{} is not an address", call.uri))?;
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(uri)
            .header(CONTENT_LENGTH, call.body.len())
            .header(
                ACCEPT,
                [INDEX, MANIFEST, DOCKER_INDEX, DOCKER_MANIFEST, "*/*"].join(", "),
            );
        if let Some(content_type) = call.content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request
            .body(Full::new(call.body.clone()))
            .context("a request cannot be made")?;
        let registry = &self.reference.registry;
        let exchange = async {
            let answer = self.client.request(request).await?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, call.largest).collect().await;
            let body =
                body.map_err(|error| anyhow::anyhow!("the answer cannot be read: {error}"))?;
            anyhow::Ok(Response::from_parts(head, body.to_bytes().to_vec()))
        };
        let answer = timeout(PATIENCE, exchange).await;
        answer
            .with_context(|| format!("{registry} did not answer within {PATIENCE:?}"))?
            .with_context(|| format!("{registry} cannot be asked"))
    }
}

/// An answer that is not a refusal.
fn accepted(answer: Response<Vec<u8>>, what: &str) -> anyhow::Result<Response<Vec<u8>>> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    let reason = body["errors"][0]["message"]
        .as_str()
        .unwrap_or("no reason is given");
    bail!(
        "the registry refused {what}: {} ({reason})",
        answer.status()
    );
}

/// Fails if something is named by its digest and has another.
fn verified(name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    if name.starts_with("sha256:") && oci::digest(bytes) != name {
        bail!("the registry sent something else for {name}");
    }
    Ok(())
}

/// A parameter of what a registry asks for: `realm="https://.."`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let start = challenge.find(&format!("{name}=\""))? + name.len() + 2;
    let rest = &challenge[start..];
    Some(rest[..rest.find('"')?].to_owned())
}

/// A value as a query has it.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let challenge = r#"realm="https://auth.io/token",service="registry.io",scope="a""#;
        assert_eq!(
            parameter(challenge, "realm").as_deref(),
            Some("https://auth.io/token")
        );
        assert_eq!(
            parameter(challenge, "service").as_deref(),
            Some("registry.io")
        );
        assert_eq!(parameter("realm=x", "realm"), None);
        assert_eq!(encoded("sha256:a b"), "sha256%3Aa%20b");
    }
}
