//! The inputs that others are made from: those of the repository, and new ones that were worth keeping.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rand::Rng;
use rand::rngs::StdRng;

/// Most inputs that are kept; then old ones make room.
const MAX_INPUTS: usize = 4_000;

/// Inputs of one target.
pub(crate) struct Corpus {
    inputs: Vec<Vec<u8>>,
    /// How many came from the repository. These stay.
    seeds: usize,
}

impl Corpus {
    /// Reads a directory, in the order of its names so that a seed means the same everywhere.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let entries = fs::read_dir(directory)
            .with_context(|| format!("{} cannot be read", directory.display()))?;
        let mut paths = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<PathBuf>>>()?;
        paths.sort();
        let inputs = paths
            .iter()
            .map(|path| {
                fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
            })
            .collect::<Result<Vec<_>>>()?;
        anyhow::ensure!(!inputs.is_empty(), "{} is empty", directory.display());
        Ok(Self {
            seeds: inputs.len(),
            inputs,
        })
    }

    /// The inputs of the repository.
    pub(crate) fn seeds(&self) -> &[Vec<u8>] {
        &self.inputs[..self.seeds]
    }

    /// Any of them.
    pub(crate) fn pick(&self, random: &mut StdRng) -> &[u8] {
        &self.inputs[random.random_range(0..self.inputs.len())]
    }

    /// Keeps an input that did something new.
    pub(crate) fn keep(&mut self, input: Vec<u8>, random: &mut StdRng) {
        if self.inputs.len() < MAX_INPUTS {
            self.inputs.push(input);
        } else if self.seeds < MAX_INPUTS {
            let at = random.random_range(self.seeds..MAX_INPUTS);
            self.inputs[at] = input;
        }
    }
}
