//! The file: what it is, what it uses, its types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion as Version,
};

use super::attribute::{self, Item, LINE};
use super::build::Builder;
use super::literal;
use super::model::{Definition, Enum, Field, Struct, Type};

const DERIVES: &str = "Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq";

pub(super) fn file(
    definition: &CustomResourceDefinition,
    version: &Version,
    builder: &Builder,
    main: &Struct,
    attributes: Vec<Item>,
) -> String {
    let (kind, group) = (&definition.spec.names.kind, &definition.spec.group);
    let mut out = format!(
        "//! The kind `{kind}` of `{group}/{}`, from its definition.\n",
        version.name
    );
    if !builder.notes.is_empty() {
        out.push_str("//!\n//! The definition also has what Rust types cannot express:\n");
        for note in &builder.notes {
            out.push_str(&format!("//! - {note}\n"));
        }
    }
    let mut body = String::new();
    write_main(&mut body, main, &attributes);
    for definition in &builder.definitions {
        body.push('\n');
        match definition {
            Definition::Struct(found) => write_struct(&mut body, found),
            Definition::Enum(found) => write_enum(&mut body, found),
        }
    }
    out.push('\n');
    out.push_str(&imports(main, builder));
    out.push('\n');
    out.push_str(&body);
    out
}

/// What the types use, in the order of rustfmt.
fn imports(main: &Struct, builder: &Builder) -> String {
    let structs = builder
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::Struct(found) => Some(found),
            Definition::Enum(_) => None,
        });
    let structs: Vec<&Struct> = std::iter::once(main).chain(structs).collect();
    let uses = |is: fn(&Type) -> bool| {
        structs
            .iter()
            .flat_map(|found| &found.fields)
            .any(|field| field.ty.any(is))
    };
    let maps = uses(|ty| matches!(ty, Type::Map(_))) || structs.iter().any(|found| found.open);
    let all = [
        (
            uses(|ty| *ty == Type::Condition),
            "k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition",
        ),
        (
            uses(|ty| *ty == Type::IntOrString),
            "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString",
        ),
        (true, "kube::CustomResource"),
        (true, "schemars::JsonSchema"),
        (true, "serde::{Deserialize, Serialize}"),
        (maps, "std::collections::BTreeMap"),
    ];
    let used = all.into_iter().filter(|(used, _)| *used);
    used.map(|(_, path)| format!("use {path};\n")).collect()
}

fn write_main(out: &mut String, main: &Struct, attributes: &[Item]) {
    write_description(out, &main.description, "What is wanted.", 0);
    out.push_str("#[kubewright::api]\n");
    out.push_str(&format!("#[derive(CustomResource, {DERIVES})]\n"));
    out.push_str(&attribute::line("kube", attributes, 0));
    write_body(out, main);
}

fn write_struct(out: &mut String, found: &Struct) {
    write_description(out, &found.description, "", 0);
    out.push_str(&format!("#[kubewright::schema]\n#[derive({DERIVES})]\n"));
    write_body(out, found);
}

fn write_body(out: &mut String, found: &Struct) {
    out.push_str("#[serde(rename_all = \"camelCase\")]\n");
    out.push_str(&attribute::line("k8s", &found.marks, 0));
    if found.fields.is_empty() && !found.open {
        out.push_str(&format!("pub struct {} {{}}\n", found.name));
        return;
    }
    out.push_str(&format!("pub struct {} {{\n", found.name));
    for field in &found.fields {
        write_field(out, field);
    }
    if found.open {
        let name = if found.fields.iter().any(|field| field.name == "other") {
            "other_fields"
        } else {
            "other"
        };
        out.push_str("    /// Fields that the definition does not describe.\n");
        out.push_str("    #[serde(flatten)]\n    #[schemars(skip)]\n");
        out.push_str(&format!(
            "    pub {name}: BTreeMap<String, serde_json::Value>,\n"
        ));
    }
    out.push_str("}\n");
}

fn write_field(out: &mut String, field: &Field) {
    write_description(out, &field.description, "", 4);
    if let Some(rename) = &field.rename {
        let items = [Item::pair("rename", literal::text(rename))];
        out.push_str(&attribute::line("serde", &items, 4));
    }
    let conditions = field.ty == Type::List(Box::new(Type::Condition));
    if field.optional && conditions {
        out.push_str("    #[serde(default, skip_serializing_if = \"Vec::is_empty\")]\n");
    }
    // The type that stands for it could be anything.
    if field.ty == Type::Object {
        out.push_str("    #[schemars(extend(\"type\" = \"object\"))]\n");
    }
    out.push_str(&attribute::line("k8s", &field.marks, 4));
    let ty = shown(&field.ty);
    // None and no conditions are the same, and what sets them wants a list.
    let ty = if field.optional && !conditions {
        format!("Option<{ty}>")
    } else {
        ty
    };
    let line = format!("    pub {}: {ty},\n", field.name);
    if line.trim_end().chars().count() <= LINE {
        out.push_str(&line);
    } else {
        out.push_str(&format!("    pub {}:\n        {ty},\n", field.name));
    }
}

fn write_enum(out: &mut String, found: &Enum) {
    write_description(out, &found.description, "", 0);
    out.push_str(&format!(
        "#[derive({DERIVES})]\npub enum {} {{\n",
        found.name
    ));
    for (position, (name, value)) in found.variants.iter().enumerate() {
        if position == 0 {
            out.push_str("    #[default]\n");
        }
        if name != value {
            out.push_str(&attribute::line(
                "serde",
                &[Item::pair("rename", literal::text(value))],
                4,
            ));
        }
        out.push_str(&format!("    {name},\n"));
    }
    out.push_str("}\n");
}

fn shown(ty: &Type) -> String {
    match ty {
        Type::Text => "String".to_owned(),
        Type::Integer(name) => (*name).to_owned(),
        Type::Float => "f64".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::IntOrString => "IntOrString".to_owned(),
        Type::Condition => "Condition".to_owned(),
        Type::Any | Type::Object => "serde_json::Value".to_owned(),
        Type::List(item) => format!("Vec<{}>", shown(item)),
        Type::Map(value) => format!("BTreeMap<String, {}>", shown(value)),
        Type::Named(name) => name.clone(),
    }
}

/// A description as comments. Indented lines and fences would be taken for examples in Rust, and be compiled.
fn write_description(out: &mut String, text: &str, otherwise: &str, indent: usize) {
    let text = if text.trim().is_empty() {
        otherwise
    } else {
        text.trim()
    };
    let margin = " ".repeat(indent);
    let mut inside = false;
    // A carriage return on its own is an error in a comment.
    let text = text.replace('\r', "");
    for line in text.lines() {
        let bare = line.trim();
        let fence = bare.starts_with("```");
        let line = match (fence, inside) {
            (true, false) => "```text".to_owned(),
            (true, true) => "```".to_owned(),
            (false, true) => line.trim_end().to_owned(),
            (false, false) => bare.to_owned(),
        };
        inside ^= fence;
        let space = if line.is_empty() { "" } else { " " };
        out.push_str(&format!("{margin}///{space}{line}\n"));
    }
    if inside {
        out.push_str(&format!("{margin}/// ```\n"));
    }
}
