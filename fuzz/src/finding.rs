//! Inputs that broke something, kept in files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Writes an input to a directory and tells where. Equal inputs are one file.
pub(crate) fn write(directory: &Path, target: &str, what: &str, input: &[u8]) -> Result<PathBuf> {
    fs::create_dir_all(directory)
        .with_context(|| format!("{} cannot be made", directory.display()))?;
    let path = directory.join(format!("{target}-{what}-{:016x}", hash(input)));
    fs::write(&path, input).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// How to run a finding again.
pub(crate) fn replay_command(target: &str, path: &Path) -> String {
    format!(
        "cargo xtask fuzz --target {target} --replay {}",
        path.display()
    )
}

/// FNV-1a: names of files need no more.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Makes an input smaller for as long as it still breaks, within a number of attempts.
pub(crate) fn shrink(input: &[u8], attempts: usize, breaks: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut left = attempts;
    let mut step = (best.len() / 2).max(1);
    while step > 0 {
        let mut at = 0;
        while at < best.len() && left > 0 {
            left -= 1;
            let mut smaller = best.clone();
            smaller.drain(at..(at + step).min(best.len()));
            if breaks(&smaller) {
                best = smaller;
            } else {
                at += step;
            }
        }
        step /= 2;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_keeps_what_breaks_and_nothing_else() {
        let input = b"some words before the bug and some behind it";
        let small = shrink(input, 1_000, |bytes| bytes.windows(3).any(|w| w == b"bug"));
        assert_eq!(small, b"bug");
        assert_eq!(shrink(b"", 10, |_| true), b"");
    }
}
