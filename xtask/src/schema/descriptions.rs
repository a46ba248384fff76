//! Writes the descriptions of types and fields, packed, for the OpenAPI documents.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};

/// A block for each type, sorted by name, in the form that the crate `schema` reads.
pub(super) fn text(definitions: &Path) -> Result<String> {
    let document = fs::read_to_string(definitions)
        .with_context(|| format!("reading {}", definitions.display()))?;
    let document: Value = serde_json::from_str(&document)?;
    let empty = Map::new();
    let types = document["$defs"].as_object().context("definitions")?;
    let mut names: Vec<&String> = types.keys().collect();
    names.sort();
    let mut text = String::new();
    for name in names {
        line(&mut text, name, &types[name]["description"]);
        let fields = types[name]["properties"].as_object().unwrap_or(&empty);
        let mut described: Vec<(&String, &Value)> = fields.iter().collect();
        described.sort_by_key(|(field, _)| *field);
        for (field, schema) in described {
            if !schema["description"].is_null() {
                line(&mut text, &format!(" {field}"), &schema["description"]);
            }
        }
    }
    Ok(text)
}

fn line(text: &mut String, name: &str, description: &Value) {
    let description = description.as_str().unwrap_or_default();
    let description = description.replace('\\', "\\\\").replace('\n', "\\n");
    text.push_str(&format!("{name}\t{description}\n"));
}

/// Packs a text; the same text always gives the same bytes.
pub(super) fn pack(text: &str) -> Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(text.as_bytes())?;
    Ok(packer.finish()?)
}

/// The text in packed bytes.
pub(super) fn unpack(bytes: &[u8]) -> Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}
