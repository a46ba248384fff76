//! Where an image is read from: an OCI layout, or an archive of one or of `docker save`. Everything in it is a stranger's.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde_json::Value;

use super::store::ImageError;
use super::unpack::{Budget, decompressed};

/// Largest document that describes an image.
const LARGEST_DOCUMENT: u64 = 8 << 20;
/// How deep an index may name other indexes.
const DEEPEST: usize = 4;

/// A directory with the files of an image.
#[derive(Debug)]
pub(super) struct Source(PathBuf);

/// One image: its names, what it says of itself, and its layers, the lowest first.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) names: Vec<String>,
    pub(super) digest: String,
    pub(super) config: Value,
    pub(super) layers: Vec<PathBuf>,
}

/// Why a file or directory is not an image for this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnImage {
    /// It has neither of the documents that describe images.
    #[error("neither index.json nor manifest.json is in it")]
    NoIndex,
    /// An index leads to itself, or is too deep.
    #[error("indexes name each other")]
    Endless,
    /// It is for other machines.
    #[error("nothing in it is for linux/{0}")]
    OtherMachine(&'static str),
    /// A document names a blob by something else than a digest.
    #[error("{0:?} is not a digest")]
    NotADigest(String),
    /// The content of a blob is not what its name says.
    #[error("the blob {name} has the digest {found}")]
    Damaged {
        /// The digest that it is named after.
        name: String,
        /// The digest of what is in it.
        found: String,
    },
    /// A part of it cannot be read.
    #[error("{part}: {why}")]
    Unreadable {
        /// The file or blob.
        part: String,
        /// Why it cannot be read.
        why: io::Error,
    },
    /// A document is larger than those of images are.
    #[error("{0} is too large")]
    TooLarge(String),
    /// A document is not JSON.
    #[error("{part}: {why}")]
    NotJson {
        /// The document.
        part: String,
        /// Where it is not.
        why: serde_json::Error,
    },
}

impl NotAnImage {
    /// Says which part of an image cannot be read.
    fn unreadable(part: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        let part = part.to_string();
        move |why| Self::Unreadable { part, why }
    }
}

