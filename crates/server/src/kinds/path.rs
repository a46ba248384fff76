//! Paths of fields in error messages: built on the stack, written out only when an error is reported.

use std::fmt;

/// Where a value stands in an object, such as `spec.containers[0].name`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    /// A field at the top of the object.
    Root(&'a str),
    /// A field of the value before.
    Field(&'a Path<'a>, &'a str),
    /// An item of the list before.
    Index(&'a Path<'a>, usize),
    /// An entry of the map before.
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    /// The path of a field of this value. `name` may hold dots: `spec.template`.
    pub(crate) fn child(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    /// The path of an item of this list.
    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// The path of an entry of this map.
    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root(name) => f.write_str(name),
            Path::Field(Path::Root(""), name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Path::Key(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> String {
        path.to_string()
    }
}

impl From<&Path<'_>> for String {
    fn from(path: &Path<'_>) -> String {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_the_api_server_writes_them() {
        let spec = Path::Root("spec");
        let containers = spec.child("containers");
        assert_eq!(
            containers.index(2).child("name").to_string(),
            "spec.containers[2].name"
        );
        assert_eq!(Path::Root("data").key("a/b").to_string(), "data[a/b]");
    }
}
