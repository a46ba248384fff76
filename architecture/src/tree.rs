//! The text files of the repository, as checks of words, links and documentation read them.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold no text of ours.
const LEFT_OUT: [&str; 4] = ["target", ".git", "node_modules", "testdata"];

/// One file with its text.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// The path from the root of the repository.
    pub path: PathBuf,
    /// The whole content.
    pub text: String,
}

impl TextFile {
    /// Returns whether the file's name ends in a dot and this extension.
    pub fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|it| it == extension)
    }

    /// Returns whether it is Rust code of a crate, tests included.
    pub fn is_source_of_a_crate(&self) -> bool {
        self.path.starts_with("crates") && self.has_extension("rs")
    }
}

/// All files below a directory whose names end in one of these extensions, sorted by path.
pub fn text_files(root: &Path, extensions: &[&str]) -> Vec<TextFile> {
    let mut found = Vec::new();
    collect(root, root, extensions, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(root: &Path, directory: &Path, extensions: &[&str], found: &mut Vec<TextFile>) {
    for item in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = item.path();
        let name = item.file_name();
        if path.is_dir() {
            if !LEFT_OUT.iter().any(|left_out| name == *left_out) {
                collect(root, &path, extensions, found);
            }
        } else if path
            .extension()
            .is_some_and(|it| extensions.iter().any(|extension| it == *extension))
            && let Ok(text) = fs::read_to_string(&path)
            && let Ok(below) = path.strip_prefix(root)
        {
            found.push(TextFile {
                path: below.to_owned(),
                text,
            });
        }
    }
}
