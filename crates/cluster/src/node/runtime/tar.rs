//! Archives as `kubectl cp` sends and reads them: the part of the tar format that plain files and directories need.

use std::io;

use bytes::Bytes;

/// Archives are made of blocks of this size.
const BLOCK: usize = 512;

/// One entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    File(String, Bytes),
    Directory(String),
}

/// Reads an archive. Links and everything else that is not a file or a directory are left out.
///
/// # Errors
/// When it breaks off, or a size is not a number.
pub(super) fn read(archive: &[u8]) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let (mut rest, mut long_name) = (archive, None);
    while rest.len() >= BLOCK {
        let (header, after) = rest.split_at(BLOCK);
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let size = octal(&header[124..136])?;
        let padded = size.div_ceil(BLOCK) * BLOCK;
        let content = after.get(..size).ok_or(io::ErrorKind::UnexpectedEof)?;
        rest = after.get(padded..).unwrap_or_default();
        let name = long_name.take().unwrap_or_else(|| name(header));
        match header[156] {
            b'L' => long_name = Some(text(content)),
            b'5' => entries.push(Entry::Directory(name)),
            b'0' | 0 => entries.push(Entry::File(name, Bytes::copy_from_slice(content))),
            _ => {}
        }
    }
    Ok(entries)
}

/// Writes an archive.
pub(super) fn write(entries: &[Entry]) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        let (name, content, kind) = match entry {
            Entry::File(name, content) => (name, &content[..], b'0'),
            Entry::Directory(name) => (name, &b""[..], b'5'),
        };
        if name.len() > 100 {
            block(&mut archive, "././@LongLink", name.as_bytes(), b'L');
        }
        block(&mut archive, name, content, kind);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn block(archive: &mut Vec<u8>, name: &str, content: &[u8], kind: u8) {
    let mut header = [0u8; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name.as_bytes()[..name.len().min(100)]);
    put(100, if kind == b'5' { b"0000755" } else { b"0000644" });
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{:011o}", content.len()).as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive.extend_from_slice(&header);
    archive.extend_from_slice(content);
    archive.resize(archive.len().div_ceil(BLOCK) * BLOCK, 0);
}

fn name(header: &[u8]) -> String {
    let (own, prefix) = (text(&header[..100]), text(&header[345..500]));
    let is_ustar = header[257..].starts_with(b"ustar\0");
    if is_ustar && !prefix.is_empty() {
        return format!("{prefix}/{own}");
    }
    own
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

fn octal(field: &[u8]) -> io::Result<usize> {
    let text = text(field);
    usize::from_str_radix(text.trim(), 8).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_comes_out_as_it_went_in() {
        let entries = vec![
            Entry::Directory("d/".to_owned()),
            Entry::File("d/a".to_owned(), Bytes::from("hello")),
            Entry::File("x".repeat(200), Bytes::from(vec![7; 1_000])),
        ];
        let archive = write(&entries);
        assert_eq!(read(&archive).expect("an archive"), entries);
        assert!(read(&archive[..BLOCK * 2 + 5]).is_ok(), "an end is an end");
        assert!(
            read(&archive[..archive.len() - 4 * BLOCK]).is_err(),
            "a file that breaks off"
        );
        let mut broken = archive;
        broken[124] = b'x';
        assert!(read(&broken).is_err());
    }
}
