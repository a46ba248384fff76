//! The images of this machine, a directory for each: what the image says of itself, and its files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::name::whole;
use super::source::{NotAnImage, Source};
use super::unpack::{Budget, Unpacked};

/// Most bytes and files that an image has, unpacked.
const MOST_BYTES: u64 = 16 << 30;
const MOST_ENTRIES: u64 = 2_000_000;

/// The images that were loaded on this machine.
///
/// Each is unpacked once and shared by all containers that run it. What a container changes is its own.
#[derive(Debug, Clone)]
pub struct ImageStore(PathBuf);

/// An image of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredImage {
    /// The names that it was loaded under, in full.
    pub names: Vec<String>,
    /// What identifies it: the digest of its manifest.
    pub digest: String,
    /// Its size on the disk, in bytes of files.
    pub bytes: u64,
    /// Devices, pipes and sockets of it, which were not made.
    pub left_out: usize,
    pub(crate) entrypoint: Vec<String>,
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) directory: String,
    pub(crate) user: String,
    #[serde(skip)]
    pub(crate) root: PathBuf,
}

/// Why an image cannot be loaded, listed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file or directory cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// What was read.
        path: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// It is not an image for this machine.
    #[error("not an image: {0}")]
    NotAnImage(NotAnImage),
    /// The image has no name, and none was given.
    #[error("the image has no name; give it one with --name")]
    NoName,
    /// The directory of images cannot be written.
    #[error("{} cannot be written", path.display())]
    Write {
        /// What was written.
        path: PathBuf,
        /// Why it cannot be written.
        source: io::Error,
    },
    /// No image has this name or digest.
    #[error("no image is called {0:?}")]
    NotFound(String),
}

