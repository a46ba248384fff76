//! Where an image goes on this machine: a folder in the OCI layout, or an archive that `docker load` takes.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::oci::{INDEX, Image};
use super::tar::Archive;

/// Writes the OCI layout into a folder. Blobs of earlier images stay: they are named by what they contain.
///
/// # Errors
/// When the folder cannot be written.
pub(super) fn layout(image: &Image, name: &str, folder: &Path) -> anyhow::Result<()> {
    let write = || {
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs)?;
        for (digest, bytes) in &image.blobs {
            fs::write(blobs.join(digest.trim_start_matches("sha256:")), bytes)?;
        }
        fs::write(folder.join("oci-layout"), marker())?;
        fs::write(folder.join("index.json"), index(image, name).to_string())
    };
    write().with_context(|| format!("{} cannot be written", folder.display()))
}

/// Writes an archive for `docker load` and `podman load`: the OCI layout, and docker's own table of contents.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn archive(image: &Image, name: &str, file: &Path) -> anyhow::Result<()> {
    let bytes = packed(image, name).context("the archive cannot be made")?;
    fs::write(file, bytes).with_context(|| format!("{} cannot be written", file.display()))
}

fn packed(image: &Image, name: &str) -> std::io::Result<Vec<u8>> {
    let mut archive = Archive::new(Vec::new());
    for folder in ["blobs/", "blobs/sha256/"] {
        archive.folder(folder, 0o755)?;
    }
    for (digest, bytes) in &image.blobs {
        archive.file(&path(digest), 0o644, bytes)?;
    }
    archive.file(
        "index.json",
        0o644,
        index(image, name).to_string().as_bytes(),
    )?;
    archive.file(
        "manifest.json",
        0o644,
        contents(image, name).to_string().as_bytes(),
    )?;
    archive.file("oci-layout", 0o644, marker().as_bytes())?;
    archive.finish()
}

fn path(digest: &str) -> String {
    format!("blobs/sha256/{}", digest.trim_start_matches("sha256:"))
}

fn marker() -> String {
    json!({"imageLayoutVersion": "1.0.0"}).to_string()
}

fn index(image: &Image, name: &str) -> Value {
    let mut root = image.root.clone();
    let tag = name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    root["annotations"] = json!({
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": tag,
    });
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [root]})
}

/// Docker's table of contents, which knows one machine only: the first.
fn contents(image: &Image, name: &str) -> Value {
    let manifest = image.manifests.first().and_then(|it| it["digest"].as_str());
    let manifest = manifest.and_then(|digest| image.blobs.get(digest));
    let manifest: Value = manifest
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .unwrap_or_default();
    let place = |descriptor: &Value| path(descriptor["digest"].as_str().unwrap_or_default());
    let layers = manifest["layers"].as_array().cloned().unwrap_or_default();
    let layers: Vec<String> = layers.iter().map(place).collect();
    json!([{"Config": place(&manifest["config"]), "RepoTags": [name], "Layers": layers}])
}
