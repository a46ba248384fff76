//! Endpoints and endpoint slices: the first three addresses and how many more there are.

use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{AGE, Column, NAME, text as column};
use crate::printers::view::{View, int, list, or, scalar, text, with_more};

/// How many addresses or ports a cell shows.
const SHOWN: usize = 3;

const ENDPOINTS: &[Column] = &[NAME, column("Endpoints"), AGE];
const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    column("AddressType"),
    column("Ports"),
    column("Endpoints"),
    AGE,
];

pub(super) const KINDS: &[Entry] = &[
    entry("", "Endpoints", ENDPOINTS, endpoints),
    entry(
        "discovery.k8s.io",
        "EndpointSlice",
        ENDPOINT_SLICE,
        endpoint_slice,
    ),
];

fn endpoints(view: &View<'_>) -> Vec<Value> {
    let subsets = view.list("subsets");
    let text = if subsets.is_empty() {
        "<none>".to_owned()
    } else {
        addresses(subsets)
    };
    cells![view.name(), text, view.age()]
}

fn addresses(subsets: &[Value]) -> String {
    let (mut shown, mut total) = (Vec::new(), 0);
    for subset in subsets {
        let addresses = list(subset, "addresses");
        let ports = list(subset, "ports");
        // A headless service without ports lists bare addresses.
        total += addresses.len() * ports.len().max(1);
        if ports.is_empty() {
            shown.extend(room(addresses, &shown).map(|address| text(address, "ip").to_owned()));
        }
        for port in ports {
            let port = int(port, "port");
            let pairs = room(addresses, &shown).map(|address| host_port(text(address, "ip"), port));
            shown.extend(pairs.collect::<Vec<_>>());
        }
    }
    with_more(&shown, ",", SHOWN, total)
}

/// As many addresses as there is still room for.
fn room<'a>(addresses: &'a [Value], shown: &[String]) -> impl Iterator<Item = &'a Value> + use<'a> {
    addresses.iter().take(SHOWN.saturating_sub(shown.len()))
}

/// IPv6 addresses go in brackets.
fn host_port(host: &str, port: i64) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

fn endpoint_slice(view: &View<'_>) -> Vec<Value> {
    let ports: Vec<String> = view.list("ports").iter().map(slice_port).collect();
    let addresses: Vec<String> = view
        .list("endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "addresses"))
        .map(|address| address.as_str().unwrap_or_default().to_owned())
        .collect();
    cells![
        view.name(),
        view.text("addressType"),
        set_or_unset(&ports),
        set_or_unset(&addresses),
        view.age(),
    ]
}

/// A port without a number goes by its name, and one without either means all.
fn slice_port(port: &Value) -> String {
    scalar(port, "port")
        .or_else(|| scalar(port, "name"))
        .unwrap_or_else(|| "*".to_owned())
}

fn set_or_unset(entries: &[String]) -> String {
    or(&with_more(entries, ",", SHOWN, entries.len()), "<unset>").to_owned()
}