impl Source {
    /// Opens a directory, or unpacks an archive into a place that is empty.
    ///
    /// # Errors
    /// When it cannot be read, or has more in it than an image may have.
    pub(super) fn open(from: &Path, place: &Path, budget: &mut Budget) -> Result<Self, ImageError> {
        let reading = |source| ImageError::Read {
            path: from.to_owned(),
            source,
        };
        if from.is_dir() {
            return Ok(Self(from.to_owned()));
        }
        let file = File::open(from).map_err(reading)?;
        let mut archive = tar::Archive::new(decompressed(file).map_err(reading)?);
        for entry in archive.entries().map_err(reading)? {
            let mut entry = entry.map_err(reading)?;
            let path = entry.path().map_err(reading)?.into_owned();
            let kind = entry.header().entry_type();
            if !kind.is_file() {
                // A document that is a link to another one is not worth the risk.
                continue;
            }
            let target = place.join(plain(&path).map_err(reading)?);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(reading)?;
            }
            let mut file = File::create(&target).map_err(reading)?;
            budget.copy(&mut entry, &mut file).map_err(reading)?;
        }
        Ok(Self(place.to_owned()))
    }

    /// The image for this machine.
    ///
    /// # Errors
    /// When the image is missing, or what describes it is damaged.
    pub(super) fn find(&self) -> Result<Found, ImageError> {
        let found = if self.0.join("index.json").is_file() {
            self.layout()
        } else if self.0.join("manifest.json").is_file() {
            self.saved()
        } else {
            Err(NotAnImage::NoIndex)
        };
        found.map_err(ImageError::NotAnImage)
    }

    /// An OCI layout.
    fn layout(&self) -> Result<Found, NotAnImage> {
        let index = self.document(Path::new("index.json"))?;
        let (descriptor, manifest) = self.manifest(&index, 0)?;
        let digest = text(&descriptor["digest"]);
        let top = index["manifests"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for one in &top {
            let annotations = &one["annotations"];
            let full = text(&annotations["io.containerd.image.name"]);
            let short = text(&annotations["org.opencontainers.image.ref.name"]);
            // A reference that is a tag alone is not a name.
            let name = if full.is_empty() { short } else { full };
            if name.contains(['/', ':']) && !names.contains(&name) {
                names.push(name);
            }
        }
        let layers = manifest["layers"].as_array().cloned().unwrap_or_default();
        let layers: Result<Vec<PathBuf>, NotAnImage> = layers
            .iter()
            .map(|layer| self.blob(&text(&layer["digest"])))
            .collect();
        let config = self.blob(&text(&manifest["config"]["digest"]))?;
        Ok(Found {
            names,
            digest,
            config: read_json(&config)?,
            layers: layers?,
        })
    }

    /// The manifest for this machine, and what describes it.
    fn manifest(&self, index: &Value, depth: usize) -> Result<(Value, Value), NotAnImage> {
        if depth > DEEPEST {
            return Err(NotAnImage::Endless);
        }
        let all = index["manifests"].as_array().cloned().unwrap_or_default();
        let fits = |one: &&Value| {
            let platform = &one["platform"];
            let of = |field: &str, here: &str| platform[field].is_null() || platform[field] == here;
            of("architecture", architecture()) && of("os", "linux")
        };
        let chosen = all.iter().find(fits);
        let chosen = chosen.ok_or(NotAnImage::OtherMachine(architecture()))?;
        let document = read_json(&self.blob(&text(&chosen["digest"]))?)?;
        if document["manifests"].is_array() {
            return self.manifest(&document, depth + 1);
        }
        Ok((chosen.clone(), document))
    }

    /// What `docker save` writes.
    fn saved(&self) -> Result<Found, NotAnImage> {
        let all = self.document(Path::new("manifest.json"))?;
        let first = &all[0];
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(text).collect()
        };
        let inside = |path: &str| -> Result<PathBuf, NotAnImage> {
            let inside = plain(Path::new(path)).map_err(NotAnImage::unreadable(path))?;
            Ok(self.0.join(inside))
        };
        let config = inside(&text(&first["Config"]))?;
        let bytes = read_limited(&config)?;
        let layers: Result<_, NotAnImage> = strings(&first["Layers"])
            .iter()
            .map(|l| inside(l))
            .collect();
        Ok(Found {
            names: strings(&first["RepoTags"]),
            digest: digest(&bytes[..]).map_err(NotAnImage::unreadable(config.display()))?,
            config: parse(&config, &bytes)?,
            layers: layers?,
        })
    }

    fn document(&self, path: &Path) -> Result<Value, NotAnImage> {
        read_json(&self.0.join(path))
    }

    /// The file of a blob, whose content is what its name says.
    fn blob(&self, name: &str) -> Result<PathBuf, NotAnImage> {
        let hex = name.strip_prefix("sha256:").unwrap_or("");
        if hex.len() != 64 || !hex.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(NotAnImage::NotADigest(name.to_owned()));
        }
        let path = self.0.join("blobs/sha256").join(hex);
        let file = File::open(&path).map_err(NotAnImage::unreadable(name))?;
        let found = digest(file).map_err(NotAnImage::unreadable(name))?;
        if found != name {
            let name = name.to_owned();
            return Err(NotAnImage::Damaged { name, found });
        }
        Ok(path)
    }
}

/// A path without anything that leads out of where it is put.
pub(super) fn plain(path: &Path) -> io::Result<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                let text = format!("{} leads out of the archive", path.display());
                return Err(io::Error::other(text));
            }
        }
    }
    Ok(clean)
}

fn digest(mut from: impl Read) -> io::Result<String> {
    let mut hash = Hash(Context::new(&SHA256));
    io::copy(&mut from, &mut hash)?;
    let digest = hash.0.finish();
    let hex: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(format!("sha256:{hex}"))
}

/// Takes the digest of what is written to it.
struct Hash(Context);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read_limited(path: &Path) -> Result<Vec<u8>, NotAnImage> {
    let read = || {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(LARGEST_DOCUMENT + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes: Vec<u8> = read().map_err(NotAnImage::unreadable(path.display()))?;
    if bytes.len() as u64 > LARGEST_DOCUMENT {
        return Err(NotAnImage::TooLarge(path.display().to_string()));
    }
    Ok(bytes)
}

fn read_json(path: &Path) -> Result<Value, NotAnImage> {
    parse(path, &read_limited(path)?)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Value, NotAnImage> {
    let part = || path.display().to_string();
    serde_json::from_slice(bytes).map_err(|why| NotAnImage::NotJson { part: part(), why })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The architecture of this machine, as images name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
