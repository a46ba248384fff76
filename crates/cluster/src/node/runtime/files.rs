//! The files of a simulated container: what its volumes put there, and what was written since.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::config::MountedFile;

/// Most bytes that a container keeps; what is beyond cannot be written.
const MOST_BYTES: usize = 64 << 20;
/// The working directory of commands by default.
pub(super) const ROOT: &str = "/";

/// Files by their absolute path. Directories are there when something is in them, or when they were made.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    files: BTreeMap<String, Bytes>,
    directories: BTreeMap<String, ()>,
}

impl Files {
    /// What volumes put there wins over what was written.
    pub(super) fn mount(&mut self, mounted: &[MountedFile]) {
        for file in mounted {
            self.files.insert(file.path.clone(), file.content.clone());
        }
    }

    pub(super) fn read(&self, path: &str) -> Option<&Bytes> {
        self.files.get(path)
    }

    /// Writes a file; says whether there was room.
    pub(super) fn write(&mut self, path: &str, content: Bytes) -> bool {
        let others = self.files.iter().filter(|(other, _)| *other != path);
        let used: usize = others.map(|(_, content)| content.len()).sum();
        if used.saturating_add(content.len()) > MOST_BYTES {
            return false;
        }
        self.files.insert(path.to_owned(), content);
        true
    }

    pub(super) fn make_directory(&mut self, path: &str) {
        self.directories.insert(path.to_owned(), ());
    }

    /// Removes a file, or a directory with all that is in it; says whether there was one.
    pub(super) fn remove(&mut self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        let before = self.files.len() + self.directories.len();
        let is_in = |name: &String| name == path || name.starts_with(&below);
        self.files.retain(|name, _| !is_in(name));
        self.directories.retain(|name, ()| !is_in(name));
        before != self.files.len() + self.directories.len()
    }

    pub(super) fn is_directory(&self, path: &str) -> bool {
        let known = ["/", "/tmp", "/etc", "/var", "/root", "/dev", "/proc"];
        known.contains(&path)
            || self.directories.contains_key(path)
            || self.below(path).next().is_some()
    }

    /// The files below a directory, with their whole path.
    pub(super) fn below<'a>(&'a self, path: &str) -> impl Iterator<Item = (&'a str, &'a Bytes)> {
        let below = format!("{}/", path.trim_end_matches('/'));
        self.files
            .range(below.clone()..)
            .take_while(move |(name, _)| name.starts_with(&below))
            .map(|(name, content)| (name.as_str(), content))
    }

    /// The names right below a directory, in order.
    pub(super) fn list(&self, path: &str) -> Vec<String> {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let directories = self.directories.keys().map(String::as_str);
        let all = self.files.keys().map(String::as_str).chain(directories);
        let mut names: Vec<String> = all
            .filter_map(|name| name.strip_prefix(&prefix))
            .filter_map(|rest| rest.split('/').next())
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// A path from where a command is, without `.` and `..`.
pub(super) fn absolute(directory: &str, path: &str) -> String {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
