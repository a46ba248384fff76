//! Which module at the top of a crate uses which, and where that goes round in circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::SourceFile;

/// Edges between the modules at the top of a crate.
#[derive(Debug, Default)]
pub struct Graph {
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Reads the paths in a crate's files.
    pub fn of(files: &[SourceFile]) -> Self {
        let modules: BTreeSet<String> = files.iter().filter_map(SourceFile::module).collect();
        let exports = exports(files, &modules);
        let mut graph = Self::default();
        for file in files {
            let Some(from) = file.module() else { continue };
            let uses = graph.uses.entry(from.clone()).or_default();
            for name in top_level_names(file) {
                let module = exports.get(&name).unwrap_or(&name);
                if *module != from && modules.contains(module) {
                    uses.insert(module.clone());
                }
            }
        }
        graph
    }

    /// The edges, as `from` and `to`.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.uses
            .iter()
            .flat_map(|(from, to)| to.iter().map(move |to| (from.as_str(), to.as_str())))
    }

    /// The modules.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.uses.keys().map(String::as_str)
    }

    /// Groups of modules that use one another, directly or not.
    pub fn cycles(&self) -> Vec<BTreeSet<String>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            self.modules().map(|m| (m, self.reachable(m))).collect();
        let mut cycles: Vec<BTreeSet<String>> = Vec::new();
        for (module, from) in &reach {
            let both = |other: &&&str| from.contains(**other) && reach[**other].contains(module);
            let cycle: BTreeSet<String> =
                reach.keys().filter(both).map(|m| (*m).to_owned()).collect();
            if cycle.len() > 1 && !cycles.contains(&cycle) {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// Edges from a module to one above it. `layers` are from the bottom up; modules of one layer may use one another.
    pub fn upward(&self, layers: &[&[&str]]) -> Vec<(String, String)> {
        let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
        self.edges()
            .filter(|(from, to)| match (layer(from), layer(to)) {
                (Some(from), Some(to)) => to > from,
                _ => false,
            })
            .map(|(from, to)| (from.to_owned(), to.to_owned()))
            .collect()
    }

    fn reachable<'a>(&'a self, from: &str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&str> = self.uses[from].iter().map(String::as_str).collect();
        while let Some(module) = next.pop() {
            if found.insert(module) {
                let further = self.uses.get(module).into_iter().flatten();
                next.extend(further.map(String::as_str));
            }
        }
        found
    }
}

/// Names that the crate's root gives to what is in its modules.
fn exports(files: &[SourceFile], modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for root in files.iter().filter(|file| file.module().is_none()) {
        for path in paths_after(&root.code, "use ") {
            if let Some((module, name)) = path.split_once("::")
                && modules.contains(module)
            {
                let name = name.rsplit("::").next().unwrap_or(name);
                exports.insert(name.to_owned(), module.to_owned());
            }
        }
    }
    exports
}

/// First names of all paths from the crate's root that a file mentions.
fn top_level_names(file: &SourceFile) -> BTreeSet<String> {
    let up = "super::".repeat(file.depth());
    let mut paths = paths_after(&file.code, "crate::");
    if file.depth() > 0 {
        paths.extend(paths_after(&file.code, &up));
    }
    let first = |path: String| path.split("::").next().unwrap_or_default().to_owned();
    paths.into_iter().map(first).collect()
}

/// The paths that follow each mention of a prefix; one in braces is several.
fn paths_after(code: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        // `pub(in crate::x)` and `my_crate::x` are not paths of this crate, and `super::super::x` is not `super::x`.
        let before = &code[..at];
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        expand("", &code[at + prefix.len()..], &mut found);
    }
    found
}

/// Writes out a path that may end in braces. Returns how many bytes it has.
fn expand(prefix: &str, text: &str, found: &mut Vec<String>) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    if !text[end..].starts_with('{') {
        found.push(path);
        return end;
    }
    let mut at = end + 1;
    loop {
        let rest = &text[at..];
        let skipped = rest.len() - rest.trim_start_matches([' ', '\n', ',', '\t']).len();
        at += skipped;
        if text[at..].is_empty() || text[at..].starts_with('}') {
            return at + 1;
        }
        let length = expand(&path, &text[at..], found);
        // Anything else (`as`, `*`) is passed over.
        at += length.max(1);
        at = at.min(text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile::parse((*path).into(), text))
            .collect();
        Graph::of(&files)
    }

    #[test]
    fn edges_are_found_in_every_form_of_path() {
        let graph = graph(&[
            ("lib.rs", "pub use c::{Thing, deep::Other};"),
            ("a.rs", "use crate::{b::{X, Y}, c};\nuse super::d;"),
            ("b.rs", "fn f() -> crate::Thing { crate::Other::new() }"),
            ("c/mod.rs", "mod deep;"),
            ("c/deep.rs", "use super::super::d::Z;\nuse super::a;"),
            ("d.rs", "// crate::a\nconst A: &str = \"crate::a\";"),
        ]);
        let edges: Vec<_> = graph.edges().collect();
        let expected = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d")];
        assert_eq!(edges, expected);
        assert!(graph.cycles().is_empty());
        let layers: [&[&str]; 3] = [&["a"], &["b", "c"], &["d"]];
        assert_eq!(graph.upward(&layers).len(), 4);
    }

    #[test]
    fn cycles_are_groups_of_modules_that_use_one_another() {
        let graph = graph(&[
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c;"),
            ("c.rs", "use crate::a;"),
            ("d.rs", "use crate::a;"),
        ]);
        let expected: BTreeSet<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(graph.cycles(), [expected]);
    }
}
