//! Unpacks the layers of an image into one directory, which nothing in them can leave.
//!
//! Every path is looked up with the directory as its root, so that links which earlier entries have made lead to places within.
//! Whiteouts remove what lower layers have. Devices are left out: containers get theirs from the runtime.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, mkdirat};
use tar::{Entry, EntryType};

use super::source::plain;

const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

/// How much may still be unpacked.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: u64,
    entries: u64,
}

impl Budget {
    pub(super) fn new(bytes: u64, entries: u64) -> Self {
        Self { bytes, entries }
    }

    /// Copies bytes, and fails when there are more than may be.
    pub(super) fn copy(&mut self, from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
        self.entries = self.entries.checked_sub(1).ok_or_else(too_much)?;
        let copied = io::copy(&mut from.take(self.bytes + 1), to)?;
        self.bytes = self.bytes.checked_sub(copied).ok_or_else(too_much)?;
        Ok(())
    }

    pub(super) fn left(&self) -> u64 {
        self.bytes
    }
}

fn too_much() -> io::Error {
    io::Error::other("there is more in it than an image may have")
}

/// What is in a file that may be compressed.
///
/// # Errors
/// When it is compressed in a way that is not known here.
pub(super) fn decompressed(file: File) -> io::Result<Box<dyn Read>> {
    let mut reader = BufReader::new(file);
    let head = io::BufRead::fill_buf(&mut reader)?;
    match head {
        [0x1f, 0x8b, ..] => Ok(Box::new(MultiGzDecoder::new(reader))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Err(io::Error::other(
            "it is compressed with zstd, which is not supported; gzip and none are",
        )),
        _ => Ok(Box::new(reader)),
    }
}

/// A directory that layers are unpacked into.
pub(super) struct Unpacked {
    root: File,
    /// Permissions of directories, which are set last: one that is read-only could not be filled.
    modes: BTreeMap<PathBuf, u32>,
    /// Devices, pipes and sockets, which are not made.
    pub(super) left_out: usize,
    is_root: bool,
}

impl Unpacked {
    pub(super) fn into(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            root: File::open(directory)?,
            modes: BTreeMap::new(),
            left_out: 0,
            is_root: nix::unistd::geteuid().is_root(),
        })
    }

    /// Puts a layer on top of those before it.
    ///
    /// # Errors
    /// When it is damaged, too large, or leads out of the directory.
    pub(super) fn layer(&mut self, file: File, budget: &mut Budget) -> io::Result<()> {
        let mut archive = tar::Archive::new(decompressed(file)?);
        let mut own = std::collections::BTreeSet::new();
        for entry in archive.entries()? {
            let mut entry = entry?;
            let path = plain(&entry.path()?)?;
            let Some(name) = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
            else {
                continue;
            };
            let parent = path.parent().unwrap_or(Path::new("")).to_owned();
            let place = self.directory(&parent)?;
            if name == OPAQUE {
                self.empty(&place, &parent, &own)?;
            } else if let Some(hidden) = name.strip_prefix(WHITEOUT) {
                remove(&at(&place, hidden))?;
            } else {
                self.entry(&mut entry, &path, &at(&place, &name), budget)?;
                own.insert(path);
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        path: &Path,
        target: &Path,
        budget: &mut Budget,
    ) -> io::Result<()> {
        let kind = entry.header().entry_type();
        let mode = entry.header().mode()? & 0o7777;
        let is_directory = fs::symlink_metadata(target).is_ok_and(|found| found.is_dir());
        if !(kind == EntryType::Directory && is_directory) {
            remove(target)?;
        }
        match kind {
            EntryType::Directory => {
                if !is_directory {
                    fs::create_dir(target)?;
                }
                self.modes.insert(path.to_owned(), mode);
            }
            EntryType::Symlink => {
                let link = entry.link_name()?.ok_or(io::ErrorKind::InvalidData)?;
                symlink(link, target)?;
            }
            EntryType::Link => {
                let link = entry.link_name()?.ok_or(io::ErrorKind::InvalidData)?;
                let source = plain(&link)?;
                let parent = self.directory(source.parent().unwrap_or(Path::new("")))?;
                let name = source.file_name().ok_or(io::ErrorKind::InvalidData)?;
                return fs::hard_link(at(&parent, &name.to_string_lossy()), target);
            }
            EntryType::Regular | EntryType::Continuous => {
                let mut file = File::options()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .custom_flags(OFlag::O_NOFOLLOW.bits())
                    .open(target)?;
                budget.copy(entry, &mut file)?;
                self.own(entry, target)?;
                return file.set_permissions(fs::Permissions::from_mode(mode));
            }
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                self.left_out += 1;
                return Ok(());
            }
            _ => return Ok(()),
        }
        self.own(entry, target)
    }

    /// Gives something to the user that the image says; whoever is not root keeps everything.
    fn own(&self, entry: &Entry<'_, impl Read>, target: &Path) -> io::Result<()> {
        if !self.is_root {
            return Ok(());
        }
        let header = entry.header();
        let number = |id: u64| u32::try_from(id).map_err(|_| io::ErrorKind::InvalidData);
        lchown(
            target,
            Some(number(header.uid()?)?),
            Some(number(header.gid()?)?),
        )
    }

    /// A directory of the image, made with those above it when it is missing.
    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut so_far = PathBuf::new();
        let mut directory = self.root.as_fd().try_clone_to_owned()?;
        for component in path {
            so_far.push(component);
            directory = match self.open(&so_far) {
                Err(nix::errno::Errno::ENOENT) => {
                    mkdirat(&directory, component, Mode::from_bits_truncate(0o755))?;
                    self.open(&so_far)?
                }
                opened => opened?,
            };
        }
        Ok(directory)
    }

    fn open(&self, path: &Path) -> nix::Result<OwnedFd> {
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        openat2(self.root.as_fd(), path, how)
    }

    /// Removes what lower layers have in a directory.
    fn empty(
        &self,
        place: &OwnedFd,
        parent: &Path,
        own: &std::collections::BTreeSet<PathBuf>,
    ) -> io::Result<()> {
        for entry in fs::read_dir(at(place, "."))? {
            let name = entry?.file_name();
            let path = parent.join(&name);
            let kept = own.iter().any(|mine| mine.starts_with(&path));
            if !kept {
                remove(&at(place, &name.to_string_lossy()))?;
            }
        }
        Ok(())
    }

    /// Sets what could not be set before: the permissions of directories.
    ///
    /// # Errors
    /// When they cannot be set.
    pub(super) fn finish(self) -> io::Result<usize> {
        for (path, mode) in self.modes.iter().rev() {
            if let Ok(directory) = self.open(path) {
                let mode = fs::Permissions::from_mode(*mode);
                fs::set_permissions(at(&directory, "."), mode)?;
            }
        }
        Ok(self.left_out)
    }
}

