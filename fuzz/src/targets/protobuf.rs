//! Protobuf with its envelope, as the kind that the envelope names.

use kubewright_schema::Table;
use kubewright_schema::protobuf::{self, Envelope};

use super::documents::survives_protobuf;
use super::{Verdict, start};

pub(super) fn read(input: &[u8]) -> Verdict {
    let envelope = match Envelope::parse(input) {
        Ok(envelope) => envelope,
        Err(error) => return Verdict::refused(start(&error.to_string())),
    };
    let (api_version, kind) = (envelope.api_version, envelope.kind);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(ty) = Table::builtin().kind(group, version, &kind) else {
        return Verdict::refused("unknown kind");
    };
    match protobuf::decode(Table::builtin(), ty, input) {
        Ok(value) => {
            survives_protobuf(ty, &value);
            Verdict::accepted(kind)
        }
        Err(error) => Verdict::refused(format!("{kind} {}", start(&error.to_string()))),
    }
}
