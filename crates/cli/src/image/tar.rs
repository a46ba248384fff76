//! Writes tar archives that have the same bytes each time: entries in the given order, owned by root, at the beginning of 1970.

use std::io::{self, Write};

const BLOCK: usize = 512;
/// Longest name that a plain header has room for.
const LONGEST_NAME: usize = 100;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
}

/// Writes entries to an archive.
pub(super) struct Archive<W> {
    out: W,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }

    /// Adds a file with these permissions.
    pub(super) fn file(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.out
            .write_all(&header(name, mode, bytes.len(), Kind::File)?)?;
        self.out.write_all(bytes)?;
        let rest = (BLOCK - bytes.len() % BLOCK) % BLOCK;
        self.out.write_all(&[0; BLOCK][..rest])
    }

    /// Adds a folder with these permissions. Its name ends with a slash.
    pub(super) fn folder(&mut self, name: &str, mode: u32) -> io::Result<()> {
        self.out.write_all(&header(name, mode, 0, Kind::Folder)?)
    }

    /// Ends the archive.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        Ok(self.out)
    }
}

fn header(name: &str, mode: u32, size: usize, kind: Kind) -> io::Result<[u8; BLOCK]> {
    if name.len() > LONGEST_NAME {
        return Err(io::Error::other(format!(
            "{name} is too long a name for an archive"
        )));
    }
    let mut block = [0_u8; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The sum is made with spaces in its own place.
    put(148, b"        ");
    put(156, if kind == Kind::Folder { b"5" } else { b"0" });
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_whole_blocks_with_their_sum() {
        let mut archive = Archive::new(Vec::new());
        archive.folder("etc/", 0o755).expect("it is added");
        archive.file("etc/a", 0o644, b"abc").expect("it is added");
        let bytes = archive.finish().expect("it ends");
        assert_eq!(bytes.len(), 5 * BLOCK);
        let file = &bytes[BLOCK..2 * BLOCK];
        assert_eq!(&file[..6], b"etc/a\0");
        assert_eq!(&file[124..136], b"00000000003\0");
        let mut summed = file.to_vec();
        summed[148..156].copy_from_slice(b"        ");
        let sum: u32 = summed.iter().copied().map(u32::from).sum();
        assert_eq!(&file[148..156], format!("{sum:06o}\0 ").as_bytes());
        assert_eq!(&bytes[2 * BLOCK..2 * BLOCK + 4], b"abc\0");
    }

    #[test]
    fn names_that_do_not_fit_are_refused() {
        let mut archive = Archive::new(Vec::new());
        assert!(archive.file(&"a".repeat(101), 0o644, b"").is_err());
    }
}
