//! The built-in types: reads the checked-in table once per process.
//!
//! `cargo xtask schema` writes the table and documents its format. A line starts a type, adds a kind to it, or adds
//! a field to it. Equal list and map types share one entry of the [`Table`].

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::types::{
    Field, Kind, List, ListKind, Patch, Scalar, Shape, Struct, Table, Type, TypeId, Wire,
};

const TEXT: &str = include_str!("../data/kubernetes-1.37.types");

impl Table {
    /// The types of every built-in kind of Kubernetes 1.37.
    pub fn builtin() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| {
            read(TEXT).unwrap_or_else(|line| {
                panic!("the generated type table is well-formed, but not here: {line}")
            })
        })
    }
}

/// Reads a table; the error is the line that makes no sense.
fn read(text: &str) -> Result<Table, &str> {
    let mut reader = Reader {
        table: Table::new(),
        shared: HashMap::new(),
        variants: Vec::new(),
    };
    let blocks = blocks(text);
    for block in &blocks {
        let (name, ty) = read_head(block.head).ok_or(block.head)?;
        let id = reader.table.add(ty);
        reader.shared.insert(name.to_owned(), id);
    }
    let mut kinds = Vec::new();
    for block in &blocks {
        let (name, _) = read_head(block.head).ok_or(block.head)?;
        let ty = reader.shared[name];
        for line in &block.kinds {
            kinds.push(read_kind(line, ty).ok_or(*line)?);
        }
        reader.read_forms(block.head, name, ty).ok_or(block.head)?;
        reader.read_fields(name, ty, &block.fields)?;
    }
    reader.table.set_kinds(kinds);
    reader.add_variants();
    Ok(reader.table)
}

/// The lines of one type.
struct Block<'a> {
    head: &'a str,
    kinds: Vec<&'a str>,
    fields: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("type ") {
            blocks.push(Block {
                head,
                kinds: Vec::new(),
                fields: Vec::new(),
            });
        } else if let Some(block) = blocks.last_mut() {
            match line.strip_prefix(' ') {
                Some(field) => block.fields.push(field),
                None => block.kinds.push(line),
            }
        }
    }
    blocks
}

/// `io.k8s.api.core.v1.ObjectReference struct atomic`, without its fields yet.
fn read_head(line: &str) -> Option<(&str, Type)> {
    let mut words = line.split(' ');
    let (name, shape) = (words.next()?, words.next()?);
    let shape = match shape {
        "struct" => {
            let mut s = Struct::default();
            s.atomic = words.next() == Some("atomic");
            Shape::Struct(s)
        }
        "any" => Shape::Any,
        word => Shape::Scalar(scalar(word)?),
    };
    let ty = Type {
        name: Some(name.into()),
        ..Type::of(shape)
    };
    Some((name, ty))
}

/// `kind apps/v1 Deployment`
fn read_kind(line: &str, ty: TypeId) -> Option<Kind> {
    let (api_version, kind) = line.strip_prefix("kind ")?.split_once(' ')?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(Kind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        ty,
    })
}

fn scalar(word: &str) -> Option<Scalar> {
    Some(match word {
        "string" => Scalar::String,
        "bytes" => Scalar::Bytes,
        "bool" => Scalar::Bool,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "double" => Scalar::Double,
        "quantity" => Scalar::Quantity,
        "intorstring" => Scalar::IntOrString,
        "time" => Scalar::Time,
        "microtime" => Scalar::MicroTime,
        _ => return None,
    })
}

struct Reader {
    table: Table,
    /// Types that are already there, by definition name or by [`Words::key`].
    shared: HashMap<String, TypeId>,
    /// Fields whose struct differs from the definition in being atomic or not: owner, position, atomic.
    variants: Vec<(TypeId, usize, bool)>,
}

