//! `PartialObjectMetadata`: the metadata of any object, custom resources included.

use std::sync::OnceLock;

use serde_json::Value;

use crate::types::{Field, List, ListKind, Shape, Struct, Table, Type, TypeId};

/// The two types, which the published definitions do not have.
struct Partial {
    table: Table,
    object: TypeId,
    list: TypeId,
}

/// Writes a `PartialObjectMetadata` or `PartialObjectMetadataList` with its envelope.
pub fn encode_partial(value: &Value) -> Vec<u8> {
    let partial = partial();
    let is_list = value.get("items").is_some();
    let ty = if is_list {
        partial.list
    } else {
        partial.object
    };
    super::encode(&partial.table, ty, value)
}

fn partial() -> &'static Partial {
    static PARTIAL: OnceLock<Partial> = OnceLock::new();
    PARTIAL.get_or_init(|| {
        let mut table = Table::new();
        let object_meta = import(&mut table, "ObjectMeta");
        let list_meta = import(&mut table, "ListMeta");
        let object = structure(&mut table, &[("metadata", object_meta, 1)]);
        let items = table.add(Type::of(Shape::List(List {
            item: object,
            kind: ListKind::Atomic,
        })));
        let list = structure(
            &mut table,
            &[("metadata", list_meta, 1), ("items", items, 2)],
        );
        Partial {
            table,
            object,
            list,
        }
    })
}

fn import(table: &mut Table, name: &str) -> TypeId {
    let builtin = Table::builtin();
    let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
    let ty = builtin.named(&name).expect("metadata is a built-in type");
    table.import(builtin, ty)
}

fn structure(table: &mut Table, fields: &[(&str, TypeId, u32)]) -> TypeId {
    let fields = fields.iter().map(|(name, ty, tag)| Field {
        tag: Some(*tag),
        ..Field::new(name, *ty)
    });
    let structure = Struct::new(fields.collect());
    table.add(Type::of(Shape::Struct(structure)))
}