/// Something in a directory that is open.
fn at(directory: &OwnedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
}

/// Removes whatever is at a path, links themselves and not what they lead to.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;

    use super::*;

    /// A layer of entries: kind, path, link and content. Paths are written as they are, whatever they are.
    fn layer(entries: &[(EntryType, &str, &str, &str)]) -> File {
        let mut bytes = Vec::new();
        for (kind, path, link, content) in entries {
            let mut header = tar::Header::new_ustar();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o755);
            header.set_uid(nix::unistd::geteuid().as_raw().into());
            header.set_gid(nix::unistd::getegid().as_raw().into());
            header.set_size(content.len() as u64);
            header.set_cksum();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(content.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes.resize(bytes.len() + 1024, 0);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        file.rewind().expect("at its beginning");
        file
    }

    fn unpack(layers: Vec<File>, root: &Path) -> io::Result<usize> {
        let mut budget = Budget::new(1 << 20, 100);
        let mut unpacked = Unpacked::into(root)?;
        for layer in layers {
            unpacked.layer(layer, &mut budget)?;
        }
        unpacked.finish()
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn later_layers_replace_and_remove_what_earlier_ones_have() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = layer(&[
            (FILE, "./etc/kept", "", "1"),
            (FILE, "etc/gone", "", "1"),
            (FILE, "old/a", "", "1"),
            (EntryType::Symlink, "bin", "usr/bin", ""),
            (EntryType::Directory, "usr/bin", "", ""),
            (EntryType::Char, "dev/null", "", ""),
        ]);
        let second = layer(&[
            (FILE, "etc/.wh.gone", "", ""),
            (FILE, "old/b", "", "2"),
            (FILE, "old/.wh..wh..opq", "", ""),
            (FILE, "bin/tool", "", "2"),
            (EntryType::Link, "bin/same", "usr/bin/tool", ""),
        ]);
        let left_out = unpack(vec![first, second], directory.path()).expect("unpacked");
        assert_eq!(left_out, 1);
        let read = |path: &str| fs::read_to_string(directory.path().join(path)).ok();
        assert_eq!(read("etc/kept").as_deref(), Some("1"));
        assert_eq!((read("etc/gone"), read("old/a")), (None, None));
        assert_eq!(read("old/b").as_deref(), Some("2"));
        assert_eq!(read("usr/bin/tool").as_deref(), Some("2"));
        assert_eq!(read("usr/bin/same").as_deref(), Some("2"));
    }

    #[test]
    fn nothing_leaves_the_directory() {
        let around = tempfile::tempdir().expect("a directory");
        let root = around.path().join("root");
        let outside = around.path().join("outside");
        fs::write(&outside, "mine").expect("written");
        let target = around.path().display().to_string();
        for entries in [
            vec![(FILE, "../outside", "", "theirs")],
            vec![(FILE, "a/../../outside", "", "theirs")],
            vec![
                (EntryType::Link, "a", "../outside", ""),
                (FILE, "a", "", "theirs"),
            ],
        ] {
            fs::create_dir(&root).expect("made");
            assert!(unpack(vec![layer(&entries)], &root).is_err(), "{entries:?}");
            fs::remove_dir_all(&root).expect("removed");
        }
        fs::create_dir(&root).expect("made");
        let links = [
            (EntryType::Symlink, "link", target.as_str(), ""),
            (EntryType::Symlink, "up", "..", ""),
        ];
        let through = [(FILE, "up/outside", "", "theirs")];
        unpack(vec![layer(&links), layer(&through)], &root).expect("within");
        assert!(root.join("outside").exists());
        // A link whose target is not there within the image leads nowhere.
        let through = [(FILE, "link/outside", "", "theirs")];
        let _ = unpack(vec![layer(&through)], &root);
        assert_eq!(fs::read_to_string(&outside).expect("read"), "mine");
    }

    #[test]
    fn more_than_an_image_may_have_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut budget = Budget::new(3, 100);
        let mut unpacked = Unpacked::into(directory.path()).expect("opened");
        let large = layer(&[(FILE, "a", "", "four")]);
        assert!(unpacked.layer(large, &mut budget).is_err());
        let mut few = Budget::new(100, 1);
        let many = layer(&[(FILE, "a", "", "1"), (FILE, "b", "", "1")]);
        assert!(unpacked.layer(many, &mut few).is_err());
    }
}