impl Reader {
    fn read_fields<'a>(
        &mut self,
        name: &str,
        owner: TypeId,
        lines: &[&'a str],
    ) -> Result<(), &'a str> {
        let package = name.rfind('.').map_or("", |end| &name[..=end]);
        let mut fields = Vec::with_capacity(lines.len());
        let mut wires = Vec::new();
        for (position, line) in lines.iter().enumerate() {
            let words = Words::read(line).ok_or(*line)?;
            let ty = self.resolve(words.ty, &words, package).ok_or(*line)?;
            if let Some(atomic) = words.atomic
                && matches!(self.table.get(ty).shape, Shape::Struct(_))
            {
                self.variants.push((owner, position, atomic));
            }
            if words.wire != Wire::default() {
                wires.push((position as u16, words.wire));
            }
            fields.push(Field {
                required: words.required,
                always: words.always,
                omit_zero: words.omit_zero,
                tag: words.tag,
                patch: words.patch,
                ..Field::new(words.name, ty)
            });
        }
        if let Shape::Struct(s) = &mut self.table.get_mut(owner).shape {
            let atomic = s.atomic;
            *s = Struct::new(fields);
            s.set_wires(wires);
            s.atomic = atomic;
        }
        Ok(())
    }

    /// `io.k8s.….JSONSchemaPropsOrBool any JSONSchemaProps bool`
    fn read_forms(&mut self, head: &str, name: &str, ty: TypeId) -> Option<()> {
        let Some((_, forms)) = head.split_once(" any ") else {
            return Some(());
        };
        let package = name.rfind('.').map_or("", |end| &name[..=end]);
        let forms = forms
            .split(' ')
            .map(|form| self.resolve(form, &Words::default(), package))
            .collect::<Option<Vec<_>>>()?;
        self.table.set_forms(ty, forms);
        Some(())
    }

    /// The type behind `[]Container`, `{}string` or `io.k8s.api.core.v1.PodSpec`.
    fn resolve(&mut self, ty: &str, words: &Words<'_>, package: &str) -> Option<TypeId> {
        let (container, inner) = match ty {
            _ if ty.starts_with("[]") => (Some('['), &ty[2..]),
            _ if ty.starts_with("{}") => (Some('{'), &ty[2..]),
            _ => (None, ty),
        };
        let Some(container) = container else {
            return self.resolve_name(ty, package);
        };
        // Merge words belong to the outermost container.
        let item = self.resolve(inner, &Words::default(), package)?;
        let key = format!("{container}{} {} {:?}", item.0, words.list, words.atomic);
        if let Some(id) = self.shared.get(&key) {
            return Some(*id);
        }
        let shape = match container {
            '[' => Shape::List(List {
                item,
                kind: list_kind(words.list)?,
            }),
            _ => Shape::Map {
                value: item,
                atomic: words.atomic == Some(true),
            },
        };
        let id = self.table.add(Type::of(shape));
        self.shared.insert(key, id);
        Some(id)
    }

    fn resolve_name(&mut self, name: &str, package: &str) -> Option<TypeId> {
        if let Some(id) = self.shared.get(name) {
            return Some(*id);
        }
        if let Some(scalar) = scalar(name) {
            let id = self.table.add(Type::of(Shape::Scalar(scalar)));
            self.shared.insert(name.to_owned(), id);
            return Some(id);
        }
        self.shared.get(&format!("{package}{name}")).copied()
    }

    /// Gives each field in `variants` a copy of its struct; done last, when every struct has its fields.
    fn add_variants(&mut self) {
        for (owner, position, wanted) in std::mem::take(&mut self.variants) {
            let Shape::Struct(s) = &self.table.get(owner).shape else {
                continue;
            };
            let mut copy = self.table.get(s.fields()[position].ty).clone();
            match &mut copy.shape {
                Shape::Struct(s) if s.atomic != wanted => s.atomic = wanted,
                _ => continue,
            }
            let id = self.table.add_variant(copy);
            if let Shape::Struct(s) = &mut self.table.get_mut(owner).shape {
                s.fields_mut()[position].ty = id;
            }
        }
    }
}

/// One field line: ` containers []Container 2 required list=map:name patch=merge by=name`.
#[derive(Default)]
struct Words<'a> {
    name: &'a str,
    ty: &'a str,
    tag: Option<u32>,
    wire: Wire,
    required: bool,
    always: bool,
    omit_zero: bool,
    list: &'a str,
    atomic: Option<bool>,
    patch: Option<Patch>,
}

impl<'a> Words<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut read = Words {
            name: words.next()?,
            ty: words.next()?,
            ..Words::default()
        };
        let tags = words.next()?;
        if tags != "-" {
            let mut tags: Vec<u32> = tags
                .split('.')
                .map(|t| t.parse().ok())
                .collect::<Option<_>>()?;
            read.tag = tags.pop();
            read.wire.outer = tags;
        }
        for word in words {
            read.read_word(word)?;
        }
        Some(read)
    }

    fn read_word(&mut self, word: &'a str) -> Option<()> {
        match word.split_once('=') {
            None if word == "required" => self.required = true,
            None if word == "always" => self.always = true,
            None if word == "omitzero" => self.omit_zero = true,
            None if word == "wrapped" => self.wire.wrapped = true,
            Some(("list", kind)) => self.list = kind,
            Some(("map", kind)) => self.atomic = Some(kind == "atomic"),
            Some(("patch", strategy)) => {
                let patch = self.patch.get_or_insert_default();
                patch.merge = strategy.split(',').any(|s| s == "merge");
                patch.retain_keys = strategy.split(',').any(|s| s == "retainKeys");
            }
            Some(("by", key)) => self.patch.get_or_insert_default().merge_key = Some(key.into()),
            _ => return None,
        }
        Some(())
    }
}

fn list_kind(word: &str) -> Option<ListKind> {
    Some(match word {
        "" => ListKind::Atomic,
        "set" => ListKind::Set,
        _ => ListKind::Map(
            word.strip_prefix("map:")?
                .split(',')
                .map(Into::into)
                .collect(),
        ),
    })
}

#[cfg(test)]
mod tests;