impl ImageStore {
    /// The images in a directory, which is made when one is loaded.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        // Containers are made by processes that are in other directories.
        Self(std::path::absolute(&directory).unwrap_or(directory))
    }

    /// The images of this user: in `KUBEWRIGHT_IMAGES`, or below `XDG_DATA_HOME`, or below `~/.local/share`. Nothing where the
    /// user has no home.
    pub fn of_user() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(directory) = set("KUBEWRIGHT_IMAGES") {
            return Some(Self::at(directory));
        }
        let data = set("XDG_DATA_HOME").map(PathBuf::from);
        let home = || Some(PathBuf::from(set("HOME")?).join(".local/share"));
        Some(Self::at(data.or_else(home)?.join("kubewright/images")))
    }

    /// Loads an image from an OCI layout, or from an archive of one or of `docker save`. `name` is another name for it.
    ///
    /// # Errors
    /// When it is not an image for this machine, is damaged, or has no name.
    pub fn load(&self, from: &Path, name: Option<&str>) -> Result<StoredImage, ImageError> {
        let writing = |path: &Path| {
            let path = path.to_owned();
            move |source| ImageError::Write { path, source }
        };
        let make = || {
            fs::DirBuilder::new()
                .recursive(true)
                // Programs in it may be set to run as root, which is for containers alone.
                .mode(0o700)
                .create(&self.0)
        };
        make().map_err(writing(&self.0))?;
        let around = Scratch::new(&self.0).map_err(writing(&self.0))?;
        let mut budget = Budget::new(MOST_BYTES, MOST_ENTRIES);
        let archive = around.directory("archive").map_err(writing(&around.0))?;
        let found = Source::open(from, &archive, &mut budget)?.find()?;
        let mut names: Vec<String> = name
            .into_iter()
            .chain(found.names.iter().map(String::as_str))
            .map(whole)
            .collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return Err(ImageError::NoName);
        }
        let place = around.directory("image").map_err(writing(&around.0))?;
        let root = place.join("root");
        fs::create_dir(&root).map_err(writing(&root))?;
        let mut budget = Budget::new(MOST_BYTES, MOST_ENTRIES);
        let mut unpacked = Unpacked::into(&root).map_err(writing(&root))?;
        for layer in &found.layers {
            let reading = |source| ImageError::Read {
                path: layer.clone(),
                source,
            };
            let file = File::open(layer).map_err(reading)?;
            unpacked.layer(file, &mut budget).map_err(reading)?;
        }
        let left_out = unpacked.finish().map_err(writing(&root))?;
        let mut image = described(&found.config, names, found.digest);
        (image.bytes, image.left_out) = (MOST_BYTES - budget.left(), left_out);
        self.keep(&place, image)
    }

    /// Moves an image to its place, where it replaces an older one of the same names.
    fn keep(&self, place: &Path, mut image: StoredImage) -> Result<StoredImage, ImageError> {
        let writing = |source| ImageError::Write {
            path: self.0.clone(),
            source,
        };
        for mut other in self.list()? {
            let before = other.names.len();
            other.names.retain(|name| !image.names.contains(name));
            if other.digest == image.digest {
                image.names.append(&mut other.names);
                self.delete(&other).map_err(writing)?;
            } else if other.names.is_empty() {
                self.delete(&other).map_err(writing)?;
            } else if other.names.len() != before {
                let directory = self.directory(&other);
                write(&directory, &other).map_err(writing)?;
            }
        }
        write(place, &image).map_err(writing)?;
        let target = self.directory(&image);
        fs::rename(place, &target).map_err(writing)?;
        image.root = target.join("root");
        Ok(image)
    }

    /// All images, by name.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self) -> Result<Vec<StoredImage>, ImageError> {
        let reading = |source| ImageError::Read {
            path: self.0.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(reading)?,
        };
        let mut images = Vec::new();
        for entry in entries {
            let path = entry.map_err(reading)?.path();
            // What is being loaded is not one yet.
            let Ok(text) = fs::read(path.join("image.json")) else {
                continue;
            };
            if let Ok(mut image) = serde_json::from_slice::<StoredImage>(&text) {
                image.root = path.join("root");
                images.push(image);
            }
        }
        images.sort_by(|a, b| a.names.cmp(&b.names));
        Ok(images)
    }

    /// The image of a name, or of a name with a digest.
    pub fn find(&self, name: &str) -> Option<StoredImage> {
        let digest = name.split_once('@').map(|(_, digest)| digest);
        let name = whole(name);
        let fits = |image: &StoredImage| match digest {
            Some(digest) => image.digest == digest,
            None => image.names.contains(&name),
        };
        self.list().ok()?.into_iter().find(fits)
    }

    /// Removes a name from an image, and the image with its last name.
    ///
    /// # Errors
    /// When no image has the name, or it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), ImageError> {
        let found = self.find(name).or_else(|| {
            let all = self.list().unwrap_or_default();
            all.into_iter().find(|image| image.digest == name)
        });
        let mut image = found.ok_or_else(|| ImageError::NotFound(name.to_owned()))?;
        let full = whole(name);
        image.names.retain(|other| *other != full);
        let is_digest = image.digest == name || name.contains('@');
        let done = if image.names.is_empty() || is_digest {
            self.delete(&image)
        } else {
            write(&self.directory(&image), &image)
        };
        done.map_err(|source| ImageError::Write {
            path: self.0.clone(),
            source,
        })
    }

    fn directory(&self, image: &StoredImage) -> PathBuf {
        self.0.join(image.digest.replace(':', "-"))
    }

    fn delete(&self, image: &StoredImage) -> io::Result<()> {
        remove_tree(&self.directory(image))
    }
}

/// A directory for what is being loaded, which goes with this.
struct Scratch(PathBuf);

impl Scratch {
    fn new(around: &Path) -> io::Result<Self> {
        let path = around.join(format!(".loading-{}", std::process::id()));
        remove_tree(&path)?;
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "a directory is left");
        }
    }
}

fn write(directory: &Path, image: &StoredImage) -> io::Result<()> {
    let next = directory.join("image.json.next");
    fs::write(&next, serde_json::to_vec(image)?)?;
    fs::rename(next, directory.join("image.json"))
}

/// Removes a directory that may have directories which nobody may write to.
fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn open_up(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// What an image says of itself.
fn described(config: &Value, names: Vec<String>, digest: String) -> StoredImage {
    let own = &config["config"];
    let words = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|word| word.as_str().map(ToOwned::to_owned))
            .collect()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pairs = words(&own["Env"]);
    let env = pairs.iter().filter_map(|pair| pair.split_once('='));
    StoredImage {
        names,
        digest,
        bytes: 0,
        left_out: 0,
        entrypoint: words(&own["Entrypoint"]),
        command: words(&own["Cmd"]),
        env: env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        directory: text(&own["WorkingDir"]),
        user: text(&own["User"]),
        root: PathBuf::new(),
    }
}
