//! Reads Go structs: the fields in their order, with what their tags say about JSON and protobuf.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::sources::go_files;

/// How deep JSON inlines structs that protobuf nests.
const INLINE_DEPTH: usize = 3;

/// All structs by package and name, such as `api/core/v1.PodSpec`.
#[derive(Default)]
pub(super) struct Structs {
    by_name: HashMap<String, Vec<Field>>,
    /// Types that are declared as other types.
    synonyms: HashMap<String, String>,
}

/// One field of a Go struct.
struct Field {
    /// JSON name; empty for a struct that JSON inlines.
    name: String,
    /// Protobuf tag, unless protobuf does not have the field.
    tag: Option<u32>,
    /// The inlined struct.
    inlined: Option<String>,
    form: Form,
}

/// How Go holds and writes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// It is a pointer: set or not, whatever the value.
    pub(super) pointer: bool,
    /// `omitempty`: JSON leaves it out when it is zero, unless it is a struct.
    pub(super) omit_empty: bool,
    /// `omitzero`: JSON leaves it out when it is zero, even when it is a struct.
    pub(super) omit_zero: bool,
    /// Protobuf has one message of it, even when JSON has a list.
    pub(super) single: bool,
}

/// Where a JSON field lies: the protobuf tags from the outermost message to the field, and its form.
pub(super) struct Place {
    /// JSON name.
    pub(super) name: String,
    /// Empty when the field is not in protobuf.
    pub(super) tags: Vec<u32>,
    pub(super) form: Form,
}

impl Structs {
    /// The fields of the struct of a definition, in the order of the struct.
    pub(super) fn places(&self, definition: &str) -> Vec<Place> {
        let mut places = Vec::new();
        let path = definition.trim_start_matches("io.k8s.");
        if let Some((package, name)) = path.rsplit_once('.') {
            let name = format!("{}.{name}", package.replace('.', "/"));
            self.collect(&name, 0, Some(Vec::new()), &mut places);
        }
        places
    }

    /// `outer` are the tags of the messages around; none when one of them is not in protobuf.
    fn collect(&self, name: &str, depth: usize, outer: Option<Vec<u32>>, places: &mut Vec<Place>) {
        let name = self.synonyms.get(name).map_or(name, String::as_str);
        for field in self.by_name.get(name).into_iter().flatten() {
            let tags = outer.clone().zip(field.tag).map(|(mut tags, tag)| {
                tags.push(tag);
                tags
            });
            match &field.inlined {
                Some(inner) if depth < INLINE_DEPTH => {
                    self.collect(inner, depth + 1, tags, places);
                }
                Some(_) => {}
                None => places.push(Place {
                    name: field.name.clone(),
                    tags: tags.unwrap_or_default(),
                    form: field.form,
                }),
            }
        }
    }
}

/// Reads every struct of the modules in a directory. A module lies in `api@v0.37.0` or `api`.
pub(super) fn read(modules: &Path) -> Result<Structs> {
    let mut structs = Structs::default();
    for path in go_files(modules)? {
        let text = fs::read_to_string(modules.join(&path))?;
        let package = package_of(&path).context("a Go file lies in a package")?;
        read_file(&package, &text, &mut structs).with_context(|| format!("in {path}"))?;
    }
    if structs.by_name.is_empty() {
        bail!("no structs under {}", modules.display());
    }
    Ok(structs)
}

/// `api/core/v1` of `api@v0.37.0/core/v1/types.go`.
fn package_of(path: &str) -> Option<String> {
    let (directory, _) = path.rsplit_once('/')?;
    let (module, rest) = directory.split_once('/').unwrap_or((directory, ""));
    let module = module.split('@').next()?;
    Some(format!("{module}/{rest}"))
}

fn read_file(package: &str, text: &str, structs: &mut Structs) -> Result<()> {
    let mut imports = HashMap::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        if let Some(name) = struct_name(line) {
            let name = format!("{package}.{name}");
            structs.by_name.insert(name.clone(), Vec::new());
            current = Some(name);
        } else if line.starts_with('}') {
            current = None;
        } else if let Some(name) = &current {
            if let Some(field) = read_field(package, &imports, line.trim())? {
                structs.by_name.entry(name.clone()).or_default().push(field);
            }
        } else if let Some((alias, path)) = import(line) {
            imports.insert(alias, path);
        } else if let Some((name, ty)) = synonym(line) {
            let name = format!("{package}.{name}");
            structs
                .synonyms
                .insert(name, resolve(package, &imports, ty));
        }
    }
    Ok(())
}

fn struct_name(line: &str) -> Option<&str> {
    line.strip_prefix("type ")?.strip_suffix(" struct {")
}

/// `type MatchCondition v1.MatchCondition`
fn synonym(line: &str) -> Option<(&str, &str)> {
    let (name, ty) = line.strip_prefix("type ")?.split_once(' ')?;
    Some((name, ty.trim_start_matches("= ")))
}

/// `metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"`, the package below `k8s.io`.
fn import(line: &str) -> Option<(String, String)> {
    let line = line.trim().trim_start_matches("import ");
    let (alias, path) = line.split_once("\"k8s.io/")?;
    let path = path.strip_suffix('"')?;
    let alias = match alias.trim() {
        "" => path.rsplit('/').next()?,
        alias => alias,
    };
    Some((alias.to_owned(), path.to_owned()))
}

/// `Replicas *int32 ``json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`; comments and fields that JSON
/// does not have are not fields.
fn read_field(
    package: &str,
    imports: &HashMap<String, String>,
    line: &str,
) -> Result<Option<Field>> {
    if line.starts_with("//") {
        return Ok(None);
    }
    let Some((declaration, tags)) = line.split_once('`') else {
        return Ok(None);
    };
    let Some(json) = tag(tags, "json") else {
        return Ok(None);
    };
    let mut json = json.split(',');
    let name = json.next().unwrap_or_default();
    let options: Vec<&str> = json.collect();
    let declared: Vec<&str> = declaration.split_whitespace().collect();
    let (ty, embedded) = match declared[..] {
        [ty] => (ty, true),
        [_, ty] => (ty, false),
        _ => bail!("field {line}"),
    };
    if name == "-" || (name.is_empty() && !embedded) {
        return Ok(None);
    }
    let protobuf: Vec<&str> =
        tag(tags, "protobuf").map_or_else(Vec::new, |t| t.split(',').collect());
    let number = protobuf.get(1).map(|tag| tag.parse()).transpose()?;
    Ok(Some(Field {
        name: name.to_owned(),
        tag: number,
        inlined: name.is_empty().then(|| resolve(package, imports, ty)),
        form: Form {
            pointer: ty.starts_with('*'),
            omit_empty: options.contains(&"omitempty"),
            omit_zero: options.contains(&"omitzero"),
            single: !ty.starts_with("[]") && protobuf.get(2) != Some(&"rep"),
        },
    }))
}

/// The content of `key:"content"` in the tags of a field.
fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let start = tags.find(&format!("{key}:\""))? + key.len() + 2;
    tags[start..].split('"').next()
}

/// The struct behind `VolumeSource` or `metav1.TypeMeta` as a package sees it.
fn resolve(package: &str, imports: &HashMap<String, String>, ty: &str) -> String {
    let ty = ty.trim_start_matches('*');
    match ty.split_once('.') {
        Some((alias, name)) => {
            let package = imports.get(alias).map_or(alias, String::as_str);
            format!("{package}.{name}")
        }
        None => format!("{package}.{ty}"),
    }
}
