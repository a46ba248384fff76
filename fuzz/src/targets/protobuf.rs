//! Protobuf with its envelope, as the kind that the envelope names.

use kubewright_schema::Table;
use kubewright_schema::protobuf::{self, Envelope};

use super::documents::survives_protobuf;
use super::{Told, start};

pub(super) fn read(input: &[u8]) -> Told {
    let envelope = match Envelope::parse(input) {
        Ok(envelope) => envelope,
        Err(error) => return Told::refused(start(&error.to_string())),
    };
    let (api_version, kind) = (envelope.api_version, envelope.kind);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(ty) = Table::builtin().kind(group, version, &kind) else {
        return Told::refused("unknown kind");
    };
    match protobuf::decode(Table::builtin(), ty, input) {
        Ok(value) => {
            survives_protobuf(ty, &value);
            Told::accepted(kind)
        }
        Err(error) => Told::refused(format!("{kind} {}", start(&error.to_string()))),
    }
}
