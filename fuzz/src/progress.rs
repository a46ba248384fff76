//! The input that is being tried, in a file: whoever ends in the middle of it leaves it behind.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes before the input: the number of the attempt and the length of the input.
const HEAD: usize = 16;

/// The file as the one who tries writes it.
pub(crate) struct Writer {
    file: File,
    buffer: Vec<u8>,
}

/// What is being tried.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) number: u64,
    pub(crate) input: Vec<u8>,
}

impl Writer {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).open(path)?;
        Ok(Self {
            file,
            buffer: Vec::new(),
        })
    }

    /// Notes what is tried next. One write, so that the file is never torn when the process ends.
    pub(crate) fn note(&mut self, number: u64, input: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend(number.to_le_bytes());
        self.buffer.extend((input.len() as u64).to_le_bytes());
        self.buffer.extend(input);
        self.file.write_all_at(&self.buffer, 0)
    }
}

/// Reads what is being tried; nothing before the first attempt.
pub(crate) fn read(path: &Path) -> Option<Attempt> {
    let bytes = std::fs::read(path).ok()?;
    let number = |at: usize| {
        let bytes: [u8; 8] = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let length = usize::try_from(number(8)?).ok()?;
    Some(Attempt {
        number: number(0)?,
        input: bytes.get(HEAD..HEAD.checked_add(length)?)?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_attempt_is_found_whatever_was_longer_before() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let path = folder.path().join("progress");
        assert_eq!(read(&path), None);
        let mut writer = Writer::create(&path).expect("created");
        for (number, input) in [(1, &b"a long input"[..]), (2, b"short"), (3, b"")] {
            writer.note(number, input).expect("written");
            let input = input.to_vec();
            assert_eq!(read(&path), Some(Attempt { number, input }));
        }
    }
}
