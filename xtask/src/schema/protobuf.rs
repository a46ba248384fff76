//! Reads message layouts out of prost structs: field names in the order of the Go struct, with their tags.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::sources::rust_files;

/// How deep JSON inlines messages that protobuf nests.
const INLINE_DEPTH: usize = 3;

/// All messages by module path and lower-case name, such as `api.core.v1.podspec`.
#[derive(Default)]
pub(super) struct Messages {
    by_name: HashMap<String, Vec<Field>>,
}

/// One protobuf field.
struct Field {
    /// Name without case and separators, comparable with a [`plain`] JSON name.
    name: String,
    tag: u32,
    /// The message it holds, when it holds a single one.
    message: Option<String>,
    /// It holds messages: one, many, or as the values of a map.
    messages: bool,
}

/// Where a JSON field lies in the protobuf message: the tags from the outermost message to the field.
pub(super) struct Place {
    /// Position in the list of names that was asked for.
    pub(super) name: usize,
    pub(super) tags: Vec<u32>,
    /// The value is a message, or several.
    pub(super) messages: bool,
}

impl Messages {
    /// The places of JSON fields in the message of a definition, in the order of the message. Fields that the
    /// message lacks are left out.
    pub(super) fn places(&self, definition: &str, names: &[&str]) -> Vec<Place> {
        let Some(path) = definition.strip_prefix("io.k8s.") else {
            return Vec::new();
        };
        let wanted: HashMap<String, usize> = names
            .iter()
            .enumerate()
            .map(|(at, name)| (plain(name), at))
            .collect();
        let mut places = Vec::new();
        let message = path.replace('-', "_").to_lowercase();
        self.collect(&message, &wanted, &mut Vec::new(), &mut places);
        places
    }

    fn collect(
        &self,
        message: &str,
        wanted: &HashMap<String, usize>,
        outer: &mut Vec<u32>,
        places: &mut Vec<Place>,
    ) {
        for field in self.by_name.get(message).into_iter().flatten() {
            outer.push(field.tag);
            if let Some(name) = wanted.get(&field.name) {
                places.push(Place {
                    name: *name,
                    tags: outer.clone(),
                    messages: field.messages,
                });
            } else if let Some(inner) = &field.message
                && outer.len() < INLINE_DEPTH
            {
                // A message that JSON does not name is an embedded Go struct: its fields stand in its place.
                self.collect(inner, wanted, outer, places);
            }
            outer.pop();
        }
    }
}

/// Reads every message under the `src` directory of the crate.
pub(super) fn read(source: &Path) -> Result<Messages> {
    let mut messages = Messages::default();
    for path in rust_files(source)? {
        let module = path
            .parent()
            .context("a file has a directory")?
            .strip_prefix(source)?
            .to_string_lossy()
            .replace('/', ".");
        let text = fs::read_to_string(&path)?;
        read_module(&module, &text, &mut messages)
            .with_context(|| format!("in {}", path.display()))?;
    }
    if messages.by_name.is_empty() {
        bail!("no messages under {}", source.display());
    }
    Ok(messages)
}

fn read_module(module: &str, text: &str, messages: &mut Messages) -> Result<()> {
    let mut current = String::new();
    let mut attribute: Option<&str> = None;
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("pub struct ") {
            let name = rest.split([' ', '{', ';', '(']).next().unwrap_or_default();
            current = format!("{module}.{name}").to_lowercase();
            messages.by_name.entry(current.clone()).or_default();
        } else if let Some(rest) = line.strip_prefix("#[prost(") {
            attribute = rest.contains("tag =").then_some(rest);
        } else if let Some(rest) = line.strip_prefix("pub ")
            && let Some(attribute) = attribute.take()
        {
            let mut declaration = rest.to_owned();
            while !declaration.ends_with(',') {
                declaration.push_str(lines.next().context("a field ends with a comma")?);
            }
            let field = read_field(module, attribute, &declaration)?;
            messages
                .by_name
                .entry(current.clone())
                .or_default()
                .push(field);
        }
    }
    Ok(())
}

fn read_field(module: &str, attribute: &str, declaration: &str) -> Result<Field> {
    let (name, ty) = declaration
        .split_once(':')
        .with_context(|| format!("field {declaration}"))?;
    let tag = attribute
        .split("tag = \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .with_context(|| format!("tag of {declaration}"))?;
    let single = attribute.starts_with("message, optional");
    Ok(Field {
        name: plain(name.trim_start_matches("r#")),
        tag: tag.parse()?,
        message: single.then(|| resolve(module, ty)),
        messages: attribute.contains("message"),
    })
}

/// The message behind `::core::option::Option<super::super::core::v1::PodSpec>,` seen from a module.
fn resolve(module: &str, ty: &str) -> String {
    let path = ty
        .trim_end_matches([',', '>', ' '])
        .rsplit('<')
        .next()
        .unwrap_or_default();
    let mut parts: Vec<&str> = module.split('.').collect();
    for part in path.trim().split("::") {
        match part {
            "super" => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join(".").to_lowercase()
}

/// A name without case and separators: `pod_i_ps` and `podIPs` are the same field.
fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
