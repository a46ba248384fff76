//! Writes the type table as text: one line per type, kind and field.
//!
//! ```text
//! type io.k8s.api.apps.v1.Deployment struct
//! kind apps/v1 Deployment
//!  spec DeploymentSpec 2 required always
//! ```
//!
//! A type of the same package is named by its last part. `-` stands for a field that protobuf lacks; `2.5` is field 5
//! of the message in field 2, which JSON inlines. `always` is written even when empty, `omitzero` is in every protobuf
//! message and left out of JSON when it is zero, `wrapped` is a list in a protobuf message of its own.

use std::fmt::Write;

use super::definitions::{Field, Type};

/// Raised whenever the same sources give another table.
const GENERATOR: &str = "cargo xtask schema, version 3";

/// The whole file: provenance, checksum of the lines below it, types.
pub(super) fn table(types: &[Type], provenance: &[String]) -> String {
    let mut body = String::new();
    for ty in types {
        write_type(&mut body, ty).expect("writing to a string does not fail");
    }
    let mut file = String::from("# Built-in types of Kubernetes. Generated, do not edit.\n");
    for line in provenance {
        file.push_str(&format!("# {line}\n"));
    }
    file.push_str(&format!("# generator: {GENERATOR}\n"));
    file.push_str(&format!("# checksum: {:016x}\n", checksum(body.as_bytes())));
    file.push_str(&body);
    file
}

fn write_type(out: &mut String, ty: &Type) -> std::fmt::Result {
    let atomic = if ty.atomic { " atomic" } else { "" };
    writeln!(out, "type {} {}{atomic}", ty.name, ty.shape)?;
    for kind in &ty.kinds {
        writeln!(out, "kind {kind}")?;
    }
    let package = ty.name.rfind('.').map_or("", |end| &ty.name[..=end]);
    for field in &ty.fields {
        write_field(out, field, package)?;
    }
    Ok(())
}

fn write_field(out: &mut String, field: &Field, package: &str) -> std::fmt::Result {
    let start = field.ty.rfind(['}', ']']).map_or(0, |end| end + 1);
    let (containers, inner) = field.ty.split_at(start);
    let inner = match inner.strip_prefix(package) {
        Some(local) if !local.contains('.') => local,
        _ => inner,
    };
    let tags: Vec<String> = field.tags.iter().map(u32::to_string).collect();
    let tags = if tags.is_empty() {
        "-".to_owned()
    } else {
        tags.join(".")
    };
    write!(out, " {} {containers}{inner} {tags}", field.name)?;
    for word in &field.words {
        write!(out, " {word}")?;
    }
    writeln!(out)
}

/// 64-bit FNV-1a: enough to notice an edit by hand, and short enough to repeat where the table is read.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
