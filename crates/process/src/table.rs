//! Which program of this machine stands for which image.

use std::collections::BTreeMap;

use kubewright_cluster::node::runtime::ImagePattern;
use serde::Deserialize;

/// Most entries of a table.
const MOST_ENTRIES: usize = 1_000;

/// Which program of this machine stands for which image: `quay.io/coreos/etcd:*` is `/usr/bin/etcd`.
///
/// The last entry whose pattern fits an image counts.
///
/// ```
/// use kubewright_process::{ImageProgram, ImageTable};
///
/// let table = ImageTable::default().image("quay.io/coreos/etcd:*", ImageProgram::new("/usr/bin/etcd"));
/// assert!(table.find("quay.io/coreos/etcd:v3.6").is_some());
/// assert!(table.find("nginx").is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct ImageTable(Vec<(ImagePattern, ImageProgram)>);

/// A program of this machine that stands for an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ImageProgram {
    /// The program and what always comes first among its arguments: the entry point of the image.
    pub command: Vec<String>,
    /// The arguments of a container that gives none.
    pub args: Vec<String>,
    /// The environment that containers begin with.
    pub env: BTreeMap<String, String>,
}

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// It is not a list of images in YAML.
    #[error("not a list of images with their programs: {0}")]
    Yaml(String),
    /// An entry has no program.
    #[error("the image {0:?} has no program")]
    NoProgram(String),
    /// It is not `PATTERN=PROGRAM`.
    #[error("{0:?} is not PATTERN=PROGRAM, such as quay.io/coreos/etcd:*=/usr/bin/etcd")]
    Entry(String),
    /// There are more entries than anybody needs.
    #[error("more than {MOST_ENTRIES} images")]
    TooMany,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    image: String,
    command: Vec<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

impl ImageProgram {
    /// A program without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            command: vec![program.into()],
            ..Self::default()
        }
    }

    /// The arguments of a container that gives none. `$(POD_IP)` and other variables of the container are replaced.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// A variable that containers begin with.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }
}

impl ImageTable {
    /// Adds an entry to the table.
    #[must_use]
    pub fn image(mut self, images: impl Into<ImagePattern>, program: ImageProgram) -> Self {
        self.0.push((images.into(), program));
        self
    }

    /// Adds `PATTERN=PROGRAM [ARGUMENT...]`, split at spaces.
    ///
    /// # Errors
    /// When there is no pattern or no program.
    pub fn entry(self, text: &str) -> Result<Self, TableError> {
        let wrong = || TableError::Entry(text.to_owned());
        let (pattern, program) = text.split_once('=').ok_or_else(wrong)?;
        let mut words = program.split_whitespace();
        let first = words.next().ok_or_else(wrong)?;
        if pattern.is_empty() {
            return Err(wrong());
        }
        let program = ImageProgram::new(first).args(words);
        Ok(self.image(ImagePattern::new(pattern), program))
    }

    /// Adds a list in YAML: `- image: PATTERN`, `command: [PROGRAM, ...]`, `args: [...]`, `env: {NAME: VALUE}`.
    ///
    /// # Errors
    /// When it is not such a list.
    pub fn yaml(mut self, text: &str) -> Result<Self, TableError> {
        let entries: Vec<Entry> =
            serde_saphyr::from_str(text).map_err(|error| TableError::Yaml(error.to_string()))?;
        if self.0.len() + entries.len() > MOST_ENTRIES {
            return Err(TableError::TooMany);
        }
        for entry in entries {
            let Entry {
                image,
                command,
                args,
                env,
            } = entry;
            if command.is_empty() {
                return Err(TableError::NoProgram(image));
            }
            let program = ImageProgram { command, args, env };
            self.0.push((ImagePattern::new(image), program));
        }
        Ok(self)
    }

    /// The program of an image.
    pub fn find(&self, image: &str) -> Option<&ImageProgram> {
        let mut fitting = self
            .0
            .iter()
            .rev()
            .filter(|(images, _)| images.matches(image));
        fitting.next().map(|(_, program)| program)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no image has a program.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_from_flags_and_yaml_and_the_last_one_counts() {
        let yaml =
            "- image: web\n  command: [/bin/web]\n  args: [--listen, $(POD_IP)]\n  env: {A: b}\n";
        let table = ImageTable::default()
            .entry("web:*=/bin/old -v")
            .expect("it is one");
        assert_eq!(
            table.find("web:1"),
            Some(&ImageProgram::new("/bin/old").args(["-v"]))
        );
        let table = table.yaml(yaml).expect("it is a list");
        let expected = ImageProgram::new("/bin/web")
            .args(["--listen", "$(POD_IP)"])
            .env("A", "b");
        assert_eq!(table.find("web:1"), Some(&expected));
        for wrong in ["web", "=x", "web=", "web= "] {
            assert!(ImageTable::default().entry(wrong).is_err(), "{wrong}");
        }
        for wrong in ["- image: a", "- image: a\n  command: []", "{}", "- 1"] {
            assert!(ImageTable::default().yaml(wrong).is_err(), "{wrong}");
        }
    }
}
