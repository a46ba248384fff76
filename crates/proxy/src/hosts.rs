//! Hosts files: one for each pod, written in place, so that a file that is mounted elsewhere changes as well.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::names::Names;

/// What every hosts file begins with.
const HEAD: &str = "# Kept up to date by Kubewright.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/// The hosts files of a network. Clones share them; a temporary directory goes with the last clone.
#[derive(Debug, Clone)]
pub struct Hosts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    _temporary: Option<TempDir>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    names: Names,
    files: BTreeMap<String, HostsFile>,
}

/// One file, which is open for as long as it is kept up to date.
#[derive(Debug)]
struct HostsFile {
    file: File,
    namespace: String,
    /// The lines that no other file has.
    own: String,
    /// What is in the file.
    content: String,
}

/// An address with its names: a line of a hosts file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostsLine {
    /// The address that the names lead to.
    pub address: IpAddr,
    /// The names, the full one first.
    pub names: Vec<String>,
}

impl Hosts {
    /// Hosts files in a directory of their own, which goes with them.
    pub(crate) fn temporary() -> io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("kubewright-hosts-")
            .tempdir()?;
        Ok(Self::new(directory.path().to_owned(), Some(directory)))
    }

    /// Hosts files in this directory, which stays.
    pub(crate) fn in_directory(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        Ok(Self::new(directory.to_owned(), None))
    }

    fn new(directory: PathBuf, temporary: Option<TempDir>) -> Self {
        Self(Arc::new(Shared {
            directory,
            _temporary: temporary,
            state: Mutex::default(),
        }))
    }

    /// The directory that the files are in.
    pub fn dir(&self) -> &Path {
        &self.0.directory
    }

    /// Writes the hosts file of a pod, and keeps it up to date until [`remove`](Hosts::remove) is called: `localhost`, the
    /// pod's own lines, then all Services as they are named in the pod's namespace. The id is the pod's uid.
    ///
    /// # Errors
    /// When the id is not a file name, or the file cannot be written.
    pub fn add(&self, id: &str, namespace: &str, own: &[HostsLine]) -> io::Result<PathBuf> {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if id.is_empty() || id.starts_with('.') || !id.chars().all(known) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the id is not a file name",
            ));
        }
        let path = self.0.directory.join(id);
        let mut state = self.0.state.lock();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        file.set_len(0)?;
        let mut added = HostsFile {
            file,
            namespace: namespace.to_owned(),
            own: lines(own),
            content: String::new(),
        };
        added.write(&state.names.hosts_lines(namespace))?;
        state.files.insert(id.to_owned(), added);
        Ok(path)
    }

    /// Removes the hosts file of a pod. Nothing happens if the pod has no file.
    pub fn remove(&self, id: &str) {
        let known = self.0.state.lock().files.remove(id);
        if known.is_some() {
            let _ = fs::remove_file(self.0.directory.join(id));
        }
    }

    /// Writes other names into all files.
    ///
    /// # Errors
    /// The last file that could not be written. The others are.
    pub(crate) fn set(&self, names: Names) -> io::Result<()> {
        let mut state = self.0.state.lock();
        let mut lines = BTreeMap::new();
        let mut written = Ok(());
        for file in state.files.values_mut() {
            let lines = lines.entry(file.namespace.clone());
            let lines = lines.or_insert_with(|| names.hosts_lines(&file.namespace));
            written = file.write(lines).and(written);
        }
        state.names = names;
        written
    }
}

impl HostsFile {
    /// Puts the new content in place of the old with one write. A reader finds the old lines or the new ones: what is
    /// shorter than before is filled up with empty lines before the file is cut.
    fn write(&mut self, names: &str) -> io::Result<()> {
        let content = format!("{HEAD}{}{names}", self.own);
        if content == self.content {
            return Ok(());
        }
        let mut padded = content.clone();
        let missing = self.content.len().saturating_sub(content.len());
        padded.extend(std::iter::repeat_n('\n', missing));
        self.file.write_all_at(padded.as_bytes(), 0)?;
        self.content = content;
        self.file.set_len(self.content.len() as u64)
    }
}

fn lines(lines: &[HostsLine]) -> String {
    let mut text = String::new();
    for line in lines {
        // A name from a pod's hostAliases must not begin a line of its own.
        let names = line
            .names
            .iter()
            .filter(|name| !name.contains(char::is_whitespace));
        let names: Vec<&str> = names.map(String::as_str).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "{}\t{}", line.address, names.join("\t"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::tests::names;

    #[test]
    fn an_open_file_sees_every_change() {
        let hosts = Hosts::temporary().expect("a directory");
        let own = [HostsLine {
            address: IpAddr::from([127, 65, 0, 9]),
            names: vec!["web-0".to_owned(), "evil\n1.2.3.4 x".to_owned()],
        }];
        let path = hosts.add("uid-1", "default", &own).expect("written");
        // What a bind mount shows is the file, whatever becomes of its name.
        let mounted = File::open(&path).expect("open");
        let read = || {
            let mut bytes = vec![0; mounted.metadata().expect("metadata").len() as usize];
            mounted.read_exact_at(&mut bytes, 0).expect("read");
            String::from_utf8(bytes).expect("text")
        };
        assert_eq!(read(), format!("{HEAD}127.65.0.9\tweb-0\n"));
        hosts.set(names()).expect("written");
        let all = format!(
            "{HEAD}127.65.0.9\tweb-0\n{}",
            names().hosts_lines("default")
        );
        assert_eq!(read(), all);
        let later = hosts.add("uid-2", "data", &[]).expect("written");
        let later = fs::read_to_string(later).expect("read");
        assert!(later.contains("etcd.data etcd\n"), "{later}");
        hosts.set(Names::default()).expect("written");
        assert_eq!(read(), format!("{HEAD}127.65.0.9\tweb-0\n"));
        hosts.remove("uid-1");
        assert!(!path.exists());
        let directory = hosts.dir().to_owned();
        drop(hosts);
        assert!(!directory.exists());
    }

    #[test]
    fn an_id_is_a_file_name() {
        let hosts = Hosts::temporary().expect("a directory");
        for id in ["", ".", "..", "../x", "a/b", "a b"] {
            assert!(hosts.add(id, "default", &[]).is_err(), "{id:?}");
        }
    }
}
