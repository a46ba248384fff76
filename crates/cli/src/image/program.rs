//! Looks at a compiled program: which machine it is for, and whether it needs anything beside itself.

use std::path::Path;

use anyhow::{Context as _, bail};

/// The largest program that is put into an image.
const LARGEST: u64 = 1 << 30;
const INTERPRETER: u32 = 3;

/// What a machine is called by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    /// As images call it.
    pub(super) architecture: &'static str,
    /// As Rust calls the target whose programs are static.
    pub(super) target: &'static str,
    /// As Rust calls the target with the C library that most distributions have.
    pub(super) gnu: &'static str,
    /// As programs call it.
    number: u16,
}

const MACHINES: [Machine; 2] = [
    Machine {
        architecture: "amd64",
        target: "x86_64-unknown-linux-musl",
        gnu: "x86_64-unknown-linux-gnu",
        number: 62,
    },
    Machine {
        architecture: "arm64",
        target: "aarch64-unknown-linux-musl",
        gnu: "aarch64-unknown-linux-gnu",
        number: 183,
    },
];

impl Machine {
    /// The machine of a platform such as `linux/arm64`.
    ///
    /// # Errors
    /// When no images exist for its architecture.
    pub(super) fn of_platform(platform: &str) -> anyhow::Result<Self> {
        let architecture = platform.strip_prefix("linux/").unwrap_or_default();
        let found = MACHINES
            .into_iter()
            .find(|it| it.architecture == architecture);
        found.with_context(|| format!("{platform} is not known; use linux/amd64 or linux/arm64"))
    }

    /// The machine that this program runs on, if images can be for it.
    pub(super) fn here() -> Option<Self> {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            _ => return None,
        };
        MACHINES
            .into_iter()
            .find(|it| it.architecture == architecture)
    }

    pub(super) fn platform(self) -> String {
        format!("linux/{}", self.architecture)
    }
}

/// Whether a program runs alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Linking {
    Static,
    /// It wants this loader, and the libraries that belong to it.
    Dynamic(String),
}

/// A program that was compiled for a machine.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) bytes: Vec<u8>,
    pub(super) machine: Machine,
    pub(super) linking: Linking,
}

impl Program {
    /// Reads a program from a file.
    ///
    /// # Errors
    /// When it is not a program for Linux on a known machine.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let size = std::fs::metadata(path).map(|metadata| metadata.len());
        let size = size.with_context(|| format!("{} cannot be read", path.display()))?;
        if size > LARGEST {
            bail!(
                "{} has {size} bytes; an image takes at most {LARGEST}",
                path.display()
            );
        }
        let bytes =
            std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let (number, linking) = look(&bytes)
            .with_context(|| format!("{} is not a 64-bit program for Linux", path.display()))?;
        let machine = MACHINES.into_iter().find(|it| it.number == number);
        let machine = machine.with_context(|| {
            format!(
                "images cannot be made for the architecture of {}",
                path.display()
            )
        })?;
        Ok(Self {
            bytes,
            machine,
            linking,
        })
    }
}

/// The machine of an ELF file, and how it is linked.
fn look(bytes: &[u8]) -> Option<(u16, Linking)> {
    // 64 bits, the lowest byte first.
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let long = |at: usize| {
        let value = u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?);
        usize::try_from(value).ok()
    };
    let (machine, table) = (short(18)?, long(32)?);
    let (size, count) = (usize::from(short(54)?), usize::from(short(56)?));
    for index in 0..count {
        let entry = table.checked_add(index.checked_mul(size)?)?;
        let kind = bytes.get(entry..entry.checked_add(4)?)?;
        if u32::from_le_bytes(kind.try_into().ok()?) == INTERPRETER {
            let (from, length) = (long(entry.checked_add(8)?)?, long(entry.checked_add(32)?)?);
            let name = bytes.get(from..from.checked_add(length)?)?;
            let name = String::from_utf8_lossy(name);
            return Some((
                machine,
                Linking::Dynamic(name.trim_end_matches('\0').to_owned()),
            ));
        }
    }
    Some((machine, Linking::Static))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A program that does nothing, with a loader or without.
    pub(crate) fn elf(machine: u16, loader: Option<&str>) -> Vec<u8> {
        let mut bytes = vec![0_u8; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[16] = 2;
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64] = 1;
        if let Some(loader) = loader {
            bytes[64] = 3;
            bytes[72..80].copy_from_slice(&120_u64.to_le_bytes());
            bytes[96..104].copy_from_slice(&(loader.len() as u64).to_le_bytes());
            bytes.extend(loader.as_bytes());
        }
        bytes
    }

    #[test]
    fn programs_say_what_they_need() {
        assert_eq!(look(&elf(62, None)), Some((62, Linking::Static)));
        let loader = "/lib64/ld-linux-x86-64.so.2";
        let dynamic = Linking::Dynamic(loader.to_owned());
        assert_eq!(look(&elf(183, Some(loader))), Some((183, dynamic)));
    }

    #[test]
    fn what_is_cut_or_made_up_is_not_a_program() {
        let whole = elf(62, Some("/lib/ld.so"));
        for length in 0..whole.len() {
            let _ = look(&whole[..length]);
        }
        let mut wild = whole.clone();
        wild[32..40].copy_from_slice(&[0xff; 8]);
        assert_eq!(look(&wild), None);
        assert_eq!(look(b"#!/bin/sh"), None);
    }
}
